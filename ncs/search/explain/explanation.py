"""What an explanation says, as values, and as plain dictionaries for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ncs.types import Field

Number = float | None
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Met:
    """A word of the question in one hit.

    met: the document's word of the same stem; where there is none, the nearest one by the word vectors, if they know
    both. similarity: 1 for the same stem, else the cosine. fields: where `met` stands, and for a stem all its words.
    idf: how rare the word's stem is, as BM25 counts it. shares: signal -> what this word adds to it, and so to the
    score; a signal that is not made of words has none.
    """

    word: str
    met: str | None = None
    similarity: Number = None
    fields: tuple[Field, ...] = ()
    idf: Number = None
    shares: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Used:
    """A name that good candidates share and that this hit uses.

    repositories: how many of the asked candidates' use it. share: what it adds to the score.
    """

    name: str
    repositories: int
    share: float


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why one row has its score.

    shares: signal -> what it adds to the score, factors multiplied in; they add up to it. None where the ranker
    does not say. factors: what they were multiplied by. words: of the question, in its order. names: strongest first.
    title: words of the question that the file's name says, and title_share: what that adds (the rest of the file's
    share is its other good candidates). defines: names spelled in the question that it defines. confidence: how
    probable it is that the hit is right, as `Index.search` says it.
    """

    row: int
    score: float
    shares: Mapping[str, float] | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    confidence: Number = None
    words: tuple[Met, ...] = ()
    names: tuple[Used, ...] = ()
    title: tuple[str, ...] = ()
    title_share: float = 0.0
    defines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gates:
    """How far the signals that read the candidates themselves are believed.

    candidates: how many were asked for the names they share; repositories: how many those are of; effective: how
    many there are as their weights are spread. support: repositories that use each of the leading names, on average.
    consensus and inside, 0 to 1: what the consensus and the file signal are multiplied by.
    """

    candidates: int
    repositories: int
    effective: float
    support: float
    consensus: float
    inside: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a question was read, and the reasons of every hit, in order.

    words: what was looked for. grammar and languages: words that were left out because they say nothing, or because
    nearly every document is in that language. added: words that the ranker put to the question. kind and gates: of
    the default ranker.
    """

    words: tuple[str, ...]
    grammar: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    kind: str | None = None
    gates: Gates | None = None
    reasons: tuple[Reasons, ...] = ()


def reading_as_dict(explanation: Explanation) -> dict[str, Any]:
    """How the question was read, for JSON; the reasons are the hits'."""
    found: dict[str, Any] = _rounded(asdict(explanation))
    del found["reasons"]
    return found


def reasons_as_dict(reasons: Reasons) -> dict[str, Any]:
    """Why one hit has its score, for JSON; numbers are not rounded, so that they add up."""
    found = asdict(reasons)
    del found["row"], found["confidence"]  # the hit has them
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return value
