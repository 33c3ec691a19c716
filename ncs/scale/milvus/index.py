"""An index whose candidates come from Milvus."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import IndexVersion, StoreLost, check_k
from ncs.index import Index
from ncs.scale.milvus.store import (
    DENSE,
    LEXICAL,
    ROW_BITS,
    TIMEOUT,
    Contents,
    Target,
    connected,
    dimension,
    segment_digest,
    store_errors,
)
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import DEFAULT_RANKER, Ranker
from ncs.storage.postings import Postings, top_rows
from ncs.storage.snapshot import Snapshot, open_snapshot
from ncs.storage.vectors import VectorIndex, Vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask, Matrix

    Rows = NDArray[np.int64]
    Scores = NDArray[np.float64]

MOST = 16_384
"""Most entities of a Milvus search."""
SPARE = 16
"""Extra candidates beyond k: some may be deleted or of another snapshot."""
LISTED = 50_000
"""Most documents in a Milvus filter."""
RETRY = 0.5
"""Seconds between tries to reach a store."""


def open_index(folder: Path, store: str | None = None, *, verify: bool = False, seconds: float = TIMEOUT) -> Index:
    """The index in a folder, whose candidates a store finds if one is named; seconds: how long a query tries it.

    Raises what Index.load raises, and for a store what `Target.of` and `MilvusIndex.open` raise.
    """
    if not store:
        return Index.load(folder, verify=verify)
    return MilvusIndex.open(folder, replace(Target.of(store), seconds=min(seconds, TIMEOUT)), verify=verify)


class MilvusIndex(Index):
    """An `Index` whose candidates by words and by meaning come from a store; other rankers do not use it."""

    def __init__(self, snapshot: Snapshot, target: Target) -> None:
        super().__init__(snapshot)
        self._connection = ExitStack()
        try:
            client = self._connection.enter_context(connected(target, existing=True))
            self._candidates = Candidates(client, target, snapshot)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, folder: Path | str, target: Target, *, verify: bool = False) -> MilvusIndex:
        """Raises what Index.load and `connected` raise, and IndexVersion where the store does not hold this index."""
        return open_snapshot(Path(folder), partial(cls, target=target), verify=verify)

    def __enter__(self) -> MilvusIndex:
        return self

    def close(self) -> None:
        """Close the folder and the store."""
        self._connection.close()
        super().close()

    def ranker(self, name: str = DEFAULT_RANKER) -> Ranker:
        """As in Index; bm25 and ncs_centred, and rankers composed of them search the store."""
        is_open = name in self._rankers
        ranker = super().ranker(name)
        if not is_open and name == LEXICAL and isinstance(ranker, Bm25Ranker):
            ranker._postings = StorePostings(ranker.postings, self._candidates)
        elif not is_open and name == DENSE and isinstance(ranker, NcsRanker):
            ranker._vectors = StoreVectors(ranker.vectors, self._candidates)
        return ranker


class Candidates:
    """The rows of a snapshot that a store finds best."""

    def __init__(self, client: Any, target: Target, snapshot: Snapshot) -> None:
        """Raises IndexVersion where the collection does not hold all segments."""
        self._client, self._target = client, target
        dim = VectorIndex.load(snapshot.segments[0].path / DENSE).dim
        self._collection = target.collection(dim)
        self._numbers = np.array([int(segment.name) for segment in snapshot.segments], np.int64)
        self._firsts = np.array([segment.first for segment in snapshot.segments], np.int64)
        with store_errors(target):
            client.load_collection(self._collection, timeout=target.seconds)
            segment_digests = Contents.read(client, self._collection).segments
        files = snapshot.description.files
        if any(
            segment_digests.get(segment.name) != segment_digest(segment.path, files) for segment in snapshot.segments
        ):
            raise IndexVersion(f"{target.text} holds another build than this folder; {target.remedy}")

    def search(self, field: str, query: Any, k: int, allowed: Mask | None) -> Rows | None:
        """The k best rows of those that are allowed, or as many as there are; None beyond Milvus's limit."""
        expression = "key >= 0"
        if allowed is not None and np.count_nonzero(allowed) <= LISTED:
            expression = f"key in {self._keys(np.flatnonzero(allowed)).tolist()}"
        limit = k + SPARE
        while limit <= MOST:
            hits = self._call(
                self._client.search, [query], anns_field=field, limit=limit, filter=expression,
                output_fields=["key"], search_params={"metric_type": "IP"},
            )[0]  # fmt: skip
            rows = self._rows(np.array([hit["key"] for hit in hits if hit["distance"] != 0], np.int64))
            if allowed is not None:
                rows = rows[allowed[rows]]
            if len(rows) >= k or len(hits) < limit:
                return np.unique(rows)
            limit = min(MOST, 4 * limit) if limit < MOST else MOST + 1
        return None

    def _keys(self, rows: Rows) -> Rows:
        segments = np.searchsorted(self._firsts, rows, side="right") - 1
        keys: Rows = (self._numbers[segments] << ROW_BITS) + rows - self._firsts[segments]
        return keys

    def _rows(self, keys: Rows) -> Rows:
        """The rows of these keys, without those of segments that the snapshot does not have."""
        order = np.argsort(self._numbers)
        at = np.searchsorted(self._numbers[order], keys >> ROW_BITS)
        segments = order[np.minimum(at, len(order) - 1)]
        rows: Rows = self._firsts[segments] + (keys & ((1 << ROW_BITS) - 1))
        known_rows: Rows = rows[self._numbers[segments] == keys >> ROW_BITS]
        return known_rows

    def _call(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result of a call; a lost store is retried for the target's seconds."""
        end = time.monotonic() + self._target.seconds
        while True:
            try:
                with store_errors(self._target):
                    return self._loaded(call, *arguments, **options)
            except StoreLost:
                if time.monotonic() >= end:
                    raise
            time.sleep(RETRY)

    def _loaded(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call, after loading the collection again if Milvus was restarted."""
        from pymilvus.exceptions import MilvusException

        try:
            return call(self._collection, *arguments, timeout=self._target.seconds, **options)
        except MilvusException as error:
            if "load" not in str(error.message):
                raise
        self._client.load_collection(self._collection, timeout=self._target.seconds)
        return call(self._collection, *arguments, timeout=self._target.seconds, **options)


class StorePostings(Postings):
    """Postings with candidates from a store and scores from the folder."""

    def __init__(self, local: Postings, candidates: Candidates) -> None:
        super().__init__(local.tables, local.statistics, local.live)
        self._candidates = candidates

    def top_rows(self, weights: Mapping[str, float], k: int, *, allowed: Mask | None = None) -> tuple[Rows, Scores]:
        """As Postings does."""
        check_k(k)
        query: dict[int, float] = {}
        for stem, weight in weights.items():
            query[dimension(stem)] = query.get(dimension(stem), 0.0) + weight
        allowed = _both(allowed, self.live)
        if not query or (allowed is not None and not allowed.any()):
            return np.zeros(0, np.int64), np.zeros(0)
        rows = self._candidates.search("sparse", query, k, allowed)
        if rows is None:
            return super().top_rows(weights, k, allowed=allowed)
        scores = self.scores(weights, rows)
        having = scores > 0  # not by another stem of the same dimension
        return top_rows(rows[having], scores[having], k)


class StoreVectors(Vectors):
    """Vectors with candidates from a store and similarities from the folder."""

    def __init__(self, local: Vectors, candidates: Candidates) -> None:
        super().__init__(local.parts, local.live)
        self._candidates = candidates

    def search(self, queries: Matrix, k: int, *, allowed: Mask | None = None) -> tuple[Rows, NDArray[np.float32]]:
        """As Vectors does."""
        allowed = _both(allowed, self.live)
        rows, scores = np.full((len(queries), k), -1, np.int64), np.full((len(queries), k), -np.inf, np.float32)
        for at, query in enumerate(np.asarray(queries, np.float32)):
            candidates = self._candidates.search("dense", query, k, allowed)
            if candidates is None:
                rows[at : at + 1], scores[at : at + 1] = super().search(query[None], k, allowed=allowed)
                continue
            similarities = self.similarities(query, candidates)
            order = np.lexsort((candidates, -similarities))[:k]
            rows[at, : len(order)], scores[at, : len(order)] = candidates[order], similarities[order]
        return rows, scores


def _both(allowed: Mask | None, live: Mask | None) -> Mask | None:
    return live if allowed is None else allowed if live is None else allowed & live
