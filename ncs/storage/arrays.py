"""A vocabulary and arrays that belong together, as files of one folder of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ncs.storage.snapshot import load_array
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 2_000
"""Pairs up to which what hangs together is found here: importing scipy's graphs takes 70 ms."""
Number = TypeVar("Number", np.int64, np.uint64)


def save_arrays(room: Path, vocabulary: Vocabulary, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the vocabulary and one `<name>.npy` each into a folder, which is made."""
    room.mkdir(parents=True, exist_ok=True)
    vocabulary.save(room)
    for name, array in arrays.items():
        np.save(room / f"{name}.npy", array)


def load_arrays(room: Path, names: Iterable[str]) -> tuple[Vocabulary, list[NDArray[Any]]]:
    """Memory-mapped, in the order of the names; raises IndexDamaged where a file is missing or truncated."""
    arrays = [load_array(room / f"{name}.npy") for name in names]
    return Vocabulary.load(room), arrays


def distinct(values: NDArray[Number]) -> NDArray[Number]:
    """The distinct values, ascending, as np.unique gives them: by sorting, which takes a fifth of the time of the
    hashing of numpy 2.3 and later where there are a few thousand.

    >>> distinct(np.array([3, 1, 3])).tolist(), distinct(np.zeros(0, np.int64)).tolist()
    ([1, 3], [])
    """
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def parts_of(ends: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Which of n things hang together by these pairs of them, [pairs, 2]: the same number for each of a part, [n].

    >>> parts_of(np.array([[0, 2], [3, 4]]), 5).tolist()
    [2, 1, 2, 4, 4]
    """
    if len(ends) > FEW:
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        pairs = coo_matrix((np.ones(len(ends), np.bool_), (ends[:, 0], ends[:, 1])), (n, n))
        return np.asarray(connected_components(pairs)[1], np.int64)
    above = list(range(n))

    def top(of: int) -> int:
        while above[of] != of:
            above[of] = of = above[above[of]]
        return of

    for left, right in ends.tolist():
        above[top(left)] = top(right)
    return np.array([top(each) for each in range(n)], np.int64)
