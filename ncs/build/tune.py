"""`ncs tune`: weights of the default ranker from a user's own queries and their answers, measured before they are used.

The score of a candidate is s = sum of factor_i * signal_i, signals in their default weights; the loss is that of
choosing the right one by chance in proportion to exp(b * s), which is convex in b * factor:

    loss = mean over queries of -log sum over right rows of softmax(b * s)
           + PENALTY / n * sum over signals of (factor_i - factor of the lexical signal)^2

b is the best sharpness for the default weights. In the end all factors are divided by the lexical one. The weights
are a file in the index folder, kept by builds and updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ncs.console import count
from ncs.errors import BadInput
from ncs.learn.confidence import TUNED, save_weights
from ncs.search.feedback import Feedback
from ncs.search.hybrid import CANDIDATES, HybridRanker
from ncs.search.rankers import load_ranker
from ncs.search.ranking import Ranking
from ncs.storage.commit import open_writer
from ncs.storage.snapshot import Snapshot
from ncs.storage.trust import check_trust
from ncs.types import Scores

WEIGHTS: Mapping[str, tuple[str, ...]] = {
    "meaning": ("meaning",),
    "name": ("naming",),
    "definition": ("definition",),
    "consensus": ("consensus",),
    "file": ("title", "neighbours"),
    "general": ("general",),
    "learnt": ("head",),
}
"""Signal -> its weights of HybridRanker; the last two only if the index uses such a head."""
MIN_QUERIES = 10
FOLDS = 5
PENALTY = 10.0
"""Penalty, in nats, of a weight that is 0 or twice its default."""
SHARPNESS = np.exp(np.linspace(0, 4, 17))
DEPTH = 10
RESAMPLES = 5_000
MAX_FACTOR = 10.0


@dataclass(frozen=True, slots=True)
class Example:
    """The candidates of a query: signals [n, names], lexical first, and the positions of the right ones, [m]."""

    signals: Scores
    right: NDArray[np.int64]

    @classmethod
    def of(cls, ranking: Ranking, right_rows: Sequence[int], names: Sequence[str]) -> Example:
        """An example from a ranking and the right rows."""
        if not ranking.rows:
            return cls(np.zeros((0, len(names))), np.zeros(0, np.int64))
        factor = np.prod(list(ranking.factors.values()), axis=0)
        columns = [ranking.signals[name] * factor for name in names]
        return cls(np.column_stack(columns), np.flatnonzero(np.isin(ranking.rows, right_rows)))

    def reciprocal_rank(self, factors: Scores) -> float:
        """1 / rank of the first right candidate, the last among ties; 0 beyond DEPTH."""
        if not len(self.right):
            return 0.0
        scores = self.signals @ factors
        rank = int((scores >= scores[self.right].max()).sum())
        return 1 / rank if rank <= DEPTH else 0.0


def fit_factors(examples: Sequence[Example]) -> Scores:
    """The factor of each signal, 1 for the lexical one; all 1 if no query has a right candidate."""
    from scipy.optimize import minimize  # half a second, which only `ncs tune` spends

    ones = np.ones(examples[0].signals.shape[1])
    examples = [example for example in examples if len(example.right)]
    if not examples:
        return ones
    sharpness = min(SHARPNESS, key=lambda sharp: _loss(sharp * ones, examples)[0])

    def loss(at: Scores) -> tuple[float, Scores]:
        value, slope = _loss(sharpness * at, examples)
        away, scale = at - at[0], PENALTY / len(examples)
        pull = 2 * scale * away
        pull[0] = -pull.sum()
        return value + scale * float(away @ away), sharpness * slope + pull

    bounds = [(1 / MAX_FACTOR, None), *[(0.0, None)] * (len(ones) - 1)]
    options = {"ftol": 1e-12, "gtol": 1e-8, "maxiter": 1000}
    best = minimize(loss, ones, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x
    factors: Scores = np.minimum(np.round(best / best[0], 4), MAX_FACTOR)
    return factors


def _loss(at: Scores, examples: Sequence[Example]) -> tuple[float, Scores]:
    """The mean loss without the penalty, and its slope."""
    total, slope = 0.0, np.zeros(len(at))
    for example in examples:
        scores = example.signals @ at  # [n]
        chances = np.exp(scores - scores.max())
        right = chances[example.right]
        total += float(np.log(chances.sum()) - np.log(max(right.sum(), 1e-300)))
        slope += chances / chances.sum() @ example.signals
        slope -= right / max(right.sum(), 1e-300) @ example.signals[example.right]
    return total / len(examples), slope / len(examples)


@dataclass(frozen=True, slots=True)
class Gain:
    """Means before and after, and the 95 % bootstrap interval of their difference, paired."""

    questions: int
    before: float
    after: float
    low: float
    high: float

    @property
    def wins(self) -> bool:
        """Whether the difference is above chance."""
        return self.low > 0


def gain(before: Scores, after: Scores) -> Gain:
    """The gain of paired values of the same queries, [n] each, n > 0."""
    differences = after - before
    means = np.random.default_rng(0).choice(differences, (RESAMPLES, len(differences))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Gain(len(before), *(round(float(value), 4) for value in (before.mean(), after.mean(), low, high)))


def cross_validate(examples: Sequence[Example], *, before: Scores, unmeasured: Sequence[Example] = ()) -> Gain:
    """The gain in reciprocal rank over the factors `before`, cross-validated; unmeasured: for training only."""
    order = np.random.default_rng(0).permutation(len(examples))
    old, new = np.zeros(len(examples)), np.zeros(len(examples))
    for start in range(FOLDS):
        fold = order[start::FOLDS]
        factors = fit_factors([*(examples[i] for i in np.setdiff1d(order, fold)), *unmeasured])
        for i in fold:
            old[i] = examples[i].reciprocal_rank(before)
            new[i] = examples[i].reciprocal_rank(factors)
    return gain(old, new)


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of `tune`. usable: queries with a right function among the candidates; wrong: functions judged wrong;
    wrong_alone: those of queries without a right one; before, after: weights of HybridRanker; gain: in MRR@10,
    cross-validated."""

    questions: int
    usable: int
    wrong: int
    wrong_alone: int
    gain: Gain
    before: Mapping[str, float]
    after: Mapping[str, float]
    written: bool


def tune(snapshot: Snapshot, feedback: Sequence[Feedback], *, force: bool = False) -> Tuned:
    """Fit to all queries, judge by cross-validation, write the weights if that wins or with `force`.

    For a query with wrong functions only, all other candidates count as right, in training only. Raises BadInput for
    fewer than MIN_QUERIES queries with right functions, or none among the candidates; IndexBusy; and NcsError for an
    index that cannot be written or is not trusted.
    """
    check_trust(snapshot.folder, snapshot.description)
    answered, unanswered = [each for each in feedback if each.rows], [each for each in feedback if not each.rows]
    if len(answered) < MIN_QUERIES:
        raise BadInput(
            f"{count(len(answered), 'query', 'queries')} with right functions: too few to learn from;"
            f" give at least {MIN_QUERIES}"
        )
    default, current = (
        cast(HybridRanker, load_ranker("hybrid", snapshot, calibrated=calibrated)) for calibrated in (False, True)
    )
    defaults, before = asdict(default.weights), asdict(current.weights)
    parts = default.open_parts
    unused = [name for name, part in (("general", parts.general), ("learnt", parts.head)) if part is None]
    signals = [name for name in WEIGHTS if name not in unused]
    names = ["lexical", *signals]
    examples = [Example.of(default.rank(each.text, CANDIDATES), each.rows, names) for each in answered]
    usable = sum(len(example.right) > 0 for example in examples)
    if not usable:
        raise BadInput(f"none of the functions is among the first {CANDIDATES} of its query; are they of this index?")
    unmeasured = []
    for each in unanswered:
        ranking = default.rank(each.text, CANDIDATES)
        unmeasured.append(Example.of(ranking, [row for row in ranking.rows if row not in each.wrong], names))
    current_factors = [1.0]
    for name in signals:
        weight = WEIGHTS[name][0]
        current_factors.append(before[weight] / defaults[weight] if defaults[weight] else 1.0)
    gain = cross_validate(examples, before=np.array(current_factors), unmeasured=unmeasured)
    factors = fit_factors([*examples, *unmeasured]).tolist()
    tuned = {
        weight: round(defaults[weight] * factor, 4)
        for name, factor in zip(signals, factors[1:], strict=True)
        for weight in WEIGHTS[name]
        if factor != 1
    }
    if written := gain.wins or force:
        with open_writer(snapshot.folder):
            save_weights(tuned, snapshot.folder)
    wrong, wrong_alone = (sum(len(each.wrong) for each in some) for some in (feedback, unanswered))
    return Tuned(len(answered), usable, wrong, wrong_alone, gain, before, {**defaults, **tuned}, written)


def reset(snapshot: Snapshot) -> bool:
    """Remove the tuned weights; whether there were any."""
    with open_writer(snapshot.folder):
        existed = (snapshot.folder / TUNED).is_file()
        (snapshot.folder / TUNED).unlink(missing_ok=True)
    return existed


def summary(tuned: Tuned) -> str:
    """The result as text, in three or four lines."""
    gain = tuned.gain
    changed = [
        f"{name} {tuned.before[name]:.3g} -> {value:.3g}"
        for name, value in tuned.after.items()
        if abs(value - tuned.before[name]) > 0.0005 * max(1.0, value)
    ]
    verdict = "used from now on; undo with: ncs tune --reset"
    if not tuned.written:
        verdict = "not used: the difference may be chance; add queries, or use them anyway with --force"
    elif not gain.wins:
        verdict = "used because of --force, although the difference may be chance; undo with: ncs tune --reset"
    functions = "function" if tuned.wrong == 1 else "functions"
    wrong_line = f"{tuned.wrong} {functions} judged wrong, {tuned.wrong_alone} of them for queries without a right one"
    return "\n".join(
        [
            f"{count(tuned.questions, 'query', 'queries')}, {tuned.usable} with a right hit in the first {CANDIDATES}",
            *([wrong_line] if tuned.wrong else []),
            f"mean reciprocal rank, each query with weights learned from the others ({FOLDS} folds): "
            f"{gain.before:.3f} -> {gain.after:.3f}, difference {gain.after - gain.before:+.3f}"
            f" [{gain.low:+.3f}, {gain.high:+.3f}]",
            f"weights: {', '.join(changed) or 'unchanged'}",
            verdict,
        ]
    )
