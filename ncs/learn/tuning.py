"""A user's own questions, with the functions that answer them, as weights of their index; measured before it is used.

What was tuned is one file beside those of the build, replaced at once and named by no manifest: the index as it was
built stays as it is, `reset` brings it back, and the next build keeps it and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, IndexFolderError
from ncs.learn import learning
from ncs.learn.calibration import WEIGHTS, weights_of
from ncs.learn.confidence import TUNED, Learnt
from ncs.search.hybrid import HEAD, HybridRanker
from ncs.search.signals.head import NAME as LEARNT_HEAD
from ncs.search.signals.head import weight_of
from ncs.storage.document_facts import DocumentFacts

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.search.feedback import Feedback
    from ncs.search.ranking import Ranking

NAMES = ("lexical", *(name for name in WEIGHTS if name != "learnt"))
"""Signals of every index; with a head it listens to, an index has `learnt` too."""
LEAST = 10
"""Questions below which nothing can be said about the others."""
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Tuned:
    """What questions came to. found: questions with a right function among the candidates.

    wrong: functions judged not to answer, and of them wrong_alone those of questions without a right function, which
    are learnt from by themselves. before, after: weights of HybridRanker; gain: mean reciprocal rank at ten of the
    questions with right functions, cross-validated, before and after.
    """

    questions: int
    found: int
    wrong: int
    wrong_alone: int
    gain: learning.Gain
    before: Mapping[str, float]
    after: Mapping[str, float]
    written: bool


def tune(index: Index, feedback: Sequence[Feedback], *, force: bool = False) -> Tuned:
    """Learn from all questions, judge by cross-validation, write where that wins or is forced.

    A function judged wrong stands behind the right ones of its question anyhow. Where nobody said which is right, any
    candidate but the wrong ones will do: that, too, is learnt from, but nothing is measured by it.
    Raises BadInput for fewer than LEAST questions with right functions, or none whose function is found at all;
    IndexFolderError where the index cannot be written.
    """
    known, alone = [each for each in feedback if each.rows], [each for each in feedback if not each.rows]
    if len(known) < LEAST:
        raise BadInput(f"{len(known)} questions with right functions are too few to learn from; give at least {LEAST}")
    ranker = HybridRanker(calibrated=False)
    listened = weight_of(index.data, tuned=False)
    head = index.ranker(LEARNT_HEAD) if listened else None
    ranker.open([index.ranker(part) for part in ranker.parts], DocumentFacts.load(index.data), None, head, listened)
    names = (*NAMES, "learnt") if head else NAMES
    asked = [learning.asked(ranker.rank(each.text, HEAD), each.rows, names) for each in known]
    beside = [_any_but(each.wrong, ranker.rank(each.text, HEAD), names) for each in alone]
    found = sum(len(question.right) > 0 for question in asked)
    if not found:
        raise BadInput(f"none of the functions is among the first {HEAD} of its question; are they of this index?")
    weights = asdict(ranker.weights)
    built = Learnt.load(index.data, tuned=False)
    before = [
        built.weights.get(WEIGHTS[name][0], weight) / weight if weight else 1.0
        for name, weight in _first_weights(weights, names)
    ]
    gain = learning.held_out(asked, len(names), folds=FOLDS, before=np.array([1.0, *before]), beside=beside)
    factors = learning.learn([*asked, *beside], len(names)).tolist()
    learnt = Learnt(weights_of(factors, names, ranker.weights), built.model)
    if written := gain.wins or force:
        _write(index, learnt)
    wrong, wrong_alone = (sum(len(each.wrong) for each in some) for some in (feedback, alone))
    after = {**weights, **learnt.weights}
    return Tuned(len(known), found, wrong, wrong_alone, gain, {**weights, **built.weights}, after, written)


def _any_but(wrong: Sequence[int], ranking: Ranking, names: Sequence[str]) -> learning.Asked:
    """A question of which only wrong rows are known: all other candidates are right."""
    return learning.asked(ranking, [row for row in ranking.rows if row not in wrong], names)


def reset(index: Index) -> bool:
    """Take back what was tuned; whether there was anything."""
    path = index.data / TUNED
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise IndexFolderError(f"cannot remove {path}: {error.strerror}; check its permissions") from None
    return True


def _first_weights(weights: Mapping[str, float], names: Sequence[str]) -> list[tuple[str, float]]:
    """Signal and the first of its weights; `file` has two, which are tuned together."""
    return [(name, weights[members[0]]) for name, members in WEIGHTS.items() if name in names]


def _write(index: Index, learnt: Learnt) -> None:
    try:
        learnt.save(index.data / TUNED)
    except OSError as error:
        raise IndexFolderError(f"cannot write to {index.data}: {error.strerror}; check its permissions") from None


def told(tuned: Tuned) -> str:
    """What came out, for people; three or four lines."""
    gain = tuned.gain
    changed = [
        f"{name} {tuned.before[name]:.3g} -> {value:.3g}"
        for name, value in tuned.after.items()
        if abs(value - tuned.before[name]) > 0.0005 * max(1.0, value)
    ]
    verdict = "used from now on; undo with: ncs tune --reset"
    if not tuned.written:
        verdict = "not used: the difference may be chance. Add questions, or use them all the same with --force"
    elif not gain.wins:
        verdict = f"used because of --force, although the difference may be chance; {verdict.partition('; ')[2]}"
    alone = f"of which {tuned.wrong_alone} of questions whose right functions nobody named"
    down = f"judged wrong: {tuned.wrong}, {alone}; all are learnt from"
    return "\n".join(
        [
            f"{tuned.questions} questions, {tuned.found} with a right function among the first {HEAD}",
            *([down] if tuned.wrong else []),
            f"mean reciprocal rank, each question with weights learnt from the others ({FOLDS} folds): "
            f"{gain.before:.3f} -> {gain.after:.3f}, difference {gain.after - gain.before:+.3f}"
            f" [{gain.low:+.3f}, {gain.high:+.3f}]",
            f"weights: {', '.join(changed) or 'as they were'}",
            verdict,
        ]
    )
