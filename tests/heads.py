"""Heads of random arrays, made without torch."""

from __future__ import annotations

import numpy as np

from ncs.text.vocabulary import Vocabulary
from unif.head import Head, Side
from unif.tokenization import Words

WORDS = ("close", "file", "open", "socket")


def side(table: np.ndarray[tuple[int, ...], np.dtype[np.float32]], scores: object, tokens: Words) -> Side:
    """A bag over words; table [V, d] and scores [V] or [V, heads], to which the row of no word is added."""
    columns = np.asarray(scores, np.float32).reshape(len(table), -1)
    arrays = {"table": np.pad(table, ((1, 0), (0, 0))), "scores": np.pad(columns, ((1, 0), (0, 0)))}
    return Side("bag", tokens, arrays, {"pooling": "scores"})


def head(seed: int = 0, *, unique: bool = False, words: tuple[str, ...] = WORDS, dim: int = 5, heads: int = 1) -> Head:
    """Random arrays over a few words."""
    draw, tokens = np.random.default_rng(seed), Words(Vocabulary.of(words))

    def drawn(heads: int) -> Side:
        numbers = draw.normal(size=(len(words), dim + heads)).astype(np.float32)
        return side(np.ascontiguousarray(numbers[:, :dim]), np.ascontiguousarray(numbers[:, dim:]), tokens)

    return Head(drawn(1), drawn(heads), "fields", {"unique": unique})
