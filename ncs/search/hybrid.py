"""The default ranker: lexical and dense scores added, then what the corpus itself says about its best candidates.

The score of a document is a sum of signals, times what it is worth before any question, times what is left of it
when better functions of its file stand above it:

    lexical     BM25, divided by the best document's; words that no code says count less (ncs.search.expansion)
    spelling    the same of other spellings of the question's words, where the corpus has them
    meaning     cosine to the question, where it is positive
    learnt      where the index has a learnt head: how far it lifts the document above all others (head_signal)
    name        how much of the question its name says, and how much of its name the question says
    definition  it defines a name that the question spells
    proximity   words that are neighbours in the question stand near each other in it (ncs.search.signals.proximity)
    association, soft_match  where asked for: words that go with the question's, or whose vectors are near them
    consensus   it uses the names that many good candidates of many repositories use (ncs.search.signals.consensus)
    file        its file is named like the question, and holds other good candidates

The last one is evidence inside a project, where people ask for places; over many projects a folder named like the
question lifts everything in it. So it counts by 1 / the number of repositories among the candidates, as proximity
does. Consensus is the other way round: its gate opens with that number. Neither reads a setting: the results say where
they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.errors import BadInput
from ncs.learn.confidence import Learnt
from ncs.progress import Track, silent
from ncs.search import candidates, evidence
from ncs.search import signal_terms as signals
from ncs.search.candidates import Parts
from ncs.search.expansion import Wording, worded
from ncs.search.head_signal import NAME, HeadSignal, LearntVectors, weight_of
from ncs.search.ordering import ordered
from ncs.search.question import read_intent
from ncs.search.rankers import Ranker, create_ranker
from ncs.search.ranking import Hidden, Ranking
from ncs.search.weights import DEFAULTS, STANDARD, Settings, Weights, described, meaning_of, of_kind
from ncs.storage.document_facts import Structure
from ncs.text.spelling import Known

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.words import WordTable
    from ncs.types import Mask

HEAD = 400
"""Candidates that are looked at closely."""


class HybridRanker:
    """Its parts are a Bm25Ranker and a NcsRanker, fitted and saved under their own names; it owns no data.

    meaning ... neighbours: what each signal counts; the lexical one counts 1, and 0 turns a signal off.
    spelling, prose: see ncs.search.expansion; proximity: see ncs.search.signals; 0, 1 and 0 turn them off.
    association, soft_match: off, as they gained on one set of questions and not on the next (DESIGN.md).
    role ... marked: see ncs.search.signals.priors; saturation: see ncs.search.signals.diversity; 1 turns each off.
    fold: whether `search` gives one of near duplicates only.
    head: what a learnt head counts, where the index has one; None: what calibration found (ncs.learn.calibration).
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
        spelling: float = STANDARD.spelling,
        prose: float = STANDARD.prose,
        proximity: float = STANDARD.proximity,
        association: float = STANDARD.association,
        soft_match: float = STANDARD.soft_match,
        role: float = STANDARD.role,
        outline: float = STANDARD.outline,
        body: float = STANDARD.body,
        unfinished: float = STANDARD.unfinished,
        marked: float = STANDARD.marked,
        saturation: float = STANDARD.saturation,
        fold: bool = STANDARD.fold,
        calibrated: bool = STANDARD.calibrated,
        head: float | None = None,
    ) -> None:
        if name in parts or len(parts) != 2:
            raise BadInput(f"ranker {name!r} wants two parts, a lexical and a dense one, not {', '.join(parts)}")
        self.name, self.parts, self._asked_head = name, tuple(parts), head
        self.weights = Weights(meaning, naming, definition, consensus, title, neighbours, head or 0.0)
        own = spelling, prose, proximity, association, soft_match
        self.settings = Settings(*own, role, outline, body, unfinished, marked, saturation, fold, calibrated)
        self.config: Mapping[str, object] = described(self.parts, self.weights, self.settings)
        self.fold, self.learnt = fold, Learnt()
        self.head: HeadSignal | None = None
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
        taught = self.learnt.weights if self.settings.calibrated else {}
        known = {"meaning": meaning_of(len(structure.places)), **taught}
        known.pop("head", None)  # `head_weight` has read it
        given = asdict(self.weights)
        left = [name for name, default in asdict(DEFAULTS).items() if given[name] == default and name in known]
        self.weights = replace(self.weights, **{name: known[name] for name in left}, head=head_weight if head else 0.0)
        self.config = described(self.parts, self.weights, self.settings)
        self.head = HeadSignal.of(head) if isinstance(head, LearntVectors) and head_weight else None

    def head_weight(self, folder: Path) -> float:
        """What the head of a data folder counts: as this ranker was told, else as it was weighed at its build."""
        if self._asked_head is None:
            return weight_of(folder, tuned=self.settings.calibrated)
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
        parts = self._parts()
        structure = parts.structure
        intent = read_intent(text, structure.languages)
        weights, settings = of_kind(self.weights, self.settings, intent.kind)
        wording = self.wording(intent.words, spelling=settings.spelling)
        found = candidates.find(parts, intent, wording, weights, max(k, HEAD), allowed=allowed, hidden=hidden)
        if not len(found):
            return Ranking(intent, [], [])
        found, base, best = found.best_first(replace(weights, head=0.0))  # a head's favourites are alike: no voters
        asked, rows = self.idf(intent.words), found.rows
        said = evidence.gather(structure, rows, base)
        named = signals.names(structure, text, asked, rows, hidden)
        shares = {
            **found.signals(weights, best, head=parts.head is not None),
            **evidence.signals(said, structure, asked, rows, base, weights),
            **signals.own(parts, intent, named, asked, rows, said.inside, weights, settings),
        }
        factors = signals.factors(structure, intent, rows, said.inside, named, settings)
        ranking = Ranking(intent, rows.tolist(), [], shares, factors, said, wording.words)
        return ordered(ranking, rows, structure, k, fold=fold, saturation=settings.saturation)

    def wording(self, words: Sequence[str], *, spelling: float | None = None) -> Wording:
        """How BM25 is asked for the words of a question; spelling: what other spellings count, None: as set."""
        postings, counts = self._parts().lexical.postings, self.settings.spelling if spelling is None else spelling
        return worded(words, postings, self._vocabulary, prose=self.settings.prose, spelling=counts)

    def _vocabulary(self) -> list[str]:
        self._known = self._known or Known(self._parts().structure.words.vocabulary.known())
        return self._known

    def idf(self, words: Sequence[str]) -> dict[str, float]:
        """stem -> idf of the question's words; one that no document has counts as much as the rarest."""
        return self._parts().lexical.postings.idf(list(words))

    def _parts(self) -> Parts:
        if self.structure is None:
            raise BadInput(f"ranker {self.name!r} is empty; call load first")
        return Parts.of(self.rankers, self.structure, self.head, self.name)
