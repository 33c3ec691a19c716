"""What an index learns at its build from questions made of its own documents; no label is read.

How probable it is that a hit is right, and how much meaning and names count beside the words; the latter only where
it wins on a half that was held out. What such questions tell of the other signals is wrong for people's questions
(DESIGN.md): a comment asks for one function, people for any that does it, so consensus would be switched off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.learn import confidence, learning
from ncs.learn.confidence import BUILT, DEFAULT, Learnt, Model
from ncs.learn.field_ablation import Hiding
from ncs.learn.synthetic_queries import HIDDEN, MOST, Sampled, sample
from ncs.search.bm25 import Bm25Ranker
from ncs.search.confidence_features import confidence_features
from ncs.search.hybrid import HEAD, HybridRanker, Weights
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import create_ranker
from ncs.storage.document_facts import DocumentFacts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.search.ranking import Hidden, Ranking
    from ncs.storage.documents import Store

    Scores = NDArray[np.float64]

NAMES = ("lexical", "meaning", "name")
"""Signals that questions of this kind tell something about."""
WEIGHTS: Mapping[str, tuple[str, ...]] = {
    "meaning": ("meaning",),
    "name": ("naming",),
    "definition": ("definition",),
    "consensus": ("consensus",),
    "file": ("title", "neighbours"),
    "learnt": ("head",),
}
"""Signal -> the weights of HybridRanker that are in it; `learnt` is there with a head only."""
LEAST = 40
"""Questions below which the defaults stay."""
HITS = 10
UNANSWERED = 0.25
"""Questions without an answer in the index, for one that has; that many are a fifth of all."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was learnt, and figures about it for the manifest."""

    learnt: Learnt
    figures: Mapping[str, Any]


def calibrated(folder: Path, store: Store) -> Mapping[str, Any]:
    """Learn from a data folder that is complete but for this, and write BUILT into it; the figures."""
    lexical, dense = Bm25Ranker("bm25"), create_ranker("ncs_centred")
    lexical.load(folder)
    dense.load(folder)
    found = calibrate(lexical, cast(NcsRanker, dense), DocumentFacts.load(folder), store)
    found.learnt.save(folder / BUILT)
    return found.figures


def calibrate(lexical: Bm25Ranker, dense: NcsRanker, facts: DocumentFacts, store: Store) -> Calibration:
    """From at most 300 questions; the same index gives the same. Seconds."""
    ranker = HybridRanker(calibrated=False)
    ranker.open((lexical, dense), facts)
    questions = sample(facts.words, store, facts)
    counts = {kind: sum(question.kind == kind for question in questions) for kind in MOST}
    if len(questions) < LEAST:
        return Calibration(Learnt(), {"questions": counts})
    hiding = Hiding(facts.words, lexical, dense, facts.languages)
    hidden = [hiding.hide(q.text, q.row, HIDDEN[q.kind]) if q.kind in HIDDEN else None for q in questions]
    enough = counts["doc"] >= LEAST  # else the weights stay, and the first hits are all that is looked at
    depth = [HEAD if enough and q.kind in HIDDEN else HITS + 1 for q in questions]
    rankings = [ranker.rank(q.text, k, hidden=h) for q, k, h in zip(questions, depth, hidden, strict=True)]
    model, reliable = _confidence(ranker, questions, hidden, rankings)
    figures: dict[str, Any] = {
        "questions": counts,
        "weights": None,
        "held_out": None,
        "confidence": confidence.describe(model),
    }
    if enough:
        figures |= _weights(questions, rankings, ranker.weights)
    weights = figures["weights"] if figures["held_out"] and figures["held_out"]["wins"] else {}
    return Calibration(Learnt(weights, model), {**figures, **reliable})


def weights_of(factors: Sequence[float], names: Sequence[str], weights: Weights) -> dict[str, float]:
    """Factors of signals as weights of HybridRanker, where they were `weights`; those that are 1 are left out."""
    found = {}
    for name, factor in zip(names, factors, strict=True):
        for weight in WEIGHTS.get(name, ()):
            if factor != 1:
                found[weight] = round(asdict(weights)[weight] * float(factor), 4)
    return found


def _weights(questions: Sequence[Sampled], rankings: Sequence[Ranking], weights: Weights) -> dict[str, Any]:
    """Learnt on one half, judged on the other."""
    known = [
        learning.asked(ranking, [question.row], NAMES, without=("name",) if question.kind == "name" else ())
        for question, ranking in zip(questions, rankings, strict=True)
        if question.kind in HIDDEN
    ]
    factors = learning.learn(known[::2], len(NAMES))
    before = np.array([each.reciprocal_rank(np.ones(len(NAMES))) for each in known[1::2]])
    after = np.array([each.reciprocal_rank(factors) for each in known[1::2]])
    found = learning.gain(before, after)
    return {"weights": weights_of(factors.tolist(), NAMES, weights), "held_out": {**asdict(found), "wins": found.wins}}


def _confidence(
    ranker: HybridRanker, questions: Sequence[Sampled], hidden: Sequence[Hidden | None], rankings: Sequence[Ranking]
) -> tuple[Model, dict[str, Any]]:
    """The model from all questions; how reliable one is on questions it was not fitted to, by two halves.

    Every question is asked twice, the second time with the right document out of the index, which counts UNANSWERED
    as much.
    """
    parts = [
        (confidence_features(shown, hide), np.array(shown.rows, np.int64) == question.row)
        for question, hide, ranking in zip(questions, hidden, rankings, strict=True)
        for shown in (_first(ranking), _first(ranking, without=question.row))
    ]
    lengths = [len(right) for _, right in parts]
    weights = np.repeat(np.tile([1.0, UNANSWERED], len(parts) // 2), lengths)
    rows, right = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    half = np.repeat(np.arange(len(parts)) // 2 % 2, lengths)
    said = np.zeros(len(right))
    for fold in (0, 1):
        other = half != fold
        learnt = confidence.fit(rows[other], right[other], weights=weights[other])
        said[half == fold] = learnt.probabilities(rows[half == fold])
    first = np.cumsum(lengths) - lengths
    first = first[np.array(lengths) > 0]
    figures = {
        "hits": confidence.reliability(said, right, weights=weights),
        "first_hits": confidence.reliability(said[first], right[first], weights=weights[first]),
    }
    model = confidence.fit(rows, right, weights=weights, towards=DEFAULT)
    return model, {"reliability": {k: asdict(v) for k, v in figures.items()}}


def _first(ranking: Ranking, *, without: int = -1) -> Ranking:
    """The first HITS of a ranking, one document left out."""
    return ranking.at([position for position, row in enumerate(ranking.rows) if row != without][:HITS])
