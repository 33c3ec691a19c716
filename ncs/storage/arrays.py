"""Arrays: on disk beside a vocabulary, by segment, and with several values a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ncs.errors import damaged, reading
from ncs.files import map_array, save_array
from ncs.text.vocabulary import Vocabulary
from ncs.types import Mask, Rows

Number = TypeVar("Number", bound=np.generic)
Table = TypeVar("Table", bound="ArrayTable")


def load_array(path: Path, kind: type[np.generic], dimensions: int = 1) -> NDArray[Any]:
    """A memory-mapped .npy file; raises IndexDamaged if it is missing, truncated or of another kind."""
    with reading(path):
        return map_array(path, kind, dimensions)


class ArrayTable:
    """A dataclass of a vocabulary and arrays of one dimension and the annotated type (`NDArray[np.int32]`, `Rows`); on
    disk the vocabulary's files and one `<field>.npy` per array."""

    def fits(self) -> bool:
        """Whether the shapes of the arrays fit each other."""
        raise NotImplementedError

    def is_sound(self, documents: int) -> bool:
        """Whether all offsets and ids are valid in a segment of this number of documents."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write into a folder, which is created."""
        folder.mkdir(parents=True, exist_ok=True)
        vocabulary, *arrays = (field.name for field in fields(self))  # type: ignore[arg-type]
        getattr(self, vocabulary).save(folder)
        for name in arrays:
            save_array(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls: type[Table], folder: Path) -> Table:
        """Memory-mapped; raises IndexDamaged where files are missing, truncated or do not fit each other."""
        arrays = [
            load_array(folder / f"{each.name}.npy", _kind(str(each.type)), each.metadata.get("dimensions", 1))
            for each in fields(cls)[1:]  # type: ignore[arg-type]
        ]
        table = cls(Vocabulary.load(folder), *arrays)  # type: ignore[call-arg]
        if not table.fits():
            raise damaged(f"the files in {folder} do not fit each other")
        return table


def _kind(annotation: str) -> type[np.generic]:
    """The type of an annotated array.

    >>> _kind("Rows"), _kind("NDArray[np.float32]")
    (<class 'numpy.int64'>, <class 'numpy.float32'>)
    """
    return np.int64 if annotation == "Rows" else getattr(np, annotation[len("NDArray[np.") : -1])


def distinct(values: NDArray[Number]) -> NDArray[Number]:
    """The distinct values, ascending: np.unique without its import of numpy.ma (11 ms).

    >>> distinct(np.array([3, 1, 3])).tolist(), distinct(np.zeros(0, np.int64)).tolist()
    ([1, 3], [])
    """
    in_order = np.sort(values)
    return in_order[starts_of_runs(in_order)]


def are_in(values: NDArray[np.integer[Any]], others: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Whether each value is among the others: np.isin without its import of numpy.ma.

    >>> are_in(np.array([3, 1, 5]), np.array([5, 3])).tolist(), are_in(np.array([3]), np.zeros(0, np.int64)).tolist()
    ([True, False, True], [False])
    """
    if not len(others):
        return np.zeros(len(values), np.bool_)
    known = np.sort(others)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values
    return found


def starts_of_runs(values: NDArray[Any]) -> Rows:
    """The positions at which a value differs from the one before it.

    >>> starts_of_runs(np.array([1, 1, 3])).tolist()
    [0, 2]
    """
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return np.flatnonzero(first)


def places_in_runs(values: NDArray[Any]) -> Rows:
    """The position of each value in its run of equal values.

    >>> places_in_runs(np.array([4, 4, 9, 9, 9])).tolist()
    [0, 1, 0, 1, 2]
    """
    starts = starts_of_runs(values)
    lengths = np.diff(np.append(starts, len(values)))
    return np.arange(len(values)) - np.repeat(starts, lengths)


def offsets_of(lengths: NDArray[Any]) -> Rows:
    """The start of each row's values, and the end of the last row's, [len(lengths) + 1].

    >>> offsets_of(np.array([2, 0, 1])).tolist()
    [0, 2, 2, 3]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(begins: Rows, lengths: Rows) -> Rows:
    """begin, begin+1, ... for every range, joined: [0, 7], [2, 1] -> 0 1 7."""
    ends = np.cumsum(lengths)
    positions: Rows = np.arange(int(ends[-1]) if len(ends) else 0)
    positions += np.repeat(begins - (ends - lengths), lengths)
    return positions


def are_offsets(offsets: NDArray[np.integer[Any]], end: int) -> bool:
    """Whether offsets ascend from 0 to `end`.

    >>> are_offsets(np.array([0, 2, 2, 3]), 3), are_offsets(np.array([0, 5, 3]), 3), are_offsets(np.zeros(0, int), 0)
    (True, False, False)
    """
    ends = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == end
    return bool(ends and (offsets[1:] >= offsets[:-1]).all())


LARGEST = 1e12
"""Sums and products of such numbers are finite in float32."""


def are_finite(values: NDArray[Any]) -> bool:
    """Whether all values are finite, and at most LARGEST in size.

    >>> [are_finite(np.array([0.0, value])) for value in (-1e9, np.nan, np.inf)]
    [True, False, False]
    >>> [are_finite(np.array([0.0, value], np.float16)) for value in (-6e4, np.nan, -np.inf)]
    [True, False, False]
    """
    if values.dtype.kind != "f" or not values.size:
        return True
    if values.dtype == np.float16:  # ten times as fast as a comparison
        return bool(((values.view(np.uint16) & 0x7C00) < 0x7C00).all())
    return float(values.min()) >= -LARGEST and float(values.max()) <= LARGEST


def are_below(values: NDArray[np.integer[Any]], end: int, start: int = 0) -> bool:
    """Whether all are in start .. end - 1.

    >>> are_below(np.array([0, 4]), 5), are_below(np.array([0, 5]), 5), are_below(np.array([-1]), 5)
    (True, False, False)
    """
    return not values.size or bool(values.min() >= start and values.max() < end)


def values_in(values: NDArray[Number], begins: Rows, lengths: Rows) -> NDArray[Number]:
    """The values of ranges, joined; raises IndexError for ranges that do not exist."""
    if begins.size and (begins.min() < 0 or lengths.min() < 0 or (begins + lengths).max() > len(values)):
        raise IndexError("offsets lead out of their values")
    return values[ranges(begins, lengths)]


def values_of(values: NDArray[Number], offsets: Rows, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[Number], Rows]:
    """The values of some rows, joined, and how many each row has; those of row i are values[offsets[i]:offsets[i + 1]].

    >>> values, counts = values_of(np.array([5, 6, 7]), np.array([0, 2, 2, 3]), np.array([2, 0, 1]))
    >>> values.tolist(), counts.tolist()
    ([7, 5, 6], [1, 2, 0])
    """
    begins = offsets[rows]
    lengths = offsets[rows + 1] - begins
    return values_in(values, begins, lengths), lengths


def both(mask: Mask | None, other: Mask | None) -> Mask | None:
    """The rows that two masks have; None stands for all rows."""
    if mask is None or other is None:
        return other if mask is None else mask
    return mask & other


def as_pairs(rows: Rows, scores: NDArray[Any]) -> list[tuple[int, float]]:
    """(row, score) of each, as plain numbers."""
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def top_rows(rows: Rows, scores: NDArray[Any], k: int) -> tuple[Rows, NDArray[Any]]:
    """The best k rows and their scores, exact where scores tie at the cut: of equal scores the first ones.

    >>> as_pairs(*top_rows(np.array([2, 5, 7]), np.array([1.0, 3.0, 1.0]), 2))
    [(5, 3.0), (2, 1.0)]
    """
    if len(rows) > k:
        best = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        rows, scores = rows[best], scores[best]
    order = np.argsort(-scores, kind="stable")[:k]
    return rows[order], scores[order]


def split(firsts: Rows, rows: Rows) -> Iterator[tuple[int, Rows, Rows]]:
    """Rows by segment, without empty ones: (position of the segment, positions in `rows`, local rows). firsts: the
    first row of each segment."""
    owners = np.searchsorted(firsts, rows, side="right") - 1
    for number, first in enumerate(firsts.tolist()):
        at = np.flatnonzero(owners == number)
        if len(at):
            yield number, at, rows[at] - first


def gather(firsts: Rows, rows: Rows, read: Callable[[int, Rows], NDArray[Number]]) -> NDArray[Number]:
    """One value per row, in the order of `rows`; `read` returns those of local rows of one segment."""
    if len(firsts) == 1 or not len(rows):
        return read(0, rows)
    places, values = zip(*((at, read(number, local)) for number, at, local in split(firsts, rows)), strict=True)
    return np.concatenate(values)[np.argsort(np.concatenate(places))]


def gather_several(
    firsts: Rows, rows: Rows, read: Callable[[int, Rows], tuple[NDArray[np.int32], Rows]]
) -> tuple[NDArray[np.int32], Rows]:
    """`gather` for any number of values a row: the values, joined, and the number of each row's."""
    if len(firsts) == 1 or not len(rows):
        return read(0, rows)
    parts = ((at, *read(number, local)) for number, at, local in split(firsts, rows))
    places, values, lengths = (np.concatenate(each) for each in zip(*parts, strict=True))
    return values_of(values, offsets_of(lengths), np.argsort(places))
