"""How much bags of things have in common, all of some with all of others at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bags = Sequence[Mapping[Any, int]]


def shared(some: Bags, others: Bags) -> NDArray[np.int64]:
    """How many things each of some shares with each of others, as multisets, [len(some), len(others)].

    A thing that comes n times is n things, so that one sparse product counts all. Memory: a number a pair of bags.

    >>> shared([{"a": 2, "b": 1}, {}], [{"a": 3}, {"b": 1, "c": 1}]).tolist()
    [[2, 1], [0, 0]]
    """
    from scipy.sparse import csr_matrix

    numbers: dict[tuple[Hashable, int], int] = {}
    for bag in others:
        for thing, times in bag.items():
            for nth in range(times):
                numbers.setdefault((thing, nth), len(numbers))

    def matrix(bags: Bags) -> Any:
        found, ends = [], [0]
        for bag in bags:
            for thing, times in bag.items():
                found += [at for nth in range(times) if (at := numbers.get((thing, nth))) is not None]
            ends.append(len(found))
        ones = np.ones(len(found), np.int32)
        return csr_matrix((ones, np.array(found, np.int64), np.array(ends)), (len(bags), max(1, len(numbers))))

    return np.asarray((matrix(some) @ matrix(others).T).toarray(), np.int64)
