"""The default ranker: lexical and dense scores added, then what the corpus itself says about its best candidates.

The score of a document is a sum of signals, times what it is worth before any question, times what is left of it
when better functions of its file stand above it:

    lexical     BM25, divided by the best document's; words that no code says count less (ncs.rankers.wording)
    spelling    the same of other spellings of the question's words, where the corpus has them
    meaning     cosine to the question, where it is positive
    learnt      where the index has a learnt head: how far it lifts the document above all others (head_signal)
    name        how much of the question its name says, and how much of its name the question says
    definition  it defines a name that the question spells
    association  where asked for: it has words of code that go with words of the question (ncs.rerank.association)
    soft_match   where asked for: it has words whose vectors are near the question's words (ncs.rerank.soft_match)
    consensus   it uses the names that many good candidates of many repositories use (ncs.rerank.consensus)
    file        its file is named like the question, and holds other good candidates

The last one is evidence inside a project, where people ask for places; over many projects a folder named like the
question lifts everything in it. So it counts by 1 / the number of repositories among the candidates. Consensus is
the other way round: its gate opens with that number. Neither reads a setting: the results say where they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.confidence import Learnt
from ncs.errors import BadInput
from ncs.intent import Intent, read_intent
from ncs.lexical import top
from ncs.progress import Track, silent
from ncs.rankers import Ranker, create_ranker
from ncs.rankers.bm25 import Bm25Ranker
from ncs.rankers.head_signal import FAR, NAME, HeadSignal, LearntVectors, weight_of
from ncs.rankers.ncs import NcsRanker
from ncs.rankers.wording import PROSE, SPELLING, Wording, worded
from ncs.rerank import association, consensus, direction, diversity, naming, priors, soft_match
from ncs.structure import Structure
from ncs.tokens import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.embeddings import Embeddings
    from ncs.types import Mask, Matrix
    from ncs.vocabulary import WordTable

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

DEPTH = 1000
"""Documents that each part is asked for."""
HEAD = 400
"""Of these together, the best that are looked at closely."""
DIRECTION = 3.0
"""What the question's way, or against it, counts beside all of the question in a name."""
NEIGHBOURS = 100
"""Of these, the ones whose file and repository count as evidence."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal counts; the lexical one counts 1. Measured in evaluation/README.md, ablations beside it."""

    meaning: float
    naming: float
    definition: float
    consensus: float
    title: float
    neighbours: float
    head: float = 0.0


DEFAULTS = Weights(meaning=0.75, naming=0.1, definition=1.0, consensus=2.5, title=0.8, neighbours=0.5)


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a document is worth to a question that was taken from it, with the field it was taken from left out.

    lexical and spelling: as the signals count words; plain: every word of the question once. coverage: the part of
    the question's idf that its other words hold. name: None where its name is not what is hidden. Calibration asks
    with it (ncs.calibration). learnt: where a learnt head puts the rest (Spread.standing).
    """

    row: int
    lexical: float
    meaning: float
    coverage: float
    name: float | None = None
    spelling: float = 0.0
    plain: float = 0.0
    learnt: float = 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the candidates said together. pool: the best of them by words and meaning, whose names `agreed` holds;
    inside: how far they stand in one project, 0 to 1."""

    agreed: consensus.Consensus
    pool: Rows
    inside: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows of a question with what makes up their scores: the sum of the signals times all factors.

    signals: name -> [k]. factors: name -> [k]; "role" and "outline" of ncs.rerank.priors, and "saturation", what is
    left of a score where better functions of its file stand above it. ncs.explain tells of them.
    """

    intent: Intent
    rows: list[int]
    scores: list[float]
    signals: Mapping[str, Scores] = field(default_factory=dict)
    factors: Mapping[str, Scores] = field(default_factory=dict)
    evidence: Evidence | None = None
    added: tuple[str, ...] = ()
    """Other spellings that were looked for."""


def meaning_of(documents: int) -> float:
    """What cosine counts beside words in a corpus of this size, .1 to 1: embeddings learn more where there is more.

    Best of .3, .5, .75 and 1 were .3 for 310 programs, .5 for 6,267 single functions and for repositories of
    hundreds, .75 to 1 for 258,000 of Android; a line through the logarithm.

    >>> [round(meaning_of(n), 2) for n in (310, 6_267, 258_000)]
    [0.32, 0.52, 0.76]
    """
    return min(1.0, max(0.1, 0.15 * math.log10(max(1, documents)) - 0.05))


class HybridRanker:
    """Its parts are a Bm25Ranker and a NcsRanker, fitted and saved under their own names; it owns no data.

    meaning ... neighbours: what each signal counts; the lexical one counts 1, and 0 turns a signal off.
    spelling, prose: see ncs.rankers.wording; 0 and 1 turn them off. association: see ncs.rerank.association; off, as
    it gained on one set of questions and not on the next (DESIGN.md). soft_match: see ncs.rerank.soft_match; off, too.
    role, outline: see ncs.rerank.priors; saturation: see ncs.rerank.diversity; 1 turns each off.
    fold: whether `search` gives one of near duplicates only.
    head: what a learnt head counts, where the index has one; None: what calibration found (ncs.calibration).
    calibrated: whether weights that `ncs tune` learnt for an index are used there.
    """

    def __init__(
        self,
        name: str = "hybrid",
        *,
        parts: Sequence[str] = ("bm25", "ncs_centred"),
        meaning: float = DEFAULTS.meaning,
        naming: float = DEFAULTS.naming,
        definition: float = DEFAULTS.definition,
        consensus: float = DEFAULTS.consensus,
        title: float = DEFAULTS.title,
        neighbours: float = DEFAULTS.neighbours,
        spelling: float = SPELLING,
        prose: float = PROSE,
        association: float = 0.0,
        soft_match: float = 0.0,
        role: float = priors.FACTOR,
        outline: float = priors.OUTLINE,
        saturation: float = diversity.SATURATION,
        fold: bool = True,
        calibrated: bool = True,
        head: float | None = None,
    ) -> None:
        if name in parts or len(parts) != 2:
            raise BadInput(f"ranker {name!r} wants two parts, a lexical and a dense one, not {', '.join(parts)}")
        self.weights = Weights(meaning, naming, definition, consensus, title, neighbours, head or 0.0)
        self._asked_head = head
        self.head: HeadSignal | None = None
        self.name, self.parts, self.saturation = name, tuple(parts), saturation
        self.role, self.outline, self.spelling, self.prose = role, outline, spelling, prose
        self.config: Mapping[str, object] = {"parts": self.parts, **asdict(self.weights), "role": role}
        self.config = {**self.config, "outline": outline, "saturation": saturation, "spelling": spelling}
        self.config, self.association = {**self.config, "prose": prose, "association": association}, association
        self.config, self.soft_match = {**self.config, "soft_match": soft_match}, soft_match
        self.config, self.fold = {**self.config, "fold": fold, "calibrated": calibrated}, fold
        self.calibrated, self.learnt = calibrated, Learnt()
        self.rankers: tuple[Ranker, ...] = ()
        self.structure: Structure | None = None
        self._known: list[str] = []

    def fit(self, words: WordTable, embeddings: Embeddings | None = None, *, track: Track = silent) -> None:
        """Nothing: the parts are fitted by themselves."""

    def save(self, folder: Path) -> None:
        """Nothing: the parts and the structure save themselves."""

    def load(self, folder: Path) -> None:
        """Open both parts and the structure from the data folder."""
        rankers = tuple(create_ranker(part) for part in self.parts)
        for ranker in rankers:
            ranker.load(folder)
        head = create_ranker(NAME) if (weight := self.head_weight(folder)) else None
        if head:
            head.load(folder)
        self.open(rankers, Structure.load(folder), Learnt.load(folder), head, weight)

    def open(
        self,
        rankers: Sequence[Ranker],
        structure: Structure,
        learnt: Learnt | None = None,
        head: Ranker | None = None,
        head_weight: float = 0.0,
    ) -> None:
        """Use parts and structure that are open already.

        For weights left at their defaults stands what was learnt, and for `meaning` otherwise what a corpus of this
        size can teach. head: the ranker `unif`, where `head_weight` of the folder is not 0.
        """
        self.rankers, self.structure, self.learnt = tuple(rankers), structure, learnt or Learnt()
        known = {"meaning": meaning_of(len(structure.places)), **(self.learnt.weights if self.calibrated else {})}
        given = asdict(self.weights)
        left = [name for name, default in asdict(DEFAULTS).items() if given[name] == default and name in known]
        self.weights = replace(self.weights, **{name: known[name] for name in left}, head=head_weight if head else 0.0)
        self.config = {**self.config, **asdict(self.weights)}
        self.head = HeadSignal.of(head) if isinstance(head, LearntVectors) and head_weight else None

    def head_weight(self, folder: Path) -> float:
        """What the head of a data folder counts: as this ranker was told, else as it was weighed at its build."""
        if self._asked_head is None:
            return weight_of(folder)
        return self._asked_head if (folder / NAME).is_dir() else 0.0

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows, by (-score, row); raises BadInput for k < 1."""
        ranking = self.rank(text, k, allowed=allowed, fold=self.fold)
        return list(zip(ranking.rows, ranking.scores, strict=True))

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, hidden: Hidden | None = None, fold: bool = False
    ) -> Ranking:
        """`search`, with the signals of every hit; of a hidden document only what it says in other fields.

        fold: near duplicates give way to the best of them; who learns from rankings wants them all.
        """
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        if self.structure is None:
            raise BadInput(f"ranker {self.name!r} is empty; call load first")
        intent = read_intent(text, self.structure.languages)
        wording = self.wording(intent.words)
        rows, lexical, meaning, learnt = self._candidates(intent, wording, max(k, HEAD), allowed, hidden)
        if not len(rows):
            return Ranking(intent, [], [])
        best, added = max(float(lexical.max()), 1e-9), self._lexical().postings.scores(wording.added, rows)
        if hidden:
            added[rows == hidden.row] = hidden.spelling
        signals = {"lexical": (lexical - added) / best, "spelling": added / best}
        signals["meaning"] = self.weights.meaning * np.maximum(meaning, 0.0)
        if self.head:
            signals["learnt"] = self.weights.head * learnt
        base = lexical / best + signals["meaning"] + signals.get("learnt", 0.0)
        order = np.argsort(-base, kind="stable")
        rows, signals = rows[order], {name: values[order] for name, values in signals.items()}
        asked = self.idf(intent.words)
        evidence, said = self._evidence(asked, rows, base[order])
        signals |= said
        named = naming.agreement(self._structure().words, rows, asked)
        named += DIRECTION * direction.direction(self._structure().words, rows, tokenize(text))
        if hidden and hidden.name is not None:
            named[rows == hidden.row] = hidden.name
        signals["name"] = self.weights.naming * named
        signals["definition"] = self.weights.definition * self._definition(intent, rows, evidence.inside)
        if self.association:
            related = association.agreement(self.structure.words, self._lexical().postings, intent.words, rows)
            signals["association"] = self.association * (1 - evidence.inside) * related
        if self.soft_match:
            near = soft_match.agreement(self.structure.words, self._dense().encoder.vectors, rows, asked)
            signals["soft_match"] = self.soft_match * near
        places = self.structure.places
        factors = {
            "role": priors.factors(places.role[places.file[rows]], intent.words, factor=self.role),
            "outline": priors.outlines(places.outline[rows], evidence.inside, factor=self.outline),
        }
        found = Ranking(intent, rows.tolist(), [], signals, factors, evidence, wording.words)
        return self._ordered(found, rows, k, fold)

    def wording(self, words: Sequence[str]) -> Wording:
        """How BM25 is asked for the words of a question."""
        return worded(words, self._lexical().postings, self._vocabulary, prose=self.prose, spelling=self.spelling)

    def _vocabulary(self) -> list[str]:
        self._known = self._known or list(self._structure().words.vocabulary)
        return self._known

    def _candidates(
        self, intent: Intent, wording: Wording, n: int, allowed: Mask | None, hidden: Hidden | None = None
    ) -> tuple[Rows, Scores, Scores, Scores]:
        """Ascending rows with the scores of all parts: the best of each, and what defines a name in the question."""
        bm25, dense = self._lexical(), self._dense()
        ids = {**wording.asked, **wording.added}
        query = dense.encoder.query(" ".join(intent.words))
        found = [row for row, _ in bm25.postings.search_ids(ids, max(n, DEPTH), allowed=allowed)]
        if query.any():
            near, _ = dense.index.search(query[None], min(max(n, DEPTH), max(1, len(dense.index))), allowed=allowed)
            found += near[0][near[0] >= 0].tolist()
        learnt_query = self.head.question(" ".join(intent.words)) if self.head else query
        if self.head:
            found += self.head.near(learnt_query, max(n, DEPTH), allowed=allowed)
        found += [hidden.row] if hidden else []
        defining = [self._structure().symbols.match(symbol, allowed=allowed)[0] for symbol in intent.symbols]
        defined = np.unique(np.concatenate([*defining, np.zeros(0, np.int64)]))
        rows = np.union1d(np.array(found, np.int64), defined)
        lexical, meaning = self._parts(ids, query, rows, hidden)
        learnt = self.head.values(learnt_query, rows) if self.head else np.zeros(len(rows))
        if hidden:
            learnt[rows == hidden.row] = max(0.0, hidden.learnt) / FAR
        at = np.flatnonzero(np.isin(rows, found))
        best = max(float(lexical[at].max(initial=0)), 1e-9)
        base = lexical[at] / best + self.weights.meaning * np.maximum(meaning[at], 0) + self.weights.head * learnt[at]
        kept = np.isin(rows, np.array([row for row, _ in top(rows[at], base, n)], np.int64)) | np.isin(rows, defined)
        return rows[kept], lexical[kept], meaning[kept], learnt[kept]

    def _definition(self, intent: Intent, rows: Rows, inside: float) -> Scores:
        """How well each row defines a name that the question spells. In a sentence a name asks for its definition
        inside a project only: over many projects `how to restart an Activity` asks for no class of that name."""
        definition = np.zeros(len(rows))
        order = np.argsort(rows)
        for symbol in intent.symbols:
            defining, weights = self._structure().symbols.match(symbol)
            at = np.minimum(np.searchsorted(rows[order], defining), len(rows) - 1)
            met = rows[order][at] == defining
            counted = weights[met] * (1.0 if intent.kind == "symbol" else inside)
            definition[order[at[met]]] = np.maximum(definition[order[at[met]]], counted)
        return definition

    def _parts(
        self, ids: Mapping[int, float], query: Matrix, rows: Rows, hidden: Hidden | None
    ) -> tuple[Scores, Scores]:
        """What both parts score these rows."""
        lexical = self._lexical().postings.scores(ids, rows)
        meaning = self._dense().index.similarities(query, rows).astype(np.float64)
        if hidden:
            at = rows == hidden.row
            lexical[at], meaning[at] = hidden.lexical + hidden.spelling, hidden.meaning
        return lexical, meaning

    def _evidence(self, asked: Mapping[str, float], rows: Rows, base: Scores) -> tuple[Evidence, dict[str, Scores]]:
        """What the candidates, best first, say about each other, and the signals that come of it."""
        structure, weights = self._structure(), base / max(float(base[0]), 1e-9)
        files = structure.places.file[rows]
        owners = structure.places.repository[files]
        agreed = consensus.agree(structure.references, owners, rows, weights)
        inside = 1 / _effective(owners[:NEIGHBOURS], weights[:NEIGHBOURS])
        return Evidence(agreed, rows[: consensus.POOL], inside), {
            "consensus": self.weights.consensus * agreed.gate * agreed.scores(structure.references, rows),
            "file": inside
            * (
                self.weights.title * structure.places.title_match(asked, files)
                + self.weights.neighbours * _support(files, weights, structure.places.named[files])
            ),
        }

    def idf(self, words: Sequence[str]) -> dict[str, float]:
        """stem -> idf of the question's words; one that no document has counts as much as the rarest."""
        return self._lexical().postings.idf(list(words))

    def _ordered(self, found: Ranking, rows: Rows, k: int, fold: bool) -> Ranking:
        """The best k of what was found, a ranking of these rows without scores."""
        total = sum(found.signals.values(), np.zeros(len(rows))) * np.prod(list(found.factors.values()), axis=0)
        positive = np.flatnonzero(total > 0)
        rows, total = rows[positive], total[positive]
        places = self._structure().places
        files = np.where(places.named[places.file[rows]], places.file[rows], -1).astype(np.int64)
        order = np.lexsort((rows, -total))
        clusters = self._structure().near_duplicates.clusters[rows[order]] if fold else None
        kept = diversity.saturated(total[order], files[order], k, factor=self.saturation, clusters=clusters)
        at = order[[position for position, _ in kept]]
        final = np.array([score for _, score in kept])
        again = np.lexsort((rows[at], -final))
        at, final = at[again], final[again]
        shares = np.divide(final, total[at], out=np.zeros(len(at)), where=total[at] > 0)
        signals = {name: values[positive][at] for name, values in found.signals.items()}
        factors = {name: values[positive][at] for name, values in found.factors.items()} | {"saturation": shares}
        return replace(found, rows=rows[at].tolist(), scores=final.tolist(), signals=signals, factors=factors)

    def _structure(self) -> Structure:
        if self.structure is None:
            raise BadInput(f"ranker {self.name!r} is empty; call load first")
        return self.structure

    def _lexical(self) -> Bm25Ranker:
        part = self.rankers[0]
        if not isinstance(part, Bm25Ranker):
            raise BadInput(f"the first part of {self.name!r} must be a bm25 ranker, not {part.name!r}")
        return part

    def _dense(self) -> NcsRanker:
        part = self.rankers[1]
        if not isinstance(part, NcsRanker):
            raise BadInput(f"the second part of {self.name!r} must be an ncs ranker, not {part.name!r}")
        return part


def _effective(owners: NDArray[np.int32], weights: Scores) -> float:
    """How many repositories there are, as their weights are spread (inverse Simpson index); at least 1."""
    shares = np.bincount(owners, weights)
    total = float(shares.sum())
    return max(1.0, total**2 / float((shares**2).sum())) if total > 0 else 1.0


def _support(files: NDArray[np.int32], weights: Scores, named: NDArray[np.bool_]) -> Scores:
    """What the best candidates of each row's file weigh together, over the best file's; 0 for files without a name."""
    files = np.where(named, files, -1)
    known, numbers = np.unique(files, return_inverse=True)
    head = np.where(np.arange(len(files)) < NEIGHBOURS, weights, 0.0) * (files >= 0)
    sums = np.bincount(numbers, head, minlength=len(known))
    best = float(sums.max(initial=0))
    support: Scores = sums[numbers] / best if best > 0 else np.zeros(len(files))
    return support
