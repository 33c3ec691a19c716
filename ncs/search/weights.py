"""What each signal of the default ranker counts, and what turns it off."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from ncs.search.expansion import PROSE, SPELLING
from ncs.search.question import Kind
from ncs.search.signals import diversity, priors


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal counts; the lexical one counts 1. Measured in evaluation/README.md, ablations beside it.

    These are what an index may learn (ncs.learn.calibration, `ncs tune`); head: of a learnt head, where there is one.
    """

    meaning: float = 0.75
    naming: float = 0.1
    definition: float = 1.0
    consensus: float = 2.5
    title: float = 0.8
    neighbours: float = 0.5
    head: float = 0.0


DEFAULTS = Weights()


@dataclass(frozen=True, slots=True)
class Settings:
    """What else decides a ranking, told once and never learnt."""

    spelling: float = SPELLING
    prose: float = PROSE
    proximity: float = 0.05
    association: float = 0.0
    soft_match: float = 0.0
    role: float = priors.FACTOR
    outline: float = priors.OUTLINE
    body: float = priors.BODY
    unfinished: float = priors.UNFINISHED
    marked: float = priors.MARKED
    saturation: float = diversity.SATURATION
    fold: bool = True
    calibrated: bool = True


STANDARD = Settings()
CODE = 0.5
"""What is left of `meaning` where the question is code: vectors are of names, calls and comments, and half of what
code says are variables. Measured on sets of functions cut in two (DESIGN.md)."""


def of_kind(weights: Weights, settings: Settings, kind: Kind) -> tuple[Weights, Settings]:
    """What decides about a question of this kind. Who pastes code wants what holds it: not its names defined, not what
    others use beside it, and neither good code before bad nor one hit a file."""
    if kind != "code":
        return weights, settings
    said = Weights(CODE * weights.meaning, 0.0, weights.definition, 0.0, 0.0, 0.0, weights.head)
    plain = replace(settings, spelling=0.0, role=1.0, outline=1.0, body=1.0, unfinished=1.0, marked=1.0, saturation=1.0)
    return said, plain


def described(parts: tuple[str, ...], weights: Weights, settings: Settings) -> dict[str, Any]:
    """The configuration of a ranker, for people and results."""
    return {"parts": parts, **asdict(weights), **asdict(settings)}


def meaning_of(documents: int) -> float:
    """What cosine counts beside words in a corpus of this size, .1 to 1: embeddings learn more where there is more.

    Best of .3, .5, .75 and 1 were .3 for 310 programs, .5 for 6,267 single functions and for repositories of
    hundreds, .75 to 1 for 258,000 of Android; a line through the logarithm.

    >>> [round(meaning_of(n), 2) for n in (310, 6_267, 258_000)]
    [0.32, 0.52, 0.76]
    """
    return min(1.0, max(0.1, 0.15 * math.log10(max(1, documents)) - 0.05))
