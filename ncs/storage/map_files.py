"""The map of an index as files beside its others: saved, loaded, carried over to what the next build makes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.documents import Store, open_store
from ncs.storage.manifest import current_generation
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROOM = "map"
VECTORS = "ncs_centred"
"""Whose vectors are drawn: the default ranker's."""
MOST = 20_000
"""Points, unless who asks says otherwise: as many as a screen shows apart."""
NEAREST = 5
"""Points among which a document stands that is not one of them."""
KEPT = 0.5
"""Share of the points that must still be there for the map to be carried over."""


@dataclass(frozen=True, slots=True)
class Map:
    """rows: documents that are points, int32 [n], rising; places: uint16 [n, 2]; config: how it was made."""

    rows: NDArray[np.int32]
    places: NDArray[np.uint16]
    config: Mapping[str, Any]

    def save(self, folder: Path) -> None:
        """Two arrays and a small JSON file into `<folder>/map/`."""
        room = folder / ROOM
        room.mkdir()
        np.save(room / "rows.npy", self.rows)
        np.save(room / "places.npy", self.places)
        (room / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Map | None:
        """From a data folder; None where none was made. Raises IndexDamaged for what is no map."""
        room = folder / ROOM
        if not room.is_dir():
            return None
        try:
            rows, places = (np.load(room / f"{name}.npy", allow_pickle=False) for name in ("rows", "places"))
            config = json.loads((room / "config.json").read_bytes())
        except (OSError, ValueError, EOFError) as error:
            raise IndexDamaged(f"cannot read {room} ({error}); make it again with: ncs map") from error
        if rows.ndim != 1 or not len(rows) or places.shape != (len(rows), 2) or not isinstance(config, dict):
            raise IndexDamaged(f"the files in {room} do not fit each other; make them again with: ncs map")
        return cls(rows, places, config)

    def where(self, vectors: VectorIndex, rows: Sequence[int]) -> list[tuple[int, int]]:
        """The places of any documents: their own, or amid the NEAREST points by cosine (the median of each axis)."""
        asked = np.array(rows, np.int64)
        at = np.minimum(np.searchsorted(self.rows, asked), len(self.rows) - 1)
        found, others = self.places[at], self.rows[at] != asked
        if others.any():
            found[others] = np.median(self.places[self._nearest(vectors, asked[others])], axis=1)
        return [(x, y) for x, y in found.tolist()]

    def with_rows(self, vectors: VectorIndex, rows: NDArray[np.int64]) -> Map:
        """With these documents as further points, where they stand now."""
        if not len(rows):
            return self
        where = np.array(self.where(vectors, rows.tolist()), np.uint16)
        joined = np.concatenate([self.rows, rows]).astype(np.int32)
        order = np.argsort(joined)
        return Map(joined[order], np.concatenate([self.places, where])[order], self.config)

    def _nearest(self, vectors: VectorIndex, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of points, [len(rows), at most NEAREST], the best first."""
        points = vectors.vectors(self.rows.astype(np.int64))
        similar = vectors.vectors(rows) @ points.T
        order: NDArray[np.int64] = np.argsort(-similar, axis=1, kind="stable")[:, :NEAREST]
        return order


def keep_map(index: Path, data: Path, store: Store) -> tuple[int, tuple[str, ...]]:
    """Let new files of an index keep the map drawn of those it has now: how many points, and what there is to say.

    A document keeps its place while its file and its qualified name do. Where all documents were drawn, new ones
    stand amid those most like them, as long as there is room for points; in a sample they are left out, as others are.
    """
    generation = current_generation(index)
    try:
        drawn = Map.load(index / generation) if generation else None
    except IndexDamaged:
        drawn = None
    if drawn is None or generation is None:
        return 0, ()
    with open_store(index / generation) as before:
        rows, places = _still_there(drawn, before, store)
    if len(rows) < KEPT * len(drawn.rows):
        return 0, ("Most of what the map showed has gone, and the map with it; draw it anew with: ncs map",)
    kept, vectors = Map(rows, places, drawn.config), VectorIndex.load(data / VECTORS)
    if len(drawn.rows) == len(VectorIndex.load(index / generation / VECTORS).filled()):
        kept = kept.with_rows(vectors, np.setdiff1d(vectors.filled(), rows)[: max(0, MOST - len(rows))])
    kept.save(data)
    return len(kept.rows), ()


def _still_there(drawn: Map, before: Store, now: Store) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """The new rows of the points that are there still, rising, and their places."""
    row_of = {called: row for row, called in enumerate(_called(now))}
    called = _called(before)
    found = np.array([row_of.get(called[row], -1) for row in drawn.rows.tolist()], np.int32)
    order = np.argsort(found, kind="stable")[np.count_nonzero(found < 0) :]
    return found[order], drawn.places[order]


def _called(store: Store) -> list[tuple[int | str, ...]]:
    """What tells each document from all others whatever its lines: file, qualified name, which one of that name."""
    file, places = store.files()
    seen: Counter[tuple[str, ...]] = Counter()
    found: list[tuple[int | str, ...]] = []
    for number, (_, qualified, _) in zip(file.tolist(), store.names(), strict=True):
        name = (*places[number], qualified)
        found.append((*name, seen[name]))
        seen[name] += 1
    return found
