"""Known words that are spelt nearly like an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ncs.text.vocabulary import Vocabulary

REMEMBERED = 1_000
"""Words whose near ones are kept: one question asks for the same word several times."""


class Known(list[str]):
    """All words of a vocabulary, for who asks often: 36,600 take 4 ms to read, and comparing them .9 instead of 2.5."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__(words)
        self._of_length: dict[int, tuple[list[int], list[str]]] = {}
        for id, word in enumerate(self):
            ids, same = self._of_length.setdefault(len(word), ([], []))
            ids.append(id)
            same.append(word)
        self._found: dict[str, list[tuple[int, int]]] = {}

    def within(self, word: str, edits: int) -> list[tuple[int, int]]:
        """(Edits, id) of every word within so many edits, in no order; of one word always ask for as many."""
        if word not in self._found:
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            lengths = range(len(word) - edits, len(word) + edits + 1)
            buckets = [self._of_length[length] for length in lengths if length in self._of_length]
            self._found[word] = [(away, ids[at]) for ids, same in buckets for away, at in _within(word, same, edits)]
        return self._found[word]


def _within(word: str, known: list[str], edits: int) -> list[tuple[int, int]]:
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    found = process.extract(word, known, scorer=OSA.distance, score_cutoff=edits, limit=None)
    return [(int(away), at) for _, away, at in found]


def near(
    word: str, vocabulary: Vocabulary | list[str], n: int = 3, *, count: Callable[[str], int] | None = None
) -> list[str]:
    """At most n words within one edit (two, from five letters on), nearest first, the more frequent of equals first.

    An edit adds, drops or changes a letter or swaps two neighbours (optimal string alignment). count tells how
    frequent a word is, and is asked about near words only; without it equals stand in alphabetical order. Who asks
    often hands over a `Known`.

    >>> near("keybord", Vocabulary.of(["keyboard", "key", "board", "keyword"]))
    ['keyboard', 'keyword']
    """
    known = vocabulary if isinstance(vocabulary, list) else list(vocabulary)
    word = word.lower()
    edits = 2 if len(word) >= 5 else 1
    found = known.within(word, edits) if isinstance(known, Known) else _within(word, known, edits)
    ranked = sorted((away, -count(known[id]) if count else 0, id) for away, id in found if away)
    return [known[id] for _, _, id in ranked[:n]]
