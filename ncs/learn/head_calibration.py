"""How much the default ranker listens to a learnt head, decided on an index's own questions, whose answers are known.

Such questions (ncs.learn.synthetic_queries: a doc comment against the rest of its function, a name against its body)
cannot tell how
much a head is worth to people: most heads were trained on questions of just this kind, and one that lifts people's
questions hardly lifts these (DESIGN.md, "Learnt heads"). So they do not choose the weight, they choose whether it is
WEIGHT, low enough that heads of doc comments alone lowered no set of questions, or 0. A head is listened to where it

    stands  puts the functions asked for higher above all documents than the vectors it may have started from do,
            ncs_centred's: significantly over all questions, and on names, which flatter it less, at least not lower;
    ranks   lowers the mean reciprocal rank of no kind of question significantly.

One that translates (unif.translation) is tried at CLOSER first, where the functions are of few repositories: over
many, what these agree on (ncs.search.signals.consensus) says more.

A head of another corpus, of too few pairs or of a broken run fails the first. One that learnt what the default ranker
answers (unif.teacher) is not asked: it stands high, and beside its teacher it lowered people's questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from ncs.learn import learning
from ncs.learn.field_ablation import Hiding
from ncs.learn.learning import Gain
from ncs.learn.synthetic_queries import HIDDEN, SOME, sample
from ncs.search.bm25 import Bm25Ranker
from ncs.search.hybrid import HybridRanker
from ncs.search.ncs import NcsRanker
from ncs.search.question import read_intent
from ncs.search.rankers import create_ranker
from ncs.search.signals.head import NAME, LearntVectors, Spread, save_weight
from ncs.storage.document_facts import DocumentFacts
from ncs.storage.folder import open_folder

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.learn.synthetic_queries import Sampled
    from ncs.search.ranking import Hidden
    from ncs.storage.documents import Store

    Scores = NDArray[np.float64]

WEIGHT = 0.3
"""Of the signal `learnt`, beside 1 of the words."""
CLOSER = 0.8
"""Of the signal of a head that translates; it lowered no set of questions over few repositories (evaluation/README.md),
but by .04, not beyond chance, one over 137."""
FEW = 10
"""Repositories."""
LEAST = 40
"""Questions below which a head is not listened to."""
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Weighed:
    """The weight, and what the head changes, per kind of question and over all of them.

    stands: in where the function asked for stands among all documents (standard deviations above their mean), beside
    ncs_centred. ranks: in the default ranker's mean reciprocal rank at ten.
    """

    weight: float
    stands: Mapping[str, Gain]
    ranks: Mapping[str, Gain]
    why: str


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
    found = weigh(cast(Bm25Ranker, lexical), cast(NcsRanker, dense), head, DocumentFacts.load(folder), store)
    save_weight(folder, found.weight)
    return asdict(found)


def told(folder: Path) -> str:
    """What the default ranker gives the head of an index, and why, for people."""
    counts = open_folder(folder)[1].counts
    head = cast("Mapping[str, Mapping[str, object]]", counts.get("calibration", {})).get("head", {})
    return f"hybrid: weight {head.get('weight', 0):g} of the head: {head.get('why', 'it was not weighed')}"


def weigh(lexical: Bm25Ranker, dense: NcsRanker, head: LearntVectors, facts: DocumentFacts, store: Store) -> Weighed:
    """Ask the index's own questions without the head and with it; not of a head that learnt from a ranker's answers."""
    if head.taught:
        return Weighed(0.0, {}, {}, "it learnt from a ranker's answers, and tells the default ranker nothing new")
    questions = [
        question for question in sample(facts.words, store, facts, fewest=SOME) if question.kind in HIDDEN
    ]
    if len(questions) < LEAST:
        return Weighed(0.0, {}, {}, f"its functions make {len(questions)} questions to judge it by; {LEAST} are needed")
    hiding = Hiding(facts.words, lexical, dense, facts.languages)
    hidden = [hiding.hide(each.text, each.row, HIDDEN[each.kind]) for each in questions]
    plain = HybridRanker(calibrated=False)
    plain.open((lexical, dense), facts)
    said = _hidden_from_head(head, questions, hidden, facts, store)
    before = _ranks(plain, questions, hidden)
    kinds = np.array([question.kind for question in questions])
    stood = _standing(dense, questions, hidden, facts)
    stands = _gains(kinds, stood, np.array([hide.learnt for hide in said]))
    found = Weighed(0.0, stands, {}, "")
    few = len(np.unique(facts.file_roles.repository)) < FEW
    for weight in (CLOSER, WEIGHT) if head.translates and few else (WEIGHT,):
        lifted = HybridRanker(calibrated=False)
        lifted.open((lexical, dense), facts, None, cast("NcsRanker", head), weight)
        ranks = _gains(kinds, before, _ranks(lifted, questions, said))
        found = Weighed(decided(stands, ranks, weight), stands, ranks, why(stands, ranks))
        if found.weight:
            break
    return found


def decided(stands: Mapping[str, Gain], ranks: Mapping[str, Gain], weight: float = WEIGHT) -> float:
    """The weight of a head that changes so much in standing, and in ranks where it counts `weight`, by kind of question
    and over "all"."""
    lifts = stands["all"].wins and all(gain.high >= 0 for gain in stands.values())
    harms = any(gain.high < 0 for gain in ranks.values())
    return weight if lifts and not harms else 0.0


def why(stands: Mapping[str, Gain], ranks: Mapping[str, Gain]) -> str:
    """What decided, in one line: the first that speaks against the head, else what speaks for it."""
    over = stands["all"]
    lift = f"by {over.after - over.before:+.2f} [{over.low:+.2f}, {over.high:+.2f}] standard deviations"
    if not over.wins:
        return f"it lifts the functions asked for no higher than ncs_centred does: {lift}"
    if sunk := next((kind for kind, gain in stands.items() if gain.high < 0), ""):
        return f"it puts the functions that a {sunk} asks for lower than ncs_centred does"
    if sunk := next((kind for kind, gain in ranks.items() if gain.high < 0), ""):
        change = ranks[sunk].after - ranks[sunk].before
        return f"it lowers the mean reciprocal rank of {sunk} questions by {-change:.3f}"
    return f"it lifts the functions asked for higher than ncs_centred does, {lift}, and lowers no kind of question"


def _gains(kinds: NDArray[np.str_], before: Scores, after: Scores) -> dict[str, Gain]:
    groups: dict[str, NDArray[np.bool_]] = {kind: kinds == kind for kind in HIDDEN if kind in kinds}
    groups["all"] = np.ones(len(kinds), np.bool_)
    return {kind: learning.gain(before[here], after[here]) for kind, here in groups.items()}


def _standing(dense: NcsRanker, questions: Sequence[Sampled], hidden: Sequence[Hidden], facts: DocumentFacts) -> Scores:
    """Where plain word vectors put each function without its field, [questions]."""
    spread, found = Spread.of(dense.index), np.zeros(len(questions))
    for at, (question, hide) in enumerate(zip(questions, hidden, strict=True)):
        query = dense.encoder.query(" ".join(read_intent(question.text, facts.languages).words))
        found[at] = spread.standing(query, np.array([hide.meaning]))[0]
    return found


def _hidden_from_head(
    head: LearntVectors, questions: Sequence[Sampled], hidden: Sequence[Hidden], facts: DocumentFacts, store: Store
) -> list[Hidden]:
    """With what the head says of each function without the field that its question was taken from."""
    spread, found = Spread.of(head.vectors), []
    documents = store.documents([question.row for question in questions])
    for question, hide, document in zip(questions, hidden, documents, strict=True):
        text = " ".join(read_intent(question.text, facts.languages).words)
        query = head.question(text)
        rest = head.without(facts.words, [question.row], [document], HIDDEN[question.kind])[0]
        closer = head.closer_without(text, facts.words, question.row, HIDDEN[question.kind])
        stands = float(spread.standing(query, np.array([float(rest @ query)]))[0]) + closer
        found.append(replace(hide, learnt=stands))
    return found


def _ranks(ranker: HybridRanker, questions: Sequence[Sampled], hidden: Sequence[Hidden]) -> Scores:
    """The reciprocal rank of each question's function among the first DEPTH, [questions]."""
    found = np.zeros(len(questions))
    for at, (question, hide) in enumerate(zip(questions, hidden, strict=True)):
        rows = ranker.rank(question.text, DEPTH, hidden=hide).rows
        found[at] = 1 / (rows.index(question.row) + 1) if question.row in rows else 0.0
    return found
