"""Heads of random arrays, made without torch."""

from __future__ import annotations

import numpy as np

from ncs.learn.heads import Head, Tower
from ncs.learn.tokenization import WordTokenizer
from ncs.learn.translation import Translation
from ncs.text.vocabulary import Vocabulary

SOURCE = b"def open_file(path):\n    return open(path)\n\n\ndef close_socket(sock):\n    sock.close()\n"
WORDS = ("close", "file", "open", "socket")


def tower(table: np.ndarray[tuple[int, ...], np.dtype[np.float32]], scores: object, tokens: WordTokenizer) -> Tower:
    """A bag over words; table [V, d] and scores [V], to which the row of padding is added."""
    column = np.asarray(scores, np.float32).reshape(len(table), 1)
    arrays = {"table": np.pad(table, ((1, 0), (0, 0))), "scores": np.pad(column, ((1, 0), (0, 0)))}
    return Tower("bag", tokens, arrays, {"pooling": "scores"})


def head(
    seed: int = 0, *, words: tuple[str, ...] = WORDS, dim: int = 5, tokenizer: type[WordTokenizer] = WordTokenizer
) -> Head:
    """Random arrays over a few words."""
    draw, tokens = np.random.default_rng(seed), tokenizer(Vocabulary.of(words))

    def drawn() -> Tower:
        numbers = draw.normal(size=(len(words), dim + 1)).astype(np.float32)
        return tower(np.ascontiguousarray(numbers[:, :dim]), numbers[:, dim], tokens)

    return Head(drawn(), drawn(), "fields", {})


def translation(words: int) -> Translation:
    """Random unit vectors and weights of so many words and of padding."""
    draw, n = np.random.default_rng(0), words + 1
    tables = [draw.normal(size=(n, 4)).astype(np.float32) for _ in range(2)]
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in tables]
    weights = [draw.normal(size=n).astype(np.float32) for _ in range(2)]
    return Translation(unit[0], unit[1], weights[0], weights[1], 3.0, 0.4, 0.7)
