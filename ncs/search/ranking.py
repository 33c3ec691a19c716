"""The result of a ranker: rows, scores, signals, confidences and the analysis of the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncs.learn.general import GeneralScorer
    from ncs.learn.tfidf import TfidfEncoder
    from ncs.search.question import Expansion, Intent
    from ncs.search.signals import Evidence
    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.postings import Postings
    from ncs.storage.vectors import Vectors
    from ncs.types import Rows, Scores


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """A query as the default ranker reads it. text: the query, or the title of a report or the message of a trace;
    idf: stem -> idf of the intent's words; documents: number searched; title: of a report; linked: whether no word was
    known, and words that stand for them in public code were searched instead; place: rows of the files that it names.
    """

    text: str
    intent: Intent
    expansion: Expansion
    idf: Mapping[str, float]
    documents: int
    place: Rows
    title: str = ""
    linked: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best k rows for a query, by (-score, row); attributes that a ranker does not compute are empty or None.

    signals, factors: name -> [k]; a score is the sum of the signals times all factors. features: name -> [k], inputs of
    signals and confidences. impacts: stem of the query -> its BM25, [k]. words: searched for. added: by the ranker.
    folded: whether near duplicates are folded into the best one.
    """

    rows: Sequence[int]
    scores: Sequence[float]
    confidences: Sequence[float] | None = None
    signals: Mapping[str, Scores] = field(default_factory=dict)
    factors: Mapping[str, Scores] = field(default_factory=dict)
    features: Mapping[str, Scores] = field(default_factory=dict)
    impacts: Mapping[str, Scores] = field(default_factory=dict)
    words: Sequence[str] = ()
    added: Sequence[str] = ()
    analysis: QueryAnalysis | None = None
    evidence: Evidence | None = None
    folded: bool = False

    @property
    def intent(self) -> Intent | None:
        """The intent of the query, if the ranker analyzes it."""
        return self.analysis.intent if self.analysis else None

    @property
    def hits(self) -> list[tuple[int, float]]:
        """(row, score), best first."""
        return list(zip(self.rows, self.scores, strict=True))

    def at(self, positions: Sequence[int]) -> Ranking:
        """Some of the hits, in this order."""

        def some(columns: Mapping[str, Scores]) -> Mapping[str, Scores]:
            return {name: values[list(positions)] for name, values in columns.items()}

        return replace(
            self,
            rows=[self.rows[at] for at in positions],
            scores=[self.scores[at] for at in positions],
            confidences=None if self.confidences is None else [self.confidences[at] for at in positions],
            signals=some(self.signals),
            factors=some(self.factors),
            features=some(self.features),
            impacts=some(self.impacts),
        )


@dataclass(frozen=True, slots=True)
class Internals:
    """The data of a ranker that explanations read. title: weight of the file name."""

    postings: Postings | None = None
    encoder: TfidfEncoder | None = None
    vectors: Vectors | None = None
    facts: DocumentFacts | None = None
    title: float = 0.0
    general: GeneralScorer | None = None
