"""What a network is made from: the ids of both sides, and where their vectors start; without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from unif.settings import Encoder, ModelConfig
from unif.tokenization import Tokens, Words, learn_bpe, learn_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix
    from unif.run import Start

Reads = Literal["fields", "source"]
"""What the code side reads: the words of a function's NCS_FIELDS, or the sub-tokens of its source in their order."""
Texts = Callable[[], Iterable[tuple[Sequence[str], Sequence[str]]]]
"""Gives (words of the question, words of the code) of every training pair, as often as it is called."""
DIM = 128
"""CodeSearchNet's."""
LEAST_IDF = 0.01
"""Of a word that every document has: its prior is small, not minus infinity."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Both sides' tokens, and for UNIF the vectors [V, d] and prior scores [V] that both start from.

    Where `vectors` has no rows, the encoder starts from random ones.
    """

    query: Tokens
    code: Tokens
    reads: Reads
    vectors: Matrix
    log_idf: NDArray[np.float32]


def reads(encoder: Encoder) -> Reads:
    """What the code side of this encoder reads."""
    return "fields" if encoder == "unif" else "source"


def begin(config: ModelConfig, start: Start, texts: Texts) -> Beginning:
    """UNIF starts from the words and vectors of an index; the others learn byte pairs and sub-tokens from the pairs.

    Raises MissingExtra where these need `tokenizers` and it is not installed.
    """
    if reads(config.encoder) == "fields":
        words = Words(start.vocabulary, config.buckets)
        log_idf = np.log(np.maximum(start.idf, LEAST_IDF)).astype(np.float32)
        return Beginning(words, words, "fields", *_with_buckets(words, start.vectors, log_idf))
    empty = np.zeros((0, DIM), np.float32)
    query = learn_bpe(query for query, _ in texts())
    return Beginning(query, learn_words(code for _, code in texts()), "source", empty, np.zeros(0, np.float32))


def _with_buckets(words: Words, vectors: Matrix, log_idf: NDArray[np.float32]) -> tuple[Matrix, NDArray[np.float32]]:
    """An n-gram starts at the mean of the words that have it; all n-grams of a word weigh as much as one rare word."""
    if not words.buckets:
        return vectors, log_idf
    known = len(words.vocabulary)
    table = np.concatenate([vectors, np.zeros((words.buckets, vectors.shape[1]), np.float32)])
    times, grams = np.zeros(words.buckets), 0
    for row, word in enumerate(words.vocabulary):
        at = np.fromiter(words.grams(word), np.int64) - 1
        np.add.at(table, at, vectors[row])
        np.add.at(times, at - known, 1)
        grams += len(at)
    table[known:] /= np.maximum(times, 1)[:, None]
    score = (log_idf.max(initial=0.0) if len(log_idf) else 0.0) - np.log(max(1.0, grams / max(1, known)))
    return table, np.concatenate([log_idf, np.full(words.buckets, score, np.float32)])
