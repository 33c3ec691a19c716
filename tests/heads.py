"""Heads of random arrays, made without torch."""

from __future__ import annotations

import numpy as np

from ncs.vocabulary import Vocabulary
from unif.head import Head, Side

WORDS = ("close", "file", "open", "socket")


def head(seed: int = 0, *, unique: bool = False, words: tuple[str, ...] = WORDS, dim: int = 5) -> Head:
    """Random arrays over a few words."""
    draw = np.random.default_rng(seed)

    def side() -> Side:
        numbers = draw.normal(size=(len(words), dim + 1)).astype(np.float32)
        return Side(np.ascontiguousarray(numbers[:, :dim]), np.ascontiguousarray(numbers[:, dim]))

    return Head(Vocabulary.of(words), side(), side(), {"unique": unique})
