"""How much the default ranker listens to a learnt head, decided on an index's own questions, whose answers are known.

Such questions (ncs.sampling: a doc comment against the rest of its function, a name against its body) cannot tell how
good a head is: most heads were trained on questions of just this kind, and a head that lifts people's questions does
not lift these (DESIGN.md, "Learnt heads"). So they do not choose the weight. What they can tell is harm: a head of
another language, of too little training or of a broken run puts wrong functions above right ones here as well. The
weight is WEIGHT, low enough that heads of doc comments alone lowered no set of questions, or 0: where there are too few
questions to see anything, where the head does harm, and where it does not lift the function asked for above chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from ncs import learning
from ncs.hiding import Hiding
from ncs.intent import read_intent
from ncs.learning import Gain
from ncs.rankers import create_ranker
from ncs.rankers.bm25 import Bm25Ranker
from ncs.rankers.head_signal import NAME, HeadSignal, LearntVectors, save_weight
from ncs.rankers.hybrid import HybridRanker
from ncs.rankers.ncs import NcsRanker
from ncs.sampling import HIDDEN, sample
from ncs.structure import Structure

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.rankers.hybrid import Hidden
    from ncs.sampling import Sampled
    from ncs.store import Store

    Scores = NDArray[np.float64]

WEIGHT = 0.3
"""Of the signal `learnt`, beside 1 of the words."""
ABOVE = 1.0
"""Standard deviations of all documents that the function asked for must stand above their mean, sure to 97.5 %."""
LEAST = 40
"""Questions below which a head is not listened to."""
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Weighed:
    """The weight, and per kind of question what the head changes in the mean reciprocal rank at ten.

    stands: standard deviations above the mean of all documents at which the head puts the function asked for, on
    average, and the lower end of the 95 % interval of that.
    """

    weight: float
    stands: tuple[float, float]
    gains: Mapping[str, Gain]


def weigh_head(folder: Path, store: Store) -> Mapping[str, object] | None:
    """Weigh the head of a data folder that is complete but for this, and keep the weight; figures for the manifest.

    None where the folder has no head. Seconds.
    """
    if not (folder / NAME).is_dir():
        return None
    rankers = [create_ranker(name) for name in ("bm25", "ncs_centred", NAME)]
    for ranker in rankers:
        ranker.load(folder)
    lexical, dense, head = rankers
    if not isinstance(head, LearntVectors):
        return None
    found = weigh(cast(Bm25Ranker, lexical), cast(NcsRanker, dense), head, Structure.load(folder), store)
    save_weight(folder, found.weight)
    return {
        "weight": found.weight,
        "stands": list(found.stands),
        "gains": {kind: asdict(gain) for kind, gain in found.gains.items()},
    }


def weigh(lexical: Bm25Ranker, dense: NcsRanker, head: LearntVectors, structure: Structure, store: Store) -> Weighed:
    """Ask the index's own questions without the head and with it."""
    questions = [question for question in sample(structure.words, store, structure) if question.kind in HIDDEN]
    if len(questions) < LEAST:
        return Weighed(0.0, (0.0, 0.0), {})
    hiding = Hiding(structure.words, lexical, dense, structure.languages)
    hidden = [hiding.hide(each.text, each.row, HIDDEN[each.kind]) for each in questions]
    plain, lifted = HybridRanker(calibrated=False), HybridRanker(calibrated=False)
    plain.open((lexical, dense), structure)
    lifted.open((lexical, dense), structure, None, cast("NcsRanker", head), WEIGHT)
    said = _hidden_from_head(head, questions, hidden, structure, store)
    before, after = _ranks(plain, questions, hidden), _ranks(lifted, questions, said)
    kinds = np.array([question.kind for question in questions])
    gains: dict[str, Gain] = {
        kind: learning.gain(before[kinds == kind], after[kinds == kind]) for kind in HIDDEN if kind in kinds
    }
    gains["all"] = learning.gain(before, after)
    stands = learning.gain(np.zeros(len(said)), np.array([hide.learnt for hide in said]))
    good = stands.low > ABOVE and not any(gain.high < 0 for gain in gains.values())
    return Weighed(WEIGHT if good else 0.0, (stands.after, stands.low), gains)


def _hidden_from_head(
    head: LearntVectors, questions: Sequence[Sampled], hidden: Sequence[Hidden], structure: Structure, store: Store
) -> list[Hidden]:
    """With what the head says of each function without the field that its question was taken from."""
    signal, found = HeadSignal.of(head), []
    documents = store.documents([question.row for question in questions])
    for question, hide, document in zip(questions, hidden, documents, strict=True):
        query = head.question(" ".join(read_intent(question.text, structure.languages).words))
        rest = head.without(structure.words, [question.row], [document], HIDDEN[question.kind])[0]
        found.append(replace(hide, learnt=float(signal.standing(query, np.array([float(rest @ query)]))[0])))
    return found


def _ranks(ranker: HybridRanker, questions: Sequence[Sampled], hidden: Sequence[Hidden]) -> Scores:
    """The reciprocal rank of each question's function among the first DEPTH, [questions]."""
    found = np.zeros(len(questions))
    for at, (question, hide) in enumerate(zip(questions, hidden, strict=True)):
        rows = ranker.rank(question.text, DEPTH, hidden=hide).rows
        found[at] = 1 / (rows.index(question.row) + 1) if question.row in rows else 0.0
    return found
