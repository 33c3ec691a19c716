"""What the default ranker hands on: its rankings, what stands behind them, and what a hidden document is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ncs.search.question import Intent
    from ncs.search.signals.consensus import Consensus

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a document is worth to a question that was taken from it, with the field it was taken from left out.

    lexical and spelling: as the signals count words; plain: every word of the question once. coverage: the part of
    the question's idf that its other words hold. name: None where its name is not what is hidden. Calibration asks
    with it (ncs.learn.calibration). learnt: where a learnt head puts the rest (Spread.standing).
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

    agreed: Consensus
    pool: Rows
    inside: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows of a question with what makes up their scores: the sum of the signals times all factors.

    signals: name -> [k]. factors: name -> [k]; those of ncs.search.signals.priors, and "saturation", what is left of
    a score
    where better functions of its file stand above it. ncs.search.explain tells of them.
    """

    intent: Intent
    rows: list[int]
    scores: list[float]
    signals: Mapping[str, Scores] = field(default_factory=dict)
    factors: Mapping[str, Scores] = field(default_factory=dict)
    evidence: Evidence | None = None
    added: tuple[str, ...] = ()
    """Other spellings that were looked for."""
