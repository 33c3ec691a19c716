"""Which pairs are of one question: those that share an id, a wording, or a chain of these."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Questions:
    """Numbers questions as their pairs come; memory holds eight bytes of every key, not the key.

    >>> questions = Questions()
    >>> questions.add("open a file", "id 1")
    >>> questions.add("close a file", "id 2")
    >>> questions.add("open the file", "id 1")
    >>> questions.add("close a file", "id 1")
    >>> questions.numbers().tolist()
    [0, 0, 0, 0]
    """

    def __init__(self) -> None:
        self._node: dict[int, int] = {}
        self._parent: list[int] = []
        self._pairs: list[int] = []

    def add(self, *keys: str) -> None:
        """One more pair; a pair without keys is a question of its own."""
        mine = self._new()
        for key in keys:
            digest = int.from_bytes(hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            mine = self._join(mine, self._node.setdefault(digest, mine))
        self._pairs.append(mine)

    def numbers(self) -> NDArray[np.int64]:
        """The question of each pair, [n], numbered from 0 in the order in which they came first."""
        roots = np.fromiter(map(self._root, self._pairs), np.int64, len(self._pairs))
        _, first, numbers = np.unique(roots, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        found: NDArray[np.int64] = rank[numbers.reshape(-1)].astype(np.int64)
        return found

    def _new(self) -> int:
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def _root(self, node: int) -> int:
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def _join(self, one: int, other: int) -> int:
        one, other = sorted((self._root(one), self._root(other)))
        self._parent[other] = one
        return one
