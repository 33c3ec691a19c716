"""The weight of a learned head in the default ranker, by queries made of the documents, whose answers are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ncs.build.synthetic_queries import FIELDS_ASKED, SyntheticQuery, synthetic_queries, word_table
from ncs.build.tune import gain
from ncs.console import count
from ncs.search.hybrid import HybridRanker, Parts, save_weight
from ncs.search.question import read_intent
from ncs.search.rankers import HEAD, load_ranker
from ncs.search.unif import UnifRanker
from ncs.storage.documents import Documents
from ncs.storage.snapshot import Snapshot, read_description

MIN_QUERIES = 40
"""Queries below which a head is not used."""
HEAD_WEIGHT, TRANSLATING_WEIGHT = 0.3, 0.8
"""The head's weight, beside 1 of the words, found on people's questions: so low that heads of doc comments alone
lowered no set of them; and that of a head that translates."""
LIFT = 0.5
"""Standard deviations; heads of noise lift by 0, useful ones by 2 to 5."""


def weigh_head(snapshot: Snapshot) -> Mapping[str, object]:
    """Choose the weight of an index's own head and save it with the statistics; returns figures about it.

    The weight was found on people's questions. The index's own comments and names answer queries made of them by their
    words alone, so these cannot tell what a head adds; they only tell a head that knows nothing of this code, as one of
    another corpus, of too few pairs or of a broken run: it does not lift right functions above the mean of all. Its
    weight is 0. `standing` is that lift in standard deviations, of functions without the field that the query is from.
    """
    head = cast(UnifRanker, load_ranker(HEAD, snapshot))
    parts = cast(HybridRanker, load_ranker("hybrid", snapshot, head=0.0)).open_parts
    documents = Documents(snapshot)
    queries = synthetic_queries(parts, documents)
    weight, standing = 0.0, None
    why = f"its functions make {count(len(queries), 'query', 'queries')} to judge it by; {MIN_QUERIES} are needed"
    if len(queries) >= MIN_QUERIES:
        standings = _standings(head, queries, parts, documents)
        standing = gain(np.zeros(len(queries)), standings)
        lift = f"by {standing.after:+.2f} [{standing.low:+.2f}, {standing.high:+.2f}] standard deviations"
        knows = standing.low > LIFT
        why = f"it {'lifts' if knows else 'does not lift'} right functions above all others: {lift}"
        weight = (TRANSLATING_WEIGHT if head.translated else HEAD_WEIGHT) if knows else 0.0
    save_weight(snapshot.statistics, weight)
    return {"weight": weight, "standing": standing and asdict(standing), "why": why}


def _standings(
    head: UnifRanker, queries: Sequence[SyntheticQuery], parts: Parts, documents: Documents
) -> NDArray[np.float64]:
    """The head's z-score of each query's document without the field that the query is from, [queries]."""
    words, contents = word_table(parts), documents.documents([query.row for query in queries])
    return np.array(
        [
            head.ablated_z_score(
                " ".join(read_intent(query.text, parts.facts.languages).words),
                words,
                query.row,
                document,
                FIELDS_ASKED[query.kind],
            )
            for query, document in zip(queries, contents, strict=True)
        ]
    )


def head_summary(folder: Path) -> str:
    """The weight of the head of an index in the default ranker, and why."""
    head: Mapping[str, Any] = read_description(folder).counts.get("head", {})
    return f"hybrid: weight {head.get('weight', 0):g} of the head: {head.get('why', 'it was not weighed')}"
