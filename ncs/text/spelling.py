"""Words of a vocabulary with nearly the spelling of an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache


class WordList(list[str]):
    """All words of a vocabulary, with a cache: for many lookups."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__(words)
        self.within = lru_cache(1_000)(self._within)  # a query needs the neighbors of a word several times
        """(distance, id) of every word within this number of edits, in no order."""

    def _within(self, word: str, edits: int) -> list[tuple[int, int]]:
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        matches = process.extract_iter(word, self, scorer=OSA.distance, score_cutoff=edits)
        return [(int(distance), id) for _, distance, id in matches]


def nearest_words(
    word: str, vocabulary: Iterable[str], n: int = 3, *, count: Callable[[str], int] | None = None
) -> list[str]:
    """At most n words within one edit (two, from five letters on; optimal string alignment), nearest first, ties by
    `count`, the frequency of a word, and the order of the vocabulary. For many lookups pass a `WordList`.

    >>> nearest_words("keybord", ["board", "key", "keyboard", "keyword"])
    ['keyboard', 'keyword']
    """
    words = vocabulary if isinstance(vocabulary, WordList) else WordList(vocabulary)
    word = word.lower()
    neighbors = words.within(word, 2 if len(word) >= 5 else 1)
    nearest = sorted((edits, -count(words[id]) if count else 0, id) for edits, id in neighbors if edits)
    return [words[id] for _, _, id in nearest[:n]]
