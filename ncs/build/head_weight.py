"""The weight of a learned head in the default ranker, judged by synthetic queries, each made from its own answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ncs.build.tune import gain
from ncs.console import count
from ncs.search.hybrid import HybridRanker, Parts, save_weight
from ncs.search.question import read_intent
from ncs.search.rankers import HEAD, load_ranker
from ncs.search.unif import UnifRanker
from ncs.storage.document_facts import DocumentFacts
from ncs.storage.documents import Documents
from ncs.storage.file_roles import SOURCE
from ncs.storage.names import Symbol
from ncs.storage.snapshot import Snapshot, read_description
from ncs.storage.words import WordTable
from ncs.text.tokens import content_words, tokenize
from ncs.types import FIELDS, Document, Rows

MIN_QUERIES = 10
"""Fewest queries by which a head is judged: of 3,000 heads of noise one passes MIN_LIFT with ten, 23 with five."""
HEAD_WEIGHT, TRANSLATION_WEIGHT = 0.3, 0.8
"""Weights of a head without and with a translation, found on people's questions; heads of doc comments do no harm."""
MIN_LIFT = 0.5
"""Least lift of a head that is used, in standard deviations: heads of noise have 0, useful ones 2 to 5."""
Kind = Literal["doc", "name"]
"""The field of a query: the first sentence of a doc comment, or a name in words."""
MAX_QUERIES: Mapping[Kind, int] = {"doc": 140, "name": 60}
LARGE, MIN_SHARE = 25_000, 0.3
"""Fewest documents for MAX_QUERIES, and the share of these that the smallest index gets, to bound its time."""
MIN_WORDS, MAX_WORDS = 3, 25
"""Fewest content words and most words of a comment's first sentence."""
COMPARED = 8
"""First words that are compared to find comments that several documents have."""


def weigh_head(snapshot: Snapshot) -> Mapping[str, object]:
    """Choose the weight of an index's own head and save it with the statistics; returns figures about it.

    The weight is 0 for a head that does not lift the documents of synthetic queries above the mean of all documents:
    one that was trained on another corpus or on too few pairs. `standing` is this lift, the mean z-score of these
    documents without the field that the query is from.
    """
    head = cast(UnifRanker, load_ranker(HEAD, snapshot))
    parts = cast(HybridRanker, load_ranker("hybrid", snapshot, head=0.0)).open_parts
    weight, standing = 0.0, None
    with closing(Documents(snapshot)) as documents:
        queries = synthetic_queries(parts, documents)
        why = f"its functions make {count(len(queries), 'query', 'queries')} to judge it by; {MIN_QUERIES} are needed"
        if len(queries) >= MIN_QUERIES:
            standing = gain(np.zeros(len(queries)), _z_scores(head, queries, parts, documents))
            lift = f"by {standing.after:+.2f} [{standing.low:+.2f}, {standing.high:+.2f}] standard deviations"
            is_useful = standing.low > MIN_LIFT
            why = f"it {'lifts' if is_useful else 'does not lift'} right functions above all others: {lift}"
            weight = (TRANSLATION_WEIGHT if head.head.translation else HEAD_WEIGHT) if is_useful else 0.0
    save_weight(snapshot.statistics, weight)
    return {"weight": weight, "standing": standing and asdict(standing), "why": why}


def _z_scores(
    head: UnifRanker, queries: Sequence[SyntheticQuery], parts: Parts, documents: Documents
) -> NDArray[np.float64]:
    """The head's z-score of each query's document without the field that the query is from, [queries]."""
    words, contents = word_table(parts), documents.documents([query.row for query in queries])
    texts = [" ".join(read_intent(query.text, parts.facts.languages).words) for query in queries]
    scored = zip(texts, queries, contents, strict=True)
    return np.array([head.ablated_z_score(text, words, each.row, doc, each.kind) for text, each, doc in scored])


def head_summary(folder: Path) -> str:
    """The weight of the head of an index in the default ranker, and why."""
    head: Mapping[str, Any] = read_description(folder).counts.get("head", {})
    return f"hybrid: weight {head.get('weight', 0):g} of the head: {head.get('why', 'it was not weighed')}"


@dataclass(frozen=True, slots=True)
class SyntheticQuery:
    """A query made of the document in `row`."""

    kind: Kind
    text: str
    row: int


def word_table(parts: Parts) -> WordTable:
    """The words of a new index, which has one segment."""
    return cast(WordTable, parts.facts.words.table())


def synthetic_queries(parts: Parts, documents: Documents) -> list[SyntheticQuery]:
    """At most MAX_QUERIES of each kind, from documents in a fixed random order."""
    words, facts, rng = word_table(parts), parts.facts, np.random.default_rng(0)
    product = np.flatnonzero(facts.file_roles.roles_of(np.arange(len(words))) == SOURCE)
    commented = rng.permutation(np.intersect1d(product, _own_comments(words)))
    shuffled = rng.permutation(product)
    rows: Mapping[Kind, Rows] = {"doc": commented[: 2 * len(commented) // 3], "name": shuffled[: len(shuffled) // 2]}
    share = min(1.0, max(MIN_SHARE, len(words) / LARGE))
    return [
        query
        for kind, most in MAX_QUERIES.items()
        for query in _queries(kind, rows[kind], int(most * share), words, documents, facts)
    ]


def _own_comments(words: WordTable) -> Rows:
    """Rows with a comment that no other row has."""
    at = FIELDS.index("doc") + len(FIELDS) * np.arange(len(words))
    begins, lengths = words.offsets[at], words.offsets[at + 1] - words.offsets[at]
    rows = np.flatnonzero(lengths >= MIN_WORDS)
    heads = np.full((len(rows), COMPARED), -1, np.int32)
    for n in range(COMPARED):
        longer = lengths[rows] > n
        heads[longer, n] = words.ids[begins[rows[longer]] + n]
    _, first, counts = np.unique(heads, axis=0, return_index=True, return_counts=True)
    return np.sort(rows[first[counts == 1]])


def _queries(
    kind: Kind, rows: Rows, most: int, words: WordTable, documents: Documents, facts: DocumentFacts
) -> Iterator[SyntheticQuery]:
    """Queries from the first rows that yield one, among the first 4 * `most` candidates."""
    candidates, n = rows[: 4 * most].tolist(), 0
    for document, row in zip(documents.documents(candidates), candidates, strict=True):
        text = _name(document, facts) if kind == "name" else _sentence(document, words, row)
        if text and n < most:
            n += 1
            yield SyntheticQuery(kind, text, row)


def _sentence(document: Document, words: WordTable, row: int) -> str:
    """The first sentence of a comment, or its first words without stored code; "" if it has too few content words."""
    comment = " ".join(document.words.get("doc", ()))
    comment = comment or " ".join(words.vocabulary.word(int(id)) for id in words.ids_of(row, "doc")[:12])
    text = " ".join(re.split(r"(?<=[.!?:])\s|\n\s*\n", comment.strip())[0].split()[:MAX_WORDS])
    return text if len(set(content_words(tokenize(text)))) >= MIN_WORDS else ""


def _name(document: Document, facts: DocumentFacts) -> str:
    """The words of a unique name of two to six words, else ""."""
    split = tokenize(document.name)
    if not 2 <= len(split) <= 6 or document.name.startswith("__"):
        return ""
    if len(facts.definitions.match(Symbol(document.name))[0]) != 1:
        return ""
    return " ".join(split)
