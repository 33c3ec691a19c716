"""The words of a base and its delta as one vocabulary: numbers of the base's words stay, new words come behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.errors import IndexDamaged
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix

    Ids = NDArray[np.int32]
    Rows = NDArray[np.int64]

NUMBERS, GONE = "numbers.npy", "gone.npy"
"""Beside a vocabulary of the delta: the number of each of its words among all, and those that no document has now."""


class StackedVocabulary(Vocabulary):
    """The base's words, then those that only the delta has. What no document has any more is not found."""

    def __init__(self, base: Vocabulary, own: Vocabulary, numbers: Ids, gone: Ids) -> None:
        """own: the delta's words; numbers: of each, its id here; gone: ids of the base, ascending."""
        self.base, self._own, self.numbers, self._gone = base, own, numbers, gone
        self._new = np.flatnonzero(numbers >= len(base))  # as they stand in the delta: ascending on both sides

    def __len__(self) -> int:
        return len(self.base) + len(self._new)

    def __iter__(self) -> Iterator[str]:
        yield from self.base
        yield from map(self._own.word, self._new.tolist())

    def word(self, id: int) -> str:
        """The word of an id."""
        return self.base.word(id) if id < len(self.base) else self._own.word(int(self._new[id - len(self.base)]))

    def id(self, word: str) -> int | None:
        """The id of a word, None where no document has it."""
        if (own := self._own.id(word)) is not None:
            number = int(self.numbers[own])
        elif (known := self.base.id(word)) is not None:
            number = known
        else:
            return None
        return None if self.is_gone(number) else number

    def is_gone(self, id: int) -> bool:
        """Whether no document has this word."""
        at = int(np.searchsorted(self._gone, id))
        return at < len(self._gone) and int(self._gone[at]) == id

    def size(self) -> int:
        """How many words documents have."""
        return len(self) - len(self._gone)

    def known(self) -> list[str]:
        """All words that documents have, in byte order."""
        gone = set(self._gone.tolist())
        words = [word for id, word in enumerate(self) if id not in gone]
        return sorted(words, key=str.encode) if len(self._new) else words

    def ranks(self, ids: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Numbers that are in the order of the words, [len(ids)]."""
        found = ids.astype(np.float64)
        for at in np.flatnonzero(ids >= len(self.base)).tolist():
            new = int(ids[at]) - len(self.base)
            found[at] = self.base.first_from(self.word(int(ids[at]))) - 0.5 + new / (2 * len(self._new) + 2)
        return found

    def starting(self, prefix: str) -> range:
        raise NotImplementedError("ids of a stacked vocabulary do not stand side by side")

    @classmethod
    def load(cls, folder: Path, room: Path | None = None) -> StackedVocabulary:
        """Of the base in one folder and the delta in another."""
        if room is None:
            raise ValueError("name the folder of the delta")
        base, own = Vocabulary.of_folder(folder), Vocabulary.of_folder(room)
        try:
            numbers, gone = (np.load(room / name, allow_pickle=False) for name in (NUMBERS, GONE))
        except (OSError, EOFError, ValueError) as error:
            raise IndexDamaged(f"cannot read {room} ({error}); build the index again") from error
        if len(numbers) != len(own):
            raise IndexDamaged(f"the files in {room} do not fit each other; build the index again")
        return cls(base, own, numbers, gone)


class Longer:
    """An array of the base's words, memory-mapped, with zeros for words that came later; indexed as numpy's are."""

    def __init__(self, base: NDArray[np.float32], length: int) -> None:
        self._base, self.shape = base, (length, *base.shape[1:])
        self.dtype, self.ndim = base.dtype, base.ndim

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, at: Any) -> NDArray[np.float32]:
        first, others = (at[0], at[1:]) if isinstance(at, tuple) else (at, ())
        ids = np.arange(self.shape[0])[first]
        known = ids < len(self._base)
        found = np.asarray(self._base[np.where(known, ids, 0)])
        found = np.where(known.reshape(known.shape + (1,) * (self.ndim - 1)), found, np.float32(0))
        behind = (slice(None), *others)
        return found[behind] if others else found  # as in idf[ids, None]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[np.float32]:
        whole = np.zeros(self.shape, np.float32)
        whole[: len(self._base)] = self._base
        return whole


def longer(base: Matrix, length: int) -> Matrix:
    """As far as who reads it can tell, the array with zeros behind."""
    return base if len(base) == length else cast("Matrix", Longer(base, length))
