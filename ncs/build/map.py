"""The map of an index: its documents, or a seeded sample of them, as points of a picture, by PCA and t-SNE."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncs.console import count
from ncs.errors import BROKEN, BadInput, IndexDamaged, needing
from ncs.files import map_array, read_json, save_array
from ncs.storage.arrays import are_below
from ncs.storage.commit import open_writer
from ncs.storage.snapshot import Snapshot, open_snapshot
from ncs.storage.vectors import Vectors
from ncs.types import Matrix

FOLDER = "map"
VECTORS = "ncs_centred"
"""The ranker whose vectors are mapped."""
MAX_POINTS, NEAREST, SIDE = 20_000, 5, 65_535
"""Default number of points; points that place another document by their median; largest coordinate."""
COMPONENTS, PERPLEXITY, MIN_POINTS = 50, 30.0, 5


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
        save_array(folder / "rows.npy", self.rows)
        save_array(folder / "places.npy", self.places)
        (folder / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, snapshot: Snapshot) -> Map | None:
        """The live points; None without a map or live points. Raises IndexDamaged."""
        folder = snapshot.statistics / FOLDER
        if not folder.is_dir():
            return None
        try:
            rows, places = map_array(folder / "rows.npy", np.int32), map_array(folder / "places.npy", np.uint16, 2)
            config = read_json(folder / "config.json")
            names = [name for name, _ in config["segments"]]
        except (*BROKEN, OSError) as error:
            raise IndexDamaged(f"cannot read {folder} ({error}); make it again with: ncs map") from error
        if not are_below(rows, len(snapshot)) or not len(rows) or places.shape != (len(rows), 2):
            raise IndexDamaged(f"the files in {folder} do not fit each other; make them again with: ncs map")
        end = 0  # an update adds segments, or merges the last ones
        for segment, name in zip(snapshot.segments, names, strict=False):
            if segment.name != name:
                break
            end = segment.first + segment.documents
        left = rows < end
        if snapshot.live is not None:
            left[left] = snapshot.live[rows[left]]
        return cls(rows[left], places[left], config) if left.any() else None

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


def make_map(folder: Path | str, *, points: int = MAX_POINTS, seed: int = 1) -> Map:
    """Draw an index and commit the map with it, replacing an earlier map; deterministic on one machine.

    points: number of documents, a sample by `seed` if there are more. Raises what opening an index raises, IndexBusy,
    MissingExtra, and BadInput for too few vectors.
    """
    _tsne()
    folder = Path(folder)
    open_snapshot(folder, Snapshot.close)  # fail before taking the lock if there is no index
    with open_writer(folder) as writer, open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
        start = time.perf_counter()
        vectors = Vectors.open(snapshot, VECTORS)
        rows = sample(vectors, points, seed)
        places = project(vectors.vectors(rows), seed)
        firsts = [[segment.name, segment.first] for segment in snapshot.segments]
        config = {"method": "PCA and t-SNE", "vectors": VECTORS, "points": len(rows), "seed": seed, "segments": firsts}
        project_map = Map(rows.astype(np.int32), places, config)
        statistics = writer.copy_folder(snapshot.statistics, without=[FOLDER])
        project_map.save(statistics)
        description = snapshot.description
        seconds = {**description.counts.get("seconds", {}), FOLDER: round(time.perf_counter() - start, 2)}
        writer.commit(
            [(segment.path, segment.documents) for segment in snapshot.segments],
            statistics,
            tombstones=snapshot.tombstones,
            config=description.config,
            counts={**description.counts, "seconds": seconds, "map": len(rows)},
            notes=description.notes,
            versions=description.versions,
        )
    return project_map


def sample(vectors: Vectors, points: int, seed: int) -> NDArray[np.int64]:
    """Rows to draw, ascending: all documents with a vector or a sample; raises BadInput for too few."""
    if points < MIN_POINTS:
        raise BadInput(f"{points} points are too few for a map; use at least {MIN_POINTS}")
    rows = vectors.nonzero_rows()
    if len(rows) < MIN_POINTS:
        raise BadInput(f"{count(len(rows), 'document')} with vectors: too few for a map; it takes {MIN_POINTS}")
    if len(rows) > points:
        rows = np.sort(np.random.default_rng(seed).choice(rows, points, replace=False))
    return rows


def project(vectors: Matrix, seed: int) -> NDArray[np.uint16]:
    """[n, d] -> [n, 2] from 0 to SIDE: PCA to at most COMPONENTS, then t-SNE that starts from the first two."""
    from sklearn.decomposition import PCA

    tsne = _tsne()
    n, dim = vectors.shape
    components = min(COMPONENTS, dim, n - 1)
    reduced = PCA(components, svd_solver="covariance_eigh").fit_transform(vectors.astype(np.float64))
    points = tsne(perplexity=min(PERPLEXITY, (n - 1) / 3), n_jobs=1, random_state=seed).fit(reduced)
    return _scale(np.asarray(points))


def _scale(points: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Points scaled to 0..SIDE by one factor for both axes, centered."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, scale = (low + high) / 2, max(float((high - low).max()), 1e-9)
    places: NDArray[np.uint16] = np.rint((points - middle) / scale * SIDE + SIDE / 2).clip(0, SIDE).astype(np.uint16)
    return places


def _tsne() -> Any:
    with needing("a map", "map"):
        from openTSNE import TSNE
    return TSNE
