"""What a ranker answers: rows and scores, and what is known of them: signals, confidences, how the query was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ncs.search.expansion import Expansion
    from ncs.search.question import Intent
    from ncs.search.signals.consensus import Evidence

    Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a document scores for a query that was taken from one of its fields, with that field left out.

    lexical and spelling: as the signals count words; plain: every word of the query once. coverage: the part of
    the query's idf that its other words have. name: None where its name is not the field. learnt: where a learnt head
    puts the rest (Spread.standing).
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
class Reading:
    """How the default ranker read a query; computed once. idf: stem -> idf of the words of the intent; documents: how
    many are searched."""

    intent: Intent
    expansion: Expansion
    idf: Mapping[str, float]
    documents: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best k rows for a query, by (-score, row). What a ranker does not know is empty or None.

    signals: name -> [k]; a score is their sum times all factors. factors: name -> [k]. features: name -> [k], what
    signals were made of: cosines, shares of names. impacts: stem of the query -> its BM25 alone, [k].
    words: those looked for; None: all but stop words.
    added: words that the ranker put to the query. folded: whether near duplicates gave way to the best of them.
    """

    rows: Sequence[int]
    scores: Sequence[float]
    confidences: Sequence[float] | None = None
    signals: Mapping[str, Scores] = field(default_factory=dict)
    factors: Mapping[str, Scores] = field(default_factory=dict)
    features: Mapping[str, Scores] = field(default_factory=dict)
    impacts: Mapping[str, Scores] = field(default_factory=dict)
    words: Sequence[str] | None = None
    added: Sequence[str] = ()
    reading: Reading | None = None
    evidence: Evidence | None = None
    folded: bool = False

    @property
    def intent(self) -> Intent | None:
        """Of a ranker that tells kinds of queries apart."""
        return self.reading.intent if self.reading else None

    @property
    def hits(self) -> list[tuple[int, float]]:
        """(row, score), best first."""
        return list(zip(self.rows, self.scores, strict=True))

    def at(self, positions: Sequence[int]) -> Ranking:
        """Some of the hits, in this order."""
        arrays = (self.signals, self.factors, self.features, self.impacts)
        some = ({name: values[list(positions)] for name, values in each.items()} for each in arrays)
        signals, factors, features, impacts = some
        return replace(
            self,
            rows=[self.rows[at] for at in positions],
            scores=[self.scores[at] for at in positions],
            confidences=None if self.confidences is None else [self.confidences[at] for at in positions],
            signals=signals,
            factors=factors,
            features=features,
            impacts=impacts,
        )
