"""Which pairs are of one question: those that share an id, a wording, or a chain of these."""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Questions:
    """Numbers questions as their pairs come; memory holds twelve bytes of every key, not the key.

    >>> questions = Questions()
    >>> questions.add("open a file", "id 1")
    >>> questions.add("close a file", "id 2")
    >>> questions.add("open the file", "id 1")
    >>> questions.add("close a file", "id 1")
    >>> questions.numbers().tolist()
    [0, 0, 0, 0]
    """

    def __init__(self) -> None:
        self._pairs = 0
        self._pair, self._key = array("i"), array("Q")

    def add(self, *keys: str) -> None:
        """One more pair; a pair without keys is a question of its own."""
        for key in keys:
            digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).digest()
            self._pair.append(self._pairs)
            self._key.append(int.from_bytes(digest, "big"))
        self._pairs += 1

    def numbers(self) -> NDArray[np.int32]:
        """The question of each pair, [n], numbered from 0 in the order in which they came first.

        Pairs and keys are the nodes of a graph, a pair's keys its edges; a question is a connected part of it.
        """
        pair = np.frombuffer(self._pair, np.int32)
        distinct, key = np.unique(np.frombuffer(self._key, np.uint64), return_inverse=True)
        key = key.reshape(-1).astype(np.int32) + np.int32(self._pairs)
        nodes = self._pairs + len(distinct)
        graph = coo_array((np.ones(len(pair), np.int8), (pair, key)), (nodes, nodes)).tocsr()
        labels = connected_components(graph, directed=False)[1][: self._pairs]
        _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first)).astype(np.int32)
        found: NDArray[np.int32] = rank[numbers.reshape(-1)]
        return found
