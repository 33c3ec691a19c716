"""The map of an index as JSON: its points as columns, and where hits stand on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.build.map import SIDE
from ncs.index import Index
from ncs.storage.map_files import VECTORS, Map
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray


def map_as_dict(index: Index, drawn: Map) -> dict[str, Any]:
    """A map as columns, one entry a point: x and y from 0 to `side`, numbers of language and repository, id, name."""
    rows = drawn.rows.tolist()
    store, counts = index.store, index.store.counts
    groups: dict[str, Any] = {}
    for field in ("language", "repository"):
        plural = "languages" if field == "language" else "repositories"
        groups[plural], groups[field] = _grouped(index, field, list(counts[plural]), drawn.rows)
    return {
        "documents": len(index),
        "points": len(rows),
        "method": str(drawn.config.get("method", "")),
        "side": SIDE,
        **groups,
        "x": drawn.places[:, 0].tolist(),
        "y": drawn.places[:, 1].tolist(),
        "ids": store.ids(rows),
        "names": [place.qualified_name for place in store.locations(rows)],
    }


def _grouped(index: Index, field: str, names: list[str], rows: NDArray[np.int32]) -> tuple[list[str], list[int]]:
    """Names with points, those of most points first, and the number of each row's."""
    if field == "repository":
        file, places = index.store.files()
        number = {name: at for at, name in enumerate(names)}
        owner = np.array([number.get(repository, 0) for repository, _ in places], np.int64)  # else: copies only
        found = owner[file[rows]]
    else:
        found = np.zeros(len(rows), np.int64)
        for at, name in enumerate(names):
            mask = index.store.mask(language=name)
            found[mask[rows] if mask is not None else slice(0)] = at
    counts = np.bincount(found, minlength=len(names))
    order = np.lexsort((np.arange(len(names)), -counts))
    order = order[counts[order] > 0]
    rank = np.zeros(len(names), np.int64)
    rank[order] = np.arange(len(order))
    return [names[at] for at in order], rank[found].tolist()


def places_of(index: Index, drawn: Map, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Where documents stand on the map; ids that the index has not, and documents without vector, are left out."""
    vectors = VectorIndex.load(index.data / VECTORS)
    known = {id: row for id in ids if (row := index.store.row_of(id)) is not None}
    filled = np.isin(list(known.values()), vectors.filled())
    rows = {id: row for (id, row), has in zip(known.items(), filled, strict=True) if has}
    found = drawn.where(vectors, list(rows.values()))
    return [{"id": id, "x": x, "y": y} for id, (x, y) in zip(rows, found, strict=True)]
