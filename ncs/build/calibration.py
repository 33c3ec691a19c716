"""Fitting the confidence model and the weight of a learned head on synthetic queries, whose answers are known.

`calibrate` fits the model of confidence; `weigh_head` decides whether the default ranker uses a learned head. Such
queries cannot tell what the other signals are worth to people: a comment asks for one function, people for any that
does it, so fitting would switch consensus off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.errors import BadInput
from ncs.learn import confidence
from ncs.learn.confidence import DEFAULT, Model, save_model
from ncs.learn.synthetic_queries import HIDDEN, MOST, SyntheticQuery, synthetic_queries
from ncs.learn.tfidf import tfidf, unit_rows
from ncs.learn.tuning import Gain, gain
from ncs.search.confidence_features import confidence_features
from ncs.search.expansion import expand
from ncs.search.hybrid import HybridRanker
from ncs.search.question import read_intent
from ncs.search.rankers import load_ranker
from ncs.search.ranking import AblatedScores, Ranking
from ncs.search.signals.head import NAME, HeadVectors, Spread, save_weight
from ncs.storage.documents import Documents
from ncs.storage.snapshot import read_description
from ncs.text.stems import stem_all
from ncs.types import NCS_FIELDS, Field

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.search.candidates import Parts
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

    Scores = NDArray[np.float64]

LEAST = 40
"""Queries below which the model of confidence stays DEFAULT, and a head is not used."""
HITS = 10
UNANSWERED = 0.25
"""Queries without an answer in the index, for one that has; that many are a fifth of all."""
HEAD_SHARE = 0.3
"""Of MOST queries, at least, where a head is weighed."""
HEAD_WEIGHT = 0.3
"""Of the signal `learnt`, beside 1 of the words: so low that heads of doc comments alone lowered no set of queries."""
TRANSLATING_WEIGHT = 0.8
"""Of a head that translates; it lowered no set of queries over few repositories, but by .04, not beyond chance, one
over 137."""
FEW = 10
"""Repositories."""
SAMPLE, RUN = 4_096, 64
"""Documents whose mean vector stands for the mean of all; how many of them in a row."""


def calibrate(snapshot: Snapshot) -> Mapping[str, Any]:
    """Fit the confidence model and save it with the statistics; returns figures about it. Deterministic."""
    ranker = _hybrid(snapshot)
    words, documents = _words(ranker.open_parts), Documents(snapshot)
    queries = synthetic_queries(words, documents, ranker.open_parts.facts)
    counts = {kind: sum(query.kind == kind for query in queries) for kind in MOST}
    if len(queries) < LEAST:
        save_model(DEFAULT, snapshot.statistics)
        return {"questions": counts}
    ablated = _ablated_scores(ranker.open_parts, words, queries)
    rankings = [ranker.rank(each.text, HITS + 1, ablated=scores) for each, scores in zip(queries, ablated, strict=True)]
    model, reliability = _fit(queries, ablated, rankings)
    save_model(model, snapshot.statistics)
    return {"questions": counts, "confidence": confidence.describe(model), "reliability": reliability}


def _fit(
    queries: Sequence[SyntheticQuery], ablated: Sequence[AblatedScores | None], rankings: Sequence[Ranking]
) -> tuple[Model, dict[str, Any]]:
    """The model fitted to all queries, and its reliability by two-fold cross-validation.

    Every query is used twice, the second time without its right document and with the weight UNANSWERED.
    """
    parts = [
        (confidence_features(hits, scores), np.array(hits.rows, np.int64) == query.row)
        for query, scores, ranking in zip(queries, ablated, rankings, strict=True)
        for hits in (_first(ranking), _first(ranking, without=query.row))
    ]
    lengths = [len(correct) for _, correct in parts]
    weights = np.repeat(np.tile([1.0, UNANSWERED], len(parts) // 2), lengths)
    features, correct = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    half = np.repeat(np.arange(len(parts)) // 2 % 2, lengths)
    probabilities = np.zeros(len(correct))
    for fold in (0, 1):
        training_rows = half != fold
        model = confidence.fit(features[training_rows], correct[training_rows], weights=weights[training_rows])
        probabilities[half == fold] = model.probabilities(features[half == fold])
    first = (np.cumsum(lengths) - lengths)[np.array(lengths) > 0]
    reliability = {
        "hits": asdict(confidence.reliability(probabilities, correct, weights=weights)),
        "first_hits": asdict(confidence.reliability(probabilities[first], correct[first], weights=weights[first])),
    }
    return confidence.fit(features, correct, weights=weights, towards=DEFAULT), reliability


def _first(ranking: Ranking, *, without: int = -1) -> Ranking:
    """The first HITS of a ranking, one document left out."""
    return ranking.at([position for position, row in enumerate(ranking.rows) if row != without][:HITS])


def _hybrid(snapshot: Snapshot, *, head: float | None = None) -> HybridRanker:
    """The default ranker without tuned weights."""
    ranker = HybridRanker(head=head, calibrated=False)
    ranker.load(snapshot)
    return ranker


def _words(parts: Parts) -> WordTable:
    table = parts.facts.words.table()
    if table is None:
        raise BadInput("only an index of one segment is calibrated; build it again")
    return table


def _ablated_scores(parts: Parts, words: WordTable, queries: Sequence[SyntheticQuery]) -> list[AblatedScores | None]:
    ablation = FieldAblation(parts, words)
    return [
        ablation.ablate(each.text, each.row, HIDDEN[each.kind]) if each.kind in HIDDEN else None for each in queries
    ]


class FieldAblation:
    """Scores single documents again as if one field of them were empty; all other documents keep theirs.

    Word vectors and document frequencies learned from that field stay; leaving them out would take one build per query.
    """

    def __init__(self, parts: Parts, words: WordTable) -> None:
        self._parts, self._words, self._encoder = parts, words, parts.dense.encoder
        self._mean_length = float(parts.lexical.postings.lengths().mean(dtype=np.float64)) or 1.0
        self._unit = unit_rows(self._encoder.vectors)
        self._mean = self._mean_vector() if parts.dense.centre else np.zeros(self._unit.shape[1], np.float32)

    def ablate(self, text: str, row: int, field: Field) -> AblatedScores:
        """What the rest of a document scores for a query."""
        words = list(read_intent(text, self._parts.facts.languages).words)
        expansion = expand(words, self._parts.lexical.postings, lambda: list(self._words.vocabulary))
        plain, coverage = self.lexical(words, row, field)
        return AblatedScores(
            row,
            self.impacts(expansion.query, row, field),
            float(self.vector(row, field) @ self._encoder.query(" ".join(words))),
            coverage,
            name=0.0 if field == "name" else None,
            spelling=self.impacts(expansion.other_spellings, row, field),
            plain=plain,
        )

    def lexical(self, words: Sequence[str], row: int, field: Field | None) -> tuple[float, float]:
        """The BM25 score of a row without a field, and the share of the query's idf that its words have."""
        stems, idf = stem_all(words), self._parts.lexical.postings.idf(list(words))
        frequencies, _ = self._frequencies(row, field)
        score = self.impacts({stem: float(stems.count(stem)) for stem in stems}, row, field)
        return score, sum(weight for stem, weight in idf.items() if frequencies[stem]) / max(sum(idf.values()), 1e-9)

    def impacts(self, weights: Mapping[str, float], row: int, field: Field | None) -> float:
        """The BM25 score of a row without a field (None: with all fields), for stems of these weights."""
        postings, (frequencies, saturation) = self._parts.lexical.postings, self._frequencies(row, field)
        score = 0.0
        for stem, weight in weights.items():
            if frequency := frequencies[stem]:
                score += weight * postings.idf_of(stem) * frequency / (frequency + saturation)
        return score

    def _frequencies(self, row: int, field: Field | None) -> tuple[Mapping[str, float], float]:
        """The frequency of each stem in a row, weighted by field and without one field, and the saturation of BM25."""
        ranker, length = self._parts.lexical, 0.0
        frequencies: dict[str, float] = defaultdict(float)
        for name, weight in ranker.weights.items():
            if name == field or not weight:
                continue
            ids = self._words.ids_of(row, name)
            length += weight * len(ids)
            for stem in stem_all(self._words.vocabulary.word(int(id)) for id in ids):
                frequencies[stem] += weight
        return frequencies, ranker.k1 * (1 - ranker.b + ranker.b * length / self._mean_length)

    def vector(self, row: int, field: Field | None) -> Matrix:
        """The unit vector [d] of a row without a field, centered where the ranker centers."""
        ids = np.concatenate([self._words.ids_of(row, name) for name in NCS_FIELDS if name != field])
        ids, counts = np.unique(ids, return_counts=True)
        weights = ((1 + np.log(counts)) * self._encoder.idf[ids]).astype(np.float32)
        vector: Matrix = unit_rows((weights @ self._unit[ids])[None])[0]
        return unit_rows((vector - self._mean)[None])[0] if vector.any() else vector

    def _mean_vector(self) -> Matrix:
        """The mean of all documents, or of runs of RUN documents at evenly spaced rows."""
        n = len(self._words)
        starts, run = [0], n
        if n > SAMPLE:
            starts, run = np.linspace(0, n - RUN, SAMPLE // RUN).astype(int).tolist(), RUN
        means = [
            unit_rows(tfidf(self._words, self._encoder.idf, at, at + run) @ self._unit).mean(axis=0, dtype=np.float64)
            for at in starts
        ]
        mean: Matrix = np.mean(means, axis=0).astype(np.float32)
        return mean


@dataclass(frozen=True, slots=True)
class HeadWeight:
    """The weight of a head, and its effect by kind of query and over "all".

    stands: the z-score of the right document among all (standard deviations above their mean), beside ncs_centred.
    ranks: the mean reciprocal rank at ten of the default ranker, without the head and with it. why: in one line.
    """

    weight: float
    stands: Mapping[str, Gain]
    ranks: Mapping[str, Gain]
    why: str


def weigh_head(snapshot: Snapshot) -> Mapping[str, object]:
    """Choose the weight of the head of an index and save it with the statistics; returns figures about it.

    Most heads were trained on pairs of doc comment and code, so queries made of doc comments and names only choose
    between a fixed weight and 0. A head is used where it

        stands  puts right documents higher above all others than ncs_centred does: significantly over all queries, and
                on names, which flatter it less, at least not lower;
        ranks   lowers the mean reciprocal rank of no kind of query significantly.

    A head of another corpus, of too few pairs or of a broken run fails the first.
    """
    head = load_ranker(NAME, snapshot)
    if not isinstance(head, HeadVectors):
        raise BadInput(f"ranker {NAME!r} has no vectors of its own")
    result = _weigh(head, snapshot)
    save_weight(snapshot.statistics, result.weight)
    return asdict(result)


def _weigh(head: HeadVectors, snapshot: Snapshot) -> HeadWeight:
    plain = _hybrid(snapshot, head=0.0)
    parts, documents = plain.open_parts, Documents(snapshot)
    words = _words(parts)
    queries = synthetic_queries(words, documents, parts.facts, least_share=HEAD_SHARE)
    queries = [query for query in queries if query.kind in HIDDEN]
    if len(queries) < LEAST:
        return HeadWeight(0.0, {}, {}, f"its functions make {len(queries)} queries to judge it by; {LEAST} are needed")
    ablated = [cast(AblatedScores, scores) for scores in _ablated_scores(parts, words, queries)]
    with_head = _with_head_scores(head, queries, ablated, parts, words, documents)
    kinds, before = np.array([query.kind for query in queries]), _reciprocal_ranks(plain, queries, ablated)
    z_scores = _gains(kinds, _z_scores(parts, queries, ablated), np.array([scores.head for scores in with_head]))
    repositories = np.unique(parts.facts.file_roles.repositories_of(np.arange(len(words))))
    result = HeadWeight(0.0, z_scores, {}, "")
    for weight in (TRANSLATING_WEIGHT, HEAD_WEIGHT) if head.translates and len(repositories) < FEW else (HEAD_WEIGHT,):
        lifted = _hybrid(snapshot, head=weight)
        ranks = _gains(kinds, before, _reciprocal_ranks(lifted, queries, with_head))
        result = HeadWeight(weight if helps(z_scores, ranks) else 0.0, z_scores, ranks, why(z_scores, ranks))
        if result.weight:
            break
    return result


def helps(z_scores: Mapping[str, Gain], ranks: Mapping[str, Gain]) -> bool:
    """Whether a head with these gains is used."""
    lifts = z_scores["all"].wins and all(each.high >= 0 for each in z_scores.values())
    return lifts and all(each.high >= 0 for each in ranks.values())


def why(z_scores: Mapping[str, Gain], ranks: Mapping[str, Gain]) -> str:
    """The reason in one line: the first measure against the head, else the one for it."""
    over = z_scores["all"]
    lift = f"by {over.after - over.before:+.2f} [{over.low:+.2f}, {over.high:+.2f}] standard deviations"
    if not over.wins:
        return f"it lifts right functions no higher than ncs_centred does: {lift}"
    if kind := next((kind for kind, each in z_scores.items() if each.high < 0), ""):
        return f"it puts right functions of {kind} queries lower than ncs_centred does"
    if kind := next((kind for kind, each in ranks.items() if each.high < 0), ""):
        change = ranks[kind].after - ranks[kind].before
        return f"it lowers the mean reciprocal rank of {kind} queries by {-change:.3f}"
    return f"it lifts right functions higher than ncs_centred does, {lift}, and lowers no kind of query"


def head_summary(folder: Path) -> str:
    """The weight of the head of an index in the default ranker, and why."""
    head: Mapping[str, Any] = read_description(folder).counts.get("calibration", {}).get("head", {})
    return f"hybrid: weight {head.get('weight', 0):g} of the head: {head.get('why', 'it was not weighed')}"


def _gains(kinds: NDArray[np.str_], before: Scores, after: Scores) -> dict[str, Gain]:
    groups: dict[str, NDArray[np.bool_]] = {kind: kinds == kind for kind in HIDDEN if kind in kinds}
    groups["all"] = np.ones(len(kinds), np.bool_)
    return {kind: gain(before[here], after[here]) for kind, here in groups.items()}


def _z_scores(parts: Parts, queries: Sequence[SyntheticQuery], ablated: Sequence[AblatedScores]) -> Scores:
    """The z-scores of right documents without their fields by plain word vectors, [queries]."""
    spread, z_scores = Spread.of(parts.dense.vectors), np.zeros(len(queries))
    for at, (query, scores) in enumerate(zip(queries, ablated, strict=True)):
        vector = parts.dense.encoder.query(" ".join(read_intent(query.text, parts.facts.languages).words))
        z_scores[at] = spread.z_scores(vector, np.array([scores.meaning]))[0]
    return z_scores


def _with_head_scores(
    head: HeadVectors,
    queries: Sequence[SyntheticQuery],
    ablated: Sequence[AblatedScores],
    parts: Parts,
    words: WordTable,
    documents: Documents,
) -> list[AblatedScores]:
    """`ablated` with the head's z-score of each right document without the field that its query was taken from."""
    spread, with_head = Spread.of(head.vectors), []
    pairs = zip(queries, ablated, documents.documents([query.row for query in queries]), strict=True)
    for query, scores, document in pairs:
        text, field = " ".join(read_intent(query.text, parts.facts.languages).words), HIDDEN[query.kind]
        vector = head.query_vector(text)
        rest = head.ablated_vectors(words, [query.row], [document], field)[0]
        z_score = float(spread.z_scores(vector, np.array([float(rest @ vector)]))[0])
        with_head.append(
            replace(scores, head=z_score + head.ablated_translation_z_score(text, words, query.row, field))
        )
    return with_head


def _reciprocal_ranks(
    ranker: HybridRanker, queries: Sequence[SyntheticQuery], ablated: Sequence[AblatedScores]
) -> Scores:
    """The reciprocal rank of each query's document among the first HITS, [queries]."""
    ranks = np.zeros(len(queries))
    for at, (query, scores) in enumerate(zip(queries, ablated, strict=True)):
        rows = list(ranker.rank(query.text, HITS, ablated=scores).rows)
        ranks[at] = 1 / (rows.index(query.row) + 1) if query.row in rows else 0.0
    return ranks
