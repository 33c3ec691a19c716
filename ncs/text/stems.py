"""English stems, and those of a vocabulary's words as cached numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import Stemmer
from numpy.typing import NDArray

from ncs.text.vocabulary import Vocabulary

_of_thread = threading.local()
"""A stemmer, which caches 10,000 words and is not thread-safe."""


def stem(word: str) -> str:
    """The English Snowball stem of a lower-case word.

    >>> stem("hiding")
    'hide'
    """
    return stem_all([word])[0]


def stem_all(words: Iterable[str]) -> list[str]:
    """The stem of each word."""
    stemmer = getattr(_of_thread, "stemmer", None)
    if stemmer is None:
        stemmer = _of_thread.stemmer = Stemmer.Stemmer("english")
    return list(stemmer.stemWords(list(words)))


class Stems:
    """Word id -> number of its stem, cached; thread-safe.

    >>> from ncs.text.vocabulary import Vocabulary
    >>> stems = Stems(Vocabulary.of(["file", "files", "hide"]))
    >>> stems.numbers(np.array([2, 1, 0])).tolist(), stems.of_stems(["file"]).tolist()
    ([1, 0, 0], [0])
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._numbers: dict[str, int] = {}
        self._cache = np.full(len(vocabulary), -1, np.int32)
        self._lock = threading.Lock()

    def numbers(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of some words' stems, [len(ids)]: equal ones are one stem."""
        numbers = self._cache[ids]
        if (numbers < 0).any():
            new = sorted(set(ids[numbers < 0].tolist()))
            self._cache[new] = self.of_stems(stem_all(map(self._vocabulary.word, new)))
            numbers = self._cache[ids]
        return numbers

    def of_stems(self, stems: Iterable[str]) -> NDArray[np.int32]:
        """The numbers of stems."""
        with self._lock:
            return np.array([self._numbers.setdefault(stem, len(self._numbers)) for stem in stems], np.int32)
