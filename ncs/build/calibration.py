"""Fitting the confidence model and the weight of a learned head on synthetic queries, whose answers are known.

Such queries cannot tell what the other signals are worth to people: a comment asks for one function, people for any
that does it, so fitting would switch consensus off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.build.synthetic_queries import (
    ABLATED_FIELDS,
    MAX_QUERIES,
    FieldAblation,
    SyntheticQuery,
    synthetic_queries,
    word_table,
)
from ncs.build.tune import Gain, gain
from ncs.console import count
from ncs.learn.confidence import DEFAULT, FEATURES, fit, save_model
from ncs.search.hybrid import HybridRanker, confidence_features, save_weight
from ncs.search.question import read_intent
from ncs.search.rankers import HEAD, load_ranker
from ncs.search.unif import Spread, UnifRanker
from ncs.storage.documents import Documents
from ncs.storage.snapshot import read_description

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.search.hybrid import Parts
    from ncs.search.ranking import AblatedScores, Ranking
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Scores

MIN_QUERIES = 40
"""Queries below which the model of confidence stays DEFAULT, and a head is not used."""
HITS = 10
UNANSWERED = 0.25
"""Queries without an answer in the index, for one that has; that many are a fifth of all."""
HEAD_SHARE = 0.3
"""The smallest share of MAX_QUERIES for weighing a head."""
HEAD_WEIGHT = 0.3
"""The head's weight, beside 1 of the words: so low that heads of doc comments alone lowered no set of queries."""
TRANSLATING_WEIGHT, FEW_REPOSITORIES = 0.8, 10
"""The weight of a head that translates; it lowered no set of queries over few repositories, but by .04, not beyond
chance, one over 137."""


def calibrate(snapshot: Snapshot) -> Mapping[str, Any]:
    """Fit the confidence model and save it with the statistics; returns figures about it. Deterministic.

    Every query is used twice, the second time without its right document and with the weight UNANSWERED.
    """
    ranker = _hybrid(snapshot)
    queries = synthetic_queries(ranker.open_parts, Documents(snapshot))
    figures: dict[str, Any] = {"questions": {kind: sum(each.kind == kind for each in queries) for kind in MAX_QUERIES}}
    model = DEFAULT
    if len(queries) >= MIN_QUERIES:
        features, right, weights = [], [], []
        for query, scores in zip(queries, FieldAblation(ranker.open_parts).of(queries), strict=True):
            ranking = ranker.rank(query.text, HITS + 1, ablated=scores)
            for hits, weight in ((_first(ranking), 1.0), (_first(ranking, without=query.row), UNANSWERED)):
                features.append(confidence_features(hits, scores))
                right.append(np.array(hits.rows, np.int64) == query.row)
                weights.append(np.full(len(hits.rows), weight))
        model = fit(np.concatenate(features), np.concatenate(right), np.concatenate(weights))
        coefficients = dict(zip(FEATURES, model.coefficients, strict=True))
        figures["confidence"] = {"intercept": model.intercept, **coefficients}
    save_model(model, snapshot.statistics)
    return figures


def _first(ranking: Ranking, *, without: int = -1) -> Ranking:
    """The first HITS of a ranking, one document left out."""
    return ranking.at([position for position, row in enumerate(ranking.rows) if row != without][:HITS])


def _hybrid(snapshot: Snapshot, *, head: float | None = None) -> HybridRanker:
    """The default ranker without tuned weights."""
    return cast(HybridRanker, load_ranker("hybrid", snapshot, head=head, calibrated=False))


def weigh_head(snapshot: Snapshot) -> Mapping[str, object]:
    """Choose the weight of the head of an index and save it with the statistics; returns figures about it.

    Most heads were trained on pairs of doc comment and code, so queries made of doc comments and names only choose
    between a fixed weight and 0. A head is used where it

        stands  puts right documents higher above all others, in standard deviations, than ncs_centred does:
                significantly over all queries, and on names, which flatter it less, at least not lower;
        ranks   lowers the mean reciprocal rank of no kind of query significantly.

    A head of another corpus, of too few pairs or of a broken run fails the first.
    """
    plain, head = _hybrid(snapshot, head=0.0), cast(UnifRanker, load_ranker(HEAD, snapshot))
    parts, documents = plain.open_parts, Documents(snapshot)
    queries = [
        each for each in synthetic_queries(parts, documents, min_share=HEAD_SHARE) if each.kind in ABLATED_FIELDS
    ]
    weight, stands, ranks = 0.0, dict[str, Gain](), dict[str, Gain]()
    why = f"its functions make {count(len(queries), 'query', 'queries')} to judge it by; {MIN_QUERIES} are needed"
    if len(queries) >= MIN_QUERIES:
        ablated = [scores for scores in FieldAblation(parts).of(queries) if scores]
        with_head, z_scores = _with_head(head, queries, ablated, parts, documents)
        kinds, before = np.array([query.kind for query in queries]), _reciprocal_ranks(plain, queries, ablated)
        stands = _gains(kinds, z_scores, np.array([scores.head for scores in with_head]))
        for weight in _weights(head, parts):
            ranks = _gains(kinds, before, _reciprocal_ranks(_hybrid(snapshot, head=weight), queries, with_head))
            helps, why = verdict(stands, ranks)
            if helps:
                break
        else:
            weight = 0.0
    save_weight(snapshot.statistics, weight)
    gains = {
        name: {kind: asdict(each) for kind, each in of.items()} for name, of in (("stands", stands), ("ranks", ranks))
    }
    return {"weight": weight, **gains, "why": why}


def _weights(head: UnifRanker, parts: Parts) -> Sequence[float]:
    """The weights to try, the higher one first."""
    rows = np.arange(len(word_table(parts)))
    few = len(np.unique(parts.facts.file_roles.repositories_of(rows))) < FEW_REPOSITORIES
    return (TRANSLATING_WEIGHT, HEAD_WEIGHT) if head.translated and few else (HEAD_WEIGHT,)


def verdict(stands: Mapping[str, Gain], ranks: Mapping[str, Gain]) -> tuple[bool, str]:
    """Whether a head with these gains is used, and why: the first measure against it, else the one for it."""
    overall = stands["all"]
    lift = f"by {overall.after - overall.before:+.2f} [{overall.low:+.2f}, {overall.high:+.2f}] standard deviations"
    if not overall.wins:
        return False, f"it lifts right functions no higher than ncs_centred does: {lift}"
    if kind := next((kind for kind, each in stands.items() if each.high < 0), ""):
        return False, f"it puts right functions of {kind} queries lower than ncs_centred does"
    if kind := next((kind for kind, each in ranks.items() if each.high < 0), ""):
        change = ranks[kind].after - ranks[kind].before
        return False, f"it lowers the mean reciprocal rank of {kind} queries by {-change:.3f}"
    return True, f"it lifts right functions higher than ncs_centred does, {lift}, and lowers no kind of query"


def head_summary(folder: Path) -> str:
    """The weight of the head of an index in the default ranker, and why."""
    head: Mapping[str, Any] = read_description(folder).counts.get("calibration", {}).get("head", {})
    return f"hybrid: weight {head.get('weight', 0):g} of the head: {head.get('why', 'it was not weighed')}"


def _gains(kinds: NDArray[np.str_], before: Scores, after: Scores) -> dict[str, Gain]:
    """The gain by kind of query and over "all"."""
    groups: dict[str, NDArray[np.bool_]] = {kind: kinds == kind for kind in ABLATED_FIELDS if kind in kinds}
    groups["all"] = np.ones(len(kinds), np.bool_)
    return {kind: gain(before[here], after[here]) for kind, here in groups.items()}


def _with_head(
    head: UnifRanker,
    queries: Sequence[SyntheticQuery],
    ablated: Sequence[AblatedScores],
    parts: Parts,
    documents: Documents,
) -> tuple[list[AblatedScores], Scores]:
    """`ablated` with the head's z-scores, and the z-scores of the same documents by ncs_centred."""
    words, with_head, z_scores = word_table(parts), [], np.zeros(len(queries))
    spread = Spread.of(parts.dense.vectors)
    contents = documents.documents([query.row for query in queries])
    for at, (query, scores, document) in enumerate(zip(queries, ablated, contents, strict=True)):
        text, field = " ".join(read_intent(query.text, parts.facts.languages).words), ABLATED_FIELDS[query.kind]
        z_scores[at] = spread.z_scores(parts.dense.encoder.query(text), np.array([scores.meaning]))[0]
        with_head.append(replace(scores, head=head.ablated_z_score(text, words, query.row, document, field)))
    return with_head, z_scores


def _reciprocal_ranks(
    ranker: HybridRanker, queries: Sequence[SyntheticQuery], ablated: Sequence[AblatedScores]
) -> Scores:
    """The reciprocal rank of each query's document among the first HITS, [queries]."""
    ranks = np.zeros(len(queries))
    for at, (query, scores) in enumerate(zip(queries, ablated, strict=True)):
        rows = list(ranker.rank(query.text, HITS, ablated=scores).rows)
        ranks[at] = 1 / (rows.index(query.row) + 1) if query.row in rows else 0.0
    return ranks
