"""Postings and document vectors that Milvus holds: it searches, scores are computed here from what it stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import IndexDamaged
from ncs.lexical import Postings, top
from ncs.milvus.target import Target, patiently, remedy, told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask, Matrix

    Rows = NDArray[np.int64]

MOST = 16_384
"""Hits that Milvus gives at most."""
SPARE = 16
FETCHED = 2_000
"""Documents asked for at once."""
KEPT = 20_000
"""Documents whose vectors are kept, so that one question fetches each once."""
RANGES, LISTED = 200, 5_000
"""Stretches of rows, and single rows, that a filter may name."""


class Served:
    """A collection that is asked. Every answer is of this collection, whatever the alias says meanwhile."""

    def __init__(self, client: Any, target: Target, name: str) -> None:
        self._client, self._target, self._name = client, target, name
        self._kept: dict[int, tuple[dict[int, float], Matrix]] = {}

    def search(self, field: str, query: Any, k: int, allowed: Mask | None) -> list[int]:
        """The rows that Milvus finds best, in its order, k of those that are allowed or as many as it gives."""
        said = "row >= 0" if allowed is None else as_filter(allowed)
        asked = min(MOST, k + SPARE)
        while True:
            found = self._asked(
                self._client.search, [query], anns_field=field, limit=asked, filter=said or "row >= 0",
                output_fields=["row"], search_params={"metric_type": "IP"},
            )[0]  # fmt: skip
            rows = [int(hit["row"]) for hit in found if hit["distance"] != 0]
            if allowed is not None:
                rows = [row for row in rows if allowed[row]]
            if len(rows) >= k or len(found) < asked or asked == MOST:
                return rows
            asked = min(MOST, 4 * asked)

    def vectors(self, rows: Rows) -> list[tuple[dict[int, float], Matrix]]:
        """What is stored of these rows: stem -> impact, and the document vector; several threads may ask.

        Raises IndexDamaged where a row is gone.
        """
        wanted = rows.tolist()
        found = {row: kept for row in wanted if (kept := self._kept.get(row))}
        missing = [row for row in dict.fromkeys(wanted) if row not in found]
        fresh: dict[int, tuple[dict[int, float], Matrix]] = {}
        for start in range(0, len(missing), FETCHED):
            some = missing[start : start + FETCHED]
            for each in self._asked(self._client.get, ids=some, output_fields=["sparse", "dense"]):
                fresh[each["row"]] = each["sparse"], np.asarray(each["dense"], np.float32)
        if len(fresh) < len(missing):
            raise IndexDamaged(f"{self._target.shown} has lost documents; {remedy(self._target)}")
        if len(self._kept) + len(fresh) > KEPT:
            self._kept = {}
        self._kept.update(fresh)
        found |= fresh
        return [found[row] for row in wanted]

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


def as_filter(allowed: Mask) -> str | None:
    """Rows as Milvus's filters name them; None for too many of them in too many places.

    >>> as_filter(np.array([True, True, False, True]))
    'row in [0, 1, 3]'
    """
    rows = np.flatnonzero(allowed)
    if len(rows) <= LISTED:
        return f"row in {rows.tolist()}"
    breaks = np.flatnonzero(np.diff(rows) > 1)
    if len(breaks) >= RANGES:
        return None
    firsts, lasts = rows[np.r_[0, breaks + 1]].tolist(), rows[np.r_[breaks, len(rows) - 1]].tolist()
    return " or ".join(f"(row >= {first} and row <= {last})" for first, last in zip(firsts, lasts, strict=True))


@dataclass(frozen=True, slots=True)
class MilvusPostings(Postings):
    """Stems, counts and lengths are the folder's; rows and impacts are asked for."""

    served: Served | None = None

    @classmethod
    def over(cls, local: Postings, served: Served) -> MilvusPostings:
        """local: memory-mapped; of it rows and impacts are never read."""
        nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
        return cls(
            local.stems, local.offsets, *nothing, local.lengths, local.in_code, counted=local.counted, served=served
        )

    def search_ids(
        self, ids: Sequence[int] | Mapping[int, float], k: int, *, allowed: Mask | None = None
    ) -> list[tuple[int, float]]:
        """As Postings does."""
        counts = ids if isinstance(ids, Mapping) else {id: float(ids.count(id)) for id in ids}
        query = {id: float(count) for id, count in counts.items() if count}
        if not query or (allowed is not None and not allowed.any()):
            return []
        rows = np.unique(np.array(self._served.search("sparse", query, k, allowed), np.int64))
        return top(rows, self.scores(ids, rows), k)

    def scores(self, ids: Sequence[int] | Mapping[int, float], rows: Rows) -> NDArray[np.float64]:
        """As Postings does, in the same order of additions."""
        counts = ids if isinstance(ids, Mapping) else {id: ids.count(id) for id in ids}
        scores = np.zeros(len(rows))
        stored = [sparse for sparse, _ in self._served.vectors(rows)] if counts else []
        for id, count in sorted(counts.items()):
            impacts = np.array([sparse.get(id, 0.0) for sparse in stored], np.float32)
            scores += impacts * np.float64(count)
        return scores

    def having(self, id: int) -> Rows:
        """The rows that have a stem, ascending; of more than MOST the ones that it counts most in."""
        return np.unique(np.array(self._served.search("sparse", {id: 1.0}, MOST, None), np.int64))

    def _impact(self, id: int, row: int) -> float:
        return float(self.scores([id], np.array([row]))[0])

    @property
    def _served(self) -> Served:
        if self.served is None:
            raise ValueError("these postings are not connected")
        return self.served


class MilvusVectors:
    """What of VectorIndex a ranker asks, from Milvus."""

    def __init__(self, served: Served, documents: int, dim: int) -> None:
        self._served, self._documents, self.dim = served, documents, dim

    def __len__(self) -> int:
        """How many rows."""
        return self._documents

    def search(
        self, queries: Matrix, k: int, *, allowed: Mask | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """As VectorIndex does: by (-score, row), row -1 where there are fewer than k."""
        rows = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        for at, query in enumerate(np.asarray(queries, np.float32)):
            found = np.array(self._served.search("dense", query, k, allowed), np.int64)
            near = self.similarities(query, found)
            order = np.lexsort((found, -near))[:k]
            rows[at, : len(order)], scores[at, : len(order)] = found[order], near[order]
        return rows, scores

    def similarities(self, query: Matrix, rows: Rows) -> NDArray[np.float32]:
        """The inner product of one query with these rows."""
        found: NDArray[np.float32] = self.rows(rows) @ query
        return found

    def rows(self, rows: Rows) -> Matrix:
        """The vectors of these rows, [len(rows), dim]."""
        if not len(rows):
            return np.zeros((0, self.dim), np.float32)
        return np.stack([dense for _, dense in self._served.vectors(rows)])
