"""The words of a corpus, numbered in alphabetical order."""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncs.errors import reading
from ncs.files import SMALL_BYTES, map_array, open_regular, save_array

NEWLINE = ord("\n")
CACHED, SEARCHED = 1_000, 200
"""Size of the cache of lookups; a lookup in the file costs as much as reading SEARCHED words."""


class Vocabulary:
    """Word <-> id, in byte order of the words.

    On disk: `vocabulary.txt` (UTF-8, one word per line) and `vocabulary.npy` (offsets of lines). A lookup is a binary
    search in the memory-mapped file.
    """

    def __init__(self, text: bytes | mmap.mmap, starts: NDArray[np.int64]) -> None:
        self._text = text
        self._starts = starts
        self._ids: dict[str, int | None] = {}

    @classmethod
    def of(cls, words: Iterable[str]) -> Vocabulary:
        """Make a vocabulary from distinct words in any order.

        >>> v = Vocabulary.of(["soft", "hide"])
        >>> len(v), v.id("hide"), v.id("nope"), v.word(1), list(v)
        (2, 0, None, 'soft', ['hide', 'soft'])
        """
        lines = sorted(word.encode() for word in words)
        starts = np.zeros(len(lines) + 1, np.int64)
        np.cumsum([len(line) + 1 for line in lines], out=starts[1:])
        return cls(b"".join(line + b"\n" for line in lines), starts)

    @classmethod
    def numbered(cls, numbers: Mapping[str, int]) -> tuple[Vocabulary, NDArray[np.int32]]:
        """The vocabulary of words that have numbers, and the id of each number, [len(numbers)].

        >>> Vocabulary.numbered({"soft": 0, "hide": 1})[1].tolist()
        [1, 0]
        """
        ids = np.zeros(len(numbers), np.int32)
        ids[[numbers[word] for word in sorted(numbers, key=str.encode)]] = np.arange(len(numbers))
        return cls.of(numbers), ids

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        return iter(bytes(self._text[:]).decode().split("\n")[:-1])

    def __contains__(self, word: str) -> bool:
        return self.id(word) is not None

    def word(self, id: int) -> str:
        """The word of an id."""
        return self._line(id).decode()

    def _line(self, id: int) -> bytes:
        return self._text[self._starts[id] : self._starts[id + 1] - 1]

    def id(self, word: str) -> int | None:
        """The id of a word, None where it is unknown."""
        id = self._ids.get(word, -1)
        if id == -1:
            line = word.encode(errors="replace")
            first = self.first_from(line)
            id = first if first < len(self) and self._line(first) == line else None
            if len(self._ids) >= CACHED:
                self._ids.clear()
            self._ids[word] = id
        return id

    def ids_of(self, words: Collection[str]) -> NDArray[np.int32]:
        """The ids of some words, -1 for unknown ones; for many words the whole file is read, which is faster."""
        if len(words) * SEARCHED < len(self):
            return np.array([-1 if (id := self.id(word)) is None else id for word in words], np.int32)
        ids = {word: id for id, word in enumerate(self)}
        return np.array([ids.get(word, -1) for word in words], np.int32)

    def first_from(self, line: bytes) -> int:
        """The id of the first word that is not before this one, in UTF-8."""
        return bisect_left(range(len(self)), line, key=self._line)

    def starting(self, prefix: str) -> range:
        """The ids of all words with this prefix: they are consecutive.

        >>> v = Vocabulary.of(["hid", "hide", "hiding", "soft"])
        >>> v.starting("hid"), v.starting("x")
        (range(0, 3), range(4, 4))
        """
        start, end = prefix.encode(errors="replace"), prefix.encode(errors="replace") + b"\xff"
        return range(self.first_from(start), self.first_from(end))

    def longer(self, part: str) -> Iterator[str]:
        """The longer words that begin with this word, then those that end with it.

        >>> list(Vocabulary.of(["sdstrim", "strimmer", "trim", "trims"]).longer("trim"))
        ['trims', 'sdstrim']
        """
        own, end = self.id(part), f"{part}\n".encode(errors="replace")
        yield from (self.word(id) for id in self.starting(part) if id != own)
        at = self._text.find(end)
        while at >= 0:
            start = self._text.rfind(b"\n", 0, at) + 1
            if start < at:
                yield self._text[start : at + len(end) - 1].decode()
            at = self._text.find(end, at + 1)

    def ranks(self, ids: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Numbers in the order of the words, [len(ids)]."""
        return ids.astype(np.float64)

    def is_sound(self) -> bool:
        """Whether every line ends where the next one starts, and all are UTF-8."""
        text, ends = bytes(self._text[:]), self._starts[1:] - 1
        lines = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
        with suppress(UnicodeDecodeError):
            return text.decode() is not None and self._starts[0] == 0 and np.array_equal(lines, ends)
        return False

    def save(self, folder: Path) -> None:
        """Write `vocabulary.txt` and `vocabulary.npy`."""
        (folder / "vocabulary.txt").write_bytes(bytes(self._text[:]))
        save_array(folder / "vocabulary.npy", self._starts)

    @staticmethod
    def load(folder: Path) -> Vocabulary:
        """Memory-mapped unless it is small; raises IndexDamaged for files that are missing, truncated or disagree."""
        path = folder / "vocabulary.txt"
        with reading(f"the vocabulary in {folder}"):
            starts = map_array(folder / "vocabulary.npy", np.int64)
            if path.stat().st_size != starts[-1]:
                raise ValueError("vocabulary.txt does not fit vocabulary.npy")
            with open_regular(path) as file:
                if starts[-1] <= SMALL_BYTES:
                    return Vocabulary(file.read(), starts)
                return Vocabulary(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), starts)


class ExtendedVocabulary(Vocabulary):
    """A vocabulary and further words: the ids of the first stay, new words follow in byte order.

    >>> base = Vocabulary.of(["hide", "show"])
    >>> v = ExtendedVocabulary(base, Vocabulary.of(["dial"]))
    >>> len(v), v.id("show"), v.id("dial"), v.word(2), v.id("nope")
    (3, 1, 2, 'dial', None)
    """

    def __init__(self, base: Vocabulary, more: Vocabulary) -> None:
        self._base, self._more = base, more

    def __len__(self) -> int:
        return len(self._base) + len(self._more)

    def __iter__(self) -> Iterator[str]:
        return chain(self._base, self._more)

    def word(self, id: int) -> str:
        """The word of an id."""
        return self._base.word(id) if id < len(self._base) else self._more.word(id - len(self._base))

    def id(self, word: str) -> int | None:
        """The id of a word, None where it is unknown."""
        id = self._base.id(word)
        if id is None and (id := self._more.id(word)) is not None:
            id += len(self._base)
        return id

    def longer(self, part: str) -> Iterator[str]:
        """The longer words that begin or end with this one."""
        return chain(self._base.longer(part), self._more.longer(part))

    def ranks(self, ids: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Numbers in the order of the words, [len(ids)]."""
        ranks = ids.astype(np.float64)
        for at in np.flatnonzero(ids >= len(self._base)).tolist():
            number = int(ids[at]) - len(self._base)
            after = self._base.first_from(self._more.word(number).encode())
            ranks[at] = after - 1 + (number + 1) / (len(self._more) + 1)
        return ranks


def merge(base: Vocabulary, others: Sequence[Vocabulary]) -> tuple[Vocabulary, list[NDArray[np.int32]]]:
    """One vocabulary of all words, in which those of `base` keep their ids, and the new ids of the others' words."""
    if not others:
        return base, []
    words = [list(other) for other in others]
    ids = [base.ids_of(each) for each in words]
    new = {word for each, own in zip(words, ids, strict=True) for word in compress(each, (own < 0).tolist())}
    more = Vocabulary.of(new)
    for each, own in zip(words, ids, strict=True):
        missing = np.flatnonzero(own < 0)
        own[missing] = len(base) + more.ids_of([each[at] for at in missing])
    return ExtendedVocabulary(base, more), ids
