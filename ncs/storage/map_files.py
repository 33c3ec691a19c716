"""The 2-D map of an index: documents as points, computed by `ncs.build.map`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import IndexDamaged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.storage.vectors import Vectors

FOLDER = "map"
VECTORS = "ncs_centred"
"""The ranker whose vectors are mapped."""
MOST = 20_000
"""Default number of points."""
NEAREST = 5
"""Nearest points that place a document that is not a point itself."""


@dataclass(frozen=True, slots=True)
class Map:
    """rows: documents that are points, int32 [n], ascending; places: uint16 [n, 2]; config: parameters of the map."""

    rows: NDArray[np.int32]
    places: NDArray[np.uint16]
    config: Mapping[str, Any]

    def save(self, statistics: Path) -> None:
        """Two arrays and a small JSON file into `<statistics>/map/`."""
        folder = statistics / FOLDER
        folder.mkdir()
        np.save(folder / "rows.npy", self.rows)
        np.save(folder / "places.npy", self.places)
        (folder / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, snapshot: Snapshot) -> Map | None:
        """The live points; None if there is no map. Raises IndexDamaged."""
        folder = snapshot.statistics / FOLDER
        if not folder.is_dir():
            return None
        try:
            rows, places = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("rows", "places"))
            config = json.loads((folder / "config.json").read_bytes())
            firsts = [(str(name), int(first)) for name, first in config["segments"]]
        except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
            raise IndexDamaged(f"cannot read {folder} ({error}); make it again with: ncs map") from error
        if rows.ndim != 1 or not len(rows) or places.shape != (len(rows), 2):
            raise IndexDamaged(f"the files in {folder} do not fit each other; make them again with: ncs map")
        now = {segment.name: segment for segment in snapshot.segments}
        here = np.full(len(rows), -1, np.int64)
        for (name, first), (_, end) in zip(firsts, [*firsts[1:], ("", len(rows) + int(rows[-1]))], strict=True):
            if segment := now.get(name):
                own = (rows >= first) & (rows < min(end, first + segment.documents))
                here[own] = rows[own] - first + segment.first
        there = here >= 0
        if snapshot.live is not None:
            there[there] = snapshot.live[here[there]]
        return cls(here[there].astype(np.int32), places[there], config) if there.any() else None

    def where(self, vectors: Vectors, rows: Sequence[int]) -> list[tuple[int, int]]:
        """The places of documents: their own, or the median of the NEAREST points by cosine."""
        targets = np.array(rows, np.int64)
        at = np.minimum(np.searchsorted(self.rows, targets), len(self.rows) - 1)
        places, others = self.places[at], self.rows[at] != targets
        if others.any():
            similar = vectors.vectors(targets[others]) @ vectors.vectors(self.rows.astype(np.int64)).T
            nearest = np.argsort(-similar, axis=1, kind="stable")[:, :NEAREST]
            places[others] = np.median(self.places[nearest], axis=1)
        return [(x, y) for x, y in places.tolist()]
