"""Words of a vocabulary with nearly the spelling of an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ncs.text.vocabulary import Vocabulary

CACHE_SIZE = 1_000
"""Words whose neighbors are in the cache: a query needs those of a word several times."""


class WordList(list[str]):
    """All words of a vocabulary, by length and with a cache: for many lookups."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__(words)
        self._of_length: dict[int, tuple[list[int], list[str]]] = {}
        for id, word in enumerate(self):
            ids, same = self._of_length.setdefault(len(word), ([], []))
            ids.append(id)
            same.append(word)
        self._cache: dict[tuple[str, int], list[tuple[int, int]]] = {}

    def within(self, word: str, edits: int) -> list[tuple[int, int]]:
        """(Edits, id) of every word within so many edits, in no order."""
        if (word, edits) not in self._cache:
            if len(self._cache) >= CACHE_SIZE:
                self._cache.clear()
            lengths = range(len(word) - edits, len(word) + edits + 1)
            buckets = [self._of_length[length] for length in lengths if length in self._of_length]
            neighbors = [(away, ids[at]) for ids, same in buckets for away, at in _within(word, same, edits)]
            self._cache[word, edits] = neighbors
        return self._cache[word, edits]


def _within(word: str, words: list[str], edits: int) -> list[tuple[int, int]]:
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    neighbors = process.extract(word, words, scorer=OSA.distance, score_cutoff=edits, limit=None)
    return [(int(away), at) for _, away, at in neighbors]


def nearest_words(
    word: str, vocabulary: Vocabulary | list[str], n: int = 3, *, count: Callable[[str], int] | None = None
) -> list[str]:
    """At most n words within one edit (two, from five letters on), nearest first, the more frequent of equals first.

    An edit adds, drops or changes a letter or swaps two neighbors (optimal string alignment). count: the frequency of
    a word; without it equals stand in alphabetical order. For many lookups pass a `WordList`.

    >>> nearest_words("keybord", Vocabulary.of(["keyboard", "key", "board", "keyword"]))
    ['keyboard', 'keyword']
    """
    words = vocabulary if isinstance(vocabulary, list) else list(vocabulary)
    word = word.lower()
    edits = 2 if len(word) >= 5 else 1
    neighbors = words.within(word, edits) if isinstance(words, WordList) else _within(word, words, edits)
    ranked = sorted((away, -count(words[id]) if count else 0, id) for away, id in neighbors if away)
    return [words[id] for _, _, id in ranked[:n]]
