"""The automatic judge: a function answers a question if it shares enough features with the answer's code.

Similarity by Aroma's features (ncs.search.aroma): which share of the features of the answer's code the function has.
Cambronero et al., "When deep learning met code search" (FSE 2019), section 4, use a threshold of .25.
Long functions pass it easily, so a strict threshold is reported, too (`python -m evaluation.judges.calibrate`
measures both).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ncs.errors import BadInput
from ncs.search.aroma import cached_features, features, readable, similarity

__all__ = ["PAPER_THRESHOLD", "STRICT_THRESHOLD", "VERSION", "Judge", "features", "judge", "passing", "similarity"]

PAPER_THRESHOLD = 0.25
"""UNIF (Cambronero et al. 2019), section 4: a hit answers where its similarity is at least this."""
STRICT_THRESHOLD = 0.6
VERSION = 2
"""Raised with every change of similarities."""


class Judge(Protocol):
    """Says how much of an answer a function holds, 0..1."""

    def __call__(self, code: str, written_in: str | None = None, /) -> float: ...


def judge(answer: str, language: str = "java") -> Judge:
    """A judge by this answer; functions are read in the answer's language where no other is named.

    The score is 0 in a language without a grammar.

    >>> judge("imm.toggleSoftInput(SHOW, 0);")("void show() { imm.toggleSoftInput(SHOW, 1); log(); }")
    1.0
    """
    answer_features = cached_features(answer, language)

    def judged(code: str, written_in: str | None = None, /) -> float:
        own = written_in or language
        return similarity(cached_features(code, own), answer_features) if readable(own) else 0.0

    return judged


def passing(similarities: Sequence[float], threshold: float) -> float:
    """The share of similarities that reach a threshold; BadInput where there are none.

    >>> passing([0.2, 0.25, 0.9, 1.0], 0.25)
    0.75
    """
    if not similarities:
        raise BadInput("calibration needs listed examples and other functions; give at least one of each")
    return sum(value >= threshold for value in similarities) / len(similarities)
