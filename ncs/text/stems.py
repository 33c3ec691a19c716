"""English stems, the same for British and American spelling, and those of a vocabulary's words as cached numbers."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable

import numpy as np
import Stemmer
from numpy.typing import NDArray

from ncs.text.vocabulary import Vocabulary

_BEFORE_ISE = "[aeiou]l|[aou]n|gn|rn|ken|(?<!pr)[eio]m|nym|[aeo]r|metr|[ei]t|ant|ard|[ae]s|memo"
"""What -ise follows where American has -ize: tokenise, optimise; not otherwise, promise, exercise, surprise."""
_MAYBE_BRITISH = re.compile("is[aei]|ys[ei]|our|[bmt]re|ogue|ence|grey|artef")
_AMERICAN = [
    (re.compile(british), american)
    for british, american in (
        (rf"((?:{_BEFORE_ISE})(?<=\w{{4}})i)s(?=(?:e[ds]?|ers?|ing|able|ations?)$)", r"\1z"),
        (r"((?:anal|paral|catal)y)s(?=(?:e[dr]?|ers|ing)$)", r"\1z"),
        (r"((?:arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rig|sav|vap|vig)o)u(?=r)", r"\1"),
        (r"(cent|fib|lit|met|theat)re(?=s?$)", r"\1er"),
        (r"((?:anal|catal|dial)og)ue(?=s?$)", r"\1"),
        (r"((?:def|off|lic)en)c(?=e)", r"\1s"),
        ("artefact", "artifact"),
        ("grey", "gray"),
    )
]
_of_thread = threading.local()
"""A stemmer, which caches 10,000 words and is not thread-safe."""


def stem(word: str) -> str:
    """The English Snowball stem of a lower-case word.

    >>> stem("hiding")
    'hide'
    """
    return stem_all([word])[0]


def stem_all(words: Iterable[str]) -> list[str]:
    """The stem of each word.

    >>> stem_all(["serialised", "colour", "promised"])
    ['serial', 'color', 'promis']
    """
    stemmer = getattr(_of_thread, "stemmer", None)
    if stemmer is None:
        stemmer = _of_thread.stemmer = Stemmer.Stemmer("english")
    return list(stemmer.stemWords(list(map(american, words))))


def american(word: str) -> str:
    """The American spelling of a lower-case word.

    >>> [american(word) for word in ("initialisation", "analyser", "behaviours", "centre", "surprise", "hour")]
    ['initialization', 'analyzer', 'behaviors', 'center', 'surprise', 'hour']
    """
    if _MAYBE_BRITISH.search(word):
        for pattern, spelling in _AMERICAN:
            word = pattern.sub(spelling, word)
    return word


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
