"""What a step of training cannot do without: bytes that come from memory and go back, and operations."""

from __future__ import annotations

from dataclasses import dataclass

FLOAT, ID = 4, 4
"""Bytes of a number of a table, and of a word id on disk or on the device."""
ADAM = 12
"""Operations that Adam makes of one number: two moments, two corrections, a root, a quotient, a move."""


@dataclass(frozen=True, slots=True)
class Floor:
    """A part of a step: its bytes and operations."""

    part: str
    bytes: int
    operations: int


def floor(pairs: int, dim: int, words: tuple[int, int], rows: tuple[int, int]) -> list[Floor]:
    """UNIF with softmax over a batch, by part. words: of all questions and of all codes; rows: their distinct words.

    Bytes are those that no cache can save: ids are read once; rows of the tables and of Adam's two moments come and go
    once. Everything between (word vectors gathered, scores [pairs, pairs], gradients of rows) may stay in a cache.
    """
    tokens, distinct = sum(words), sum(rows)
    return [
        Floor("ids", tokens * ID, 0),
        Floor("means of word vectors", 0, 2 * tokens * dim),
        Floor("attention, there and back", 0, 6 * rows[1] * dim + 2 * words[1] * dim),
        Floor("cosines, there and back", 0, 6 * pairs * pairs * dim),
        Floor("gradients of rows", 0, 2 * tokens * dim),
        Floor("rows and moments, in and out", 6 * distinct * dim * FLOAT, ADAM * distinct * dim),
    ]


def gathered(dim: int, words: tuple[int, int]) -> int:
    """Bytes where no cache helps: a word's vector read there and back, its gradient added to in place."""
    return 4 * sum(words) * dim * FLOAT


def dense(dim: int, tables: tuple[int, int]) -> int:
    """Bytes that dense Adam moves for tables of so many rows: gradients cleared, written, read; the rest in and out."""
    return 9 * sum(tables) * dim * FLOAT


def told(parts: list[Floor]) -> str:
    """A line a part and their sum.

    >>> print(told(floor(2, 10, (6, 20), (5, 9))))
    ids                                      104 B            0 operations
    means of word vectors                      0 B          520 operations
    attention, there and back                  0 B          940 operations
    cosines, there and back                    0 B          240 operations
    gradients of rows                          0 B          520 operations
    rows and moments, in and out           3,360 B        1,680 operations
    a step                                 3,464 B        3,900 operations
    """
    whole = Floor("a step", sum(part.bytes for part in parts), sum(part.operations for part in parts))
    return "\n".join(f"{p.part:32} {p.bytes:>11,} B {p.operations:>12,} operations" for p in [*parts, whole])
