"""Postings and document vectors of a folder, for which Milvus finds the candidates; scores are the folder's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput
from ncs.scale.milvus.collection import dimension
from ncs.scale.milvus.difference import MOST
from ncs.scale.milvus.keys import Keys
from ncs.scale.milvus.narrowing import Narrowing
from ncs.scale.milvus.target import Target, patiently, told
from ncs.storage.arrays import distinct
from ncs.storage.postings import Postings, counts_of, leading
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.vectors import About
    from ncs.types import Mask, Matrix

    Rows = NDArray[np.int64]

SPARE = 16


class Served:
    """A collection that is asked. Every answer is of this collection, whatever the alias says meanwhile."""

    def __init__(self, client: Any, target: Target, name: str, keys: Keys, narrowing: Narrowing) -> None:
        self._client, self._target, self._name = client, target, name
        self._keys, self._narrowing = keys, narrowing

    def search(self, field: str, query: Any, k: int, allowed: Mask | None) -> Rows:
        """The rows that Milvus finds best, in its order, k of those that are allowed or as many as it gives.

        What it holds beside the documents of this folder is passed over.
        """
        said = self._narrowing.said(allowed)
        asked = min(MOST, k + SPARE)
        while True:
            found = self._asked(
                self._client.search, [query], anns_field=field, limit=asked, filter=said,
                output_fields=["key"], search_params={"metric_type": "IP"},
            )[0]  # fmt: skip
            rows = self._keys.rows(np.array([hit["key"] for hit in found if hit["distance"] != 0], np.int64))
            rows = rows[rows >= 0]
            if allowed is not None:
                rows = rows[allowed[rows]]
            if len(rows) >= k or len(found) < asked or asked == MOST:
                return rows
            asked = min(MOST, 4 * asked)

    def _asked(self, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        return patiently(partial(self._once, call, *arguments, **more), self._target.seconds)

    def _once(self, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """What a call gives; a Milvus that was started again has to open the collection first."""
        from pymilvus.exceptions import MilvusException

        with told(self._target):
            try:
                return call(self._name, *arguments, timeout=self._target.seconds, **more)
            except MilvusException as error:
                if "load" not in str(error.message):
                    raise
            self._client.load_collection(self._name, timeout=self._target.seconds)
            return call(self._name, *arguments, timeout=self._target.seconds, **more)


@dataclass(frozen=True, slots=True)
class MilvusPostings(Postings):
    """All is the folder's, but which rows lead."""

    local: Postings | None = None
    served: Served | None = None

    @classmethod
    def over(cls, local: Postings, served: Served) -> MilvusPostings:
        """local: memory-mapped; of it stems of the question are read where candidates stand."""
        arrays = local.offsets, local.rows, local.impacts, local.lengths, local.in_code
        return cls(local.stems, *arrays, counted=local.counted, local=local, served=served)

    def leading(
        self, ids: Sequence[int] | Mapping[int, float], k: int, *, allowed: Mask | None = None
    ) -> tuple[Rows, NDArray[np.float64]]:
        """As Postings does."""
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        local, served = self._parts()
        query: dict[int, float] = {}
        for id, count in counts_of(ids).items():
            if count:
                at = dimension(local.stems.word(id))
                query[at] = query.get(at, 0.0) + float(count)
        if not query or (allowed is not None and not allowed.any()):
            return np.zeros(0, np.int64), np.zeros(0)
        rows = distinct(served.search("sparse", query, k, allowed))
        scores = local.scores(ids, rows)
        having = scores > 0  # not by another stem of the same dimension
        return leading(rows[having], scores[having], k)

    def df(self, id: int) -> int:
        """As Postings does."""
        return self._parts()[0].df(id)

    def share_in_code(self, id: int) -> float:
        """As Postings does."""
        return self._parts()[0].share_in_code(id)

    def scores(self, ids: Sequence[int] | Mapping[int, float], rows: Rows) -> NDArray[np.float64]:
        """As Postings does."""
        return self._parts()[0].scores(ids, rows)

    def posting(self, id: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """As Postings does."""
        return self._parts()[0].posting(id)

    def _parts(self) -> tuple[Postings, Served]:
        if self.local is None or self.served is None:
            raise ValueError("these postings are not connected")
        return self.local, self.served


class MilvusVectors(VectorIndex):
    """All is the folder's, but which rows are near."""

    def __init__(self, local: VectorIndex, served: Served) -> None:
        self._local, self._served = local, served

    def __len__(self) -> int:
        """How many rows."""
        return len(self._local)

    @property
    def about(self) -> About:
        """Of the folder's."""
        return self._local.about

    @property
    def dim(self) -> int:
        """Numbers a vector."""
        return self._local.dim

    def search(
        self, queries: Matrix, k: int, *, allowed: Mask | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """As VectorIndex does: by (-score, row), row -1 where there are fewer than k."""
        rows = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        for at, query in enumerate(np.asarray(queries, np.float32)):
            found = self._served.search("dense", query, k, allowed)
            near = self.similarities(query, found)
            order = np.lexsort((found, -near))[:k]
            rows[at, : len(order)], scores[at, : len(order)] = found[order], near[order]
        return rows, scores

    def vectors(self, rows: Rows) -> Matrix:
        """The vectors of these rows, [len(rows), dim]."""
        return self._local.vectors(rows)

    def filled(self) -> Rows:
        """The rows that are not zero, rising."""
        return self._local.filled()
