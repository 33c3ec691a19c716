"""What the walk of a whole build has seen, kept with the index: an update then looks at what may differ, not at all."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.file_table import ROOM
from ncs.sources.seen import NOWHERE, RACY, Seen, digest_of, folder_stamp, stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ncs.file_table import FileTable

    Stamps = NDArray[np.int64]

NAME, STAMPS = "seen.json", "seen.npy"
APART = -1
"""The folder of a file that lies in none: in an archive, in a bare repository."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """folders: of the base's walk, with the place each belongs to, "" for one that was left to others; guards: ignore
    files, archives, what decides the commit of a bare repository; digests: of these, "" where only the stamp tells;
    left: files that were not given; files: where each file of the base lies, in archives and bare repositories too.
    stamps int64 [all of these but digests, 3], in this order. began: when the walk did, in nanoseconds since 1970."""

    folders: Sequence[str]
    places: Sequence[str]
    guards: Sequence[str]
    digests: Sequence[str]
    left: Sequence[str]
    files: Sequence[str]
    stamps: Stamps
    began: int

    @classmethod
    def load(cls, data: Path, began: int) -> Remembered | None:
        """Of a data folder; None where nothing was kept."""
        room = data / ROOM
        if not (room / NAME).exists():
            return None
        kept = json.loads((room / NAME).read_bytes())
        folders = kept["folders"]
        pairs = zip(kept["at"], kept["names"], strict=True)
        files = [name if at == APART else f"{folders[at]}{os.sep}{name}" for at, name in pairs]
        places = [kept["roots"][at] for at in kept["places"]]
        stamps = np.load(room / STAMPS, allow_pickle=False)
        digests = kept.get("digests") or [""] * len(kept["guards"])  # an index of earlier versions has none
        return cls(folders, places, kept["guards"], digests, kept["left"], files, stamps, began)

    def part(self, n: int) -> Stamps:
        """The stamps of the n-th kind: folders, guards, left, files."""
        sizes = [len(self.folders), len(self.guards), len(self.left), len(self.files)]
        return self.stamps[sum(sizes[:n]) : sum(sizes[: n + 1])]

    def differing(self, n: int, paths: Sequence[str], began: int) -> list[int]:
        """Which of the paths of the n-th kind have another stamp now, or one that cannot be believed.

        began: since when, in nanoseconds since 1970.
        """
        look = folder_stamp if n == 0 else stamp_of
        now = np.array([look(path) for path in paths], np.int64).reshape(-1, 3)
        kept = self.part(n)
        racy = (kept[:, 1:] >= began - RACY).any(axis=1)
        found: list[int] = np.flatnonzero((now != kept).any(axis=1) | racy).tolist()
        return found

    def guarded(self) -> bool:
        """Whether all that decides which files there are is as it was: by its stamp, else by its content."""
        differing = self.differing(1, self.guards, self.began)
        return all(self.digests[at] and digest_of(self.guards[at]) == self.digests[at] for at in differing)


def save_seen(data: Path, seen: Seen, files: FileTable) -> None:
    """Keep what a walk has seen, where that decides which files there are (a cluster's has seen nothing). files: what
    it gave."""
    if not (seen.folders or seen.apart):
        return
    places = [entry.place for entry in files.entries]
    stamps = [_parsed(entry.stamp) for entry in files.entries]
    split = [os.path.split(place) for place in places]
    folders = list(seen.folders)
    number = {folder: at for at, folder in enumerate(folders)}
    here = [stamp != NOWHERE for stamp in stamps]
    if seen.odd or not all(folder in number for (folder, _), lies in zip(split, here, strict=True) if lies):
        return
    roots = sorted({place for _, place in seen.folders.values()})
    of = {root: at for at, root in enumerate(roots)}
    kept = {
        "folders": folders,
        "roots": roots,
        "places": [of[place] for _, place in seen.folders.values()],
        "guards": list(seen.guards),
        "digests": [digest for _, digest in seen.guards.values()],
        "left": list(seen.left),
        "at": [number[folder] if lies else APART for (folder, _), lies in zip(split, here, strict=True)],
        "names": [name if lies else place for (_, name), lies, place in zip(split, here, places, strict=True)],
    }
    (data / ROOM / NAME).write_text(json.dumps(kept, separators=(",", ":")), encoding="utf-8")
    each = (seen.folders.values(), seen.guards.values())
    all_stamps = [*(stamp for kind in each for stamp, _ in kind), *seen.left.values(), *stamps]
    np.save(data / ROOM / STAMPS, np.array(all_stamps, np.int64).reshape(-1, 3))


def _parsed(stamp: str) -> tuple[int, int, int]:
    """Of a file: as ncs.sources.origins writes it; NOWHERE for an object's name, which no file has."""
    parts = stamp.split(":")
    if len(parts) != 3:
        return NOWHERE
    size, *times = map(int, parts)
    return (size, times[0], times[1])


def above(paths: Iterable[str]) -> set[str]:
    """All folders above these."""
    found: set[str] = set()
    for path in paths:
        while (path := os.path.dirname(path)) not in found:  # noqa: PTH120
            found.add(path)
    return found
