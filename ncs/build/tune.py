"""`ncs tune`: weights of the default ranker from a user's own queries and their answers, measured before they are used.

The weights are one file in the index folder: builds and updates keep it, `reset` removes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, IndexFolderError
from ncs.learn.confidence import TUNED, save_weights
from ncs.learn.tuning import Example, Gain, cross_validate, fit_factors
from ncs.search.hybrid import HEAD, HybridRanker

if TYPE_CHECKING:
    from ncs.search.feedback import Feedback
    from ncs.storage.snapshot import Snapshot

WEIGHTS: Mapping[str, tuple[str, ...]] = {
    "meaning": ("meaning",),
    "name": ("naming",),
    "definition": ("definition",),
    "consensus": ("consensus",),
    "file": ("title", "neighbours"),
    "learnt": ("head",),
}
"""Signal -> the weights of HybridRanker that are in it; `learnt` is there where the index uses a head."""
LEAST = 10
"""The fewest queries to learn from."""
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of `tune`. found: queries with a right function among the candidates.

    wrong: functions judged not to answer; wrong_alone: those of queries without a right function. before, after:
    weights of HybridRanker; gain: mean reciprocal rank at ten of the queries with right functions, cross-validated.
    """

    questions: int
    found: int
    wrong: int
    wrong_alone: int
    gain: Gain
    before: Mapping[str, float]
    after: Mapping[str, float]
    written: bool


def tune(snapshot: Snapshot, feedback: Sequence[Feedback], *, force: bool = False) -> Tuned:
    """Fit to all queries, judge by cross-validation, write where that wins or is forced.

    For a query with wrong functions only, all other candidates count as right: such queries are fitted, not measured.
    Raises BadInput for fewer than LEAST queries with right functions, or none whose function is found at all;
    IndexFolderError where the index cannot be written.
    """
    answered, unanswered = [each for each in feedback if each.rows], [each for each in feedback if not each.rows]
    if len(answered) < LEAST:
        raise BadInput(f"{len(answered)} queries with right functions are too few to learn from; give at least {LEAST}")
    default, current = HybridRanker(calibrated=False), HybridRanker()
    for ranker in (default, current):
        ranker.load(snapshot)
    weights = asdict(default.weights)
    names = ("lexical", *(name for name in WEIGHTS if name != "learnt" or default.open_parts.head))
    examples = [Example.of(default.rank(each.text, HEAD), each.rows, names) for each in answered]
    negatives_only = [_all_but(each.wrong, default, each.text, names) for each in unanswered]
    found = sum(len(example.right) > 0 for example in examples)
    if not found:
        raise BadInput(f"none of the functions is among the first {HEAD} of its query; are they of this index?")
    before = [_ratio(asdict(current.weights), weights, WEIGHTS[name][0]) for name in names[1:]]
    gain = cross_validate(examples, len(names), folds=FOLDS, before=np.array([1.0, *before]), beside=negatives_only)
    factors = fit_factors([*examples, *negatives_only], len(names)).tolist()
    tuned = tuned_weights(factors[1:], names[1:], weights)
    if written := gain.wins or force:
        _write(snapshot, tuned)
    wrong, wrong_alone = (sum(len(each.wrong) for each in some) for some in (feedback, unanswered))
    return Tuned(len(answered), found, wrong, wrong_alone, gain, asdict(current.weights), {**weights, **tuned}, written)


def _ratio(current: Mapping[str, float], built: Mapping[str, float], name: str) -> float:
    return current[name] / built[name] if built[name] else 1.0


def tuned_weights(factors: Sequence[float], names: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    """Factors of signals as weights of HybridRanker, where they were `weights`; those that are 1 are left out."""
    return {
        weight: round(weights[weight] * factor, 4)
        for name, factor in zip(names, factors, strict=True)
        for weight in WEIGHTS[name]
        if factor != 1
    }


def _all_but(wrong: Sequence[int], ranker: HybridRanker, text: str, names: Sequence[str]) -> Example:
    """A query of which only wrong rows are known: all other candidates are right."""
    ranking = ranker.rank(text, HEAD)
    return Example.of(ranking, [row for row in ranking.rows if row not in wrong], names)


def reset(snapshot: Snapshot) -> bool:
    """Remove the tuned weights; whether there were any."""
    path = snapshot.folder / TUNED
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise IndexFolderError(f"cannot remove {path}: {error.strerror}; check its permissions") from None
    return True


def _write(snapshot: Snapshot, weights: Mapping[str, float]) -> None:
    try:
        save_weights(weights, snapshot.folder)
    except OSError as error:
        raise IndexFolderError(f"cannot write to {snapshot.folder}: {error.strerror}; check its permissions") from None


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
    wrong_line = f"{tuned.wrong} functions judged wrong, {tuned.wrong_alone} of them for queries without a right one"
    return "\n".join(
        [
            f"{tuned.questions} queries, {tuned.found} with a right function among the first {HEAD}",
            *([wrong_line] if tuned.wrong else []),
            f"mean reciprocal rank, each query with weights learned from the others ({FOLDS} folds): "
            f"{gain.before:.3f} -> {gain.after:.3f}, difference {gain.after - gain.before:+.3f}"
            f" [{gain.low:+.3f}, {gain.high:+.3f}]",
            f"weights: {', '.join(changed) or 'unchanged'}",
            verdict,
        ]
    )
