"""What a walk has seen as files of an index: kept by a whole build, and by an update that has seen something else."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.build.delta import room_of
from ncs.storage.files import ROOM, FileTable
from ncs.storage.generations import link
from ncs.sources.seen import NOWHERE, RACY, Seen, Stamp
from ncs.sources.stamps import joined, parted, stamps_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from ncs.storage.files import FileEntry

    Numbers = NDArray[np.int64]

SEEN = ("seen.json", "seen.paths", "seen.npy")
"""Of folders, guards and what was left, in this order: what is told of them, paths (ncs.sources.stamps), stamps."""
LYING = ("lying.paths", "lying.npy")
"""Of a base's files, in their order: paths; stamps and the number of the folder each lies in, or APART, [files, 4]."""
APART = -1
"""The folder of a file that lies in none: in an archive, in a bare repository."""


@dataclass(frozen=True, slots=True)
class Stamped:
    """Paths, as ncs.sources.stamps joins them, and the stamps they had, int64 [paths, 3]."""

    paths: bytes
    stamps: Numbers

    def differing(self, began: int, *, folders: bool = False) -> Numbers:
        """Which have another stamp now, or one that cannot be believed, as it was taken from `began` on."""
        racy = (self.stamps[:, 1:] >= began - RACY).any(axis=1)
        return np.flatnonzero((stamps_of(self.paths, folders=folders) != self.stamps).any(axis=1) | racy)

    def named(self, numbers: Numbers) -> list[str]:
        """Some of the paths."""
        paths = parted(self.paths) if len(numbers) else []
        return [paths[number] for number in numbers.tolist()]


def save_seen(data: Path, seen: Seen, files: FileTable) -> None:
    """Keep what the walk of a base has seen, where that decides which files there are (a cluster's has seen nothing).

    files: what it gave.
    """
    folders = {folder_of(entry.place) for entry in files.entries if _parsed(entry.stamp) != NOWHERE}
    if _decides(seen) and folders <= seen.folders.keys():
        _write(data / ROOM, seen)
        paths, table = _lying(files.entries, seen.folders)
        (data / ROOM / LYING[0]).write_bytes(paths)
        np.save(data / ROOM / LYING[1], table)


def save_late(standing: Path, room: Path, seen: Seen | None) -> None:
    """Keep in the delta `room` what the walk of an update has seen.

    seen: None where that is what the index at `standing` keeps.
    """
    before = room_of(standing)
    if seen is None:
        for name in SEEN:
            if before is not None and (before / ROOM / name).exists():
                link(before / ROOM / name, room / ROOM / name)
    elif _decides(seen):
        _write(room / ROOM, seen)
    else:
        (room / ROOM / SEEN[0]).write_text("null", encoding="utf-8")


def _decides(seen: Seen) -> bool:
    """Whether what was seen decides which files there are."""
    return bool(seen.folders or seen.apart) and not seen.odd


def _write(folder: Path, seen: Seen) -> None:
    roots = {root: at for at, root in enumerate(sorted({place for _, place in seen.folders.values()}))}
    kinds = (seen.folders, seen.guards, seen.left)
    told = {
        "counts": [len(kind) for kind in kinds],
        "roots": list(roots),
        "places": [roots[place] for _, place in seen.folders.values()],
        "digests": [digest for _, digest in seen.guards.values()],
    }
    stamps = [stamp for kind in kinds[:2] for stamp, _ in kind.values()] + list(seen.left.values())
    (folder / SEEN[0]).write_text(json.dumps(told, separators=(",", ":")), encoding="utf-8")
    (folder / SEEN[1]).write_bytes(b"".join(joined(kind) for kind in kinds))
    np.save(folder / SEEN[2], np.array(stamps, np.int64).reshape(-1, 3))


def read_seen(folder: Path) -> tuple[Mapping[str, Any], list[Stamped]] | None:
    """What is told; folders, guards, left. None where nothing was kept, by an earlier version, or nothing decided."""
    if not (folder / SEEN[1]).exists():
        return None
    told, paths = json.loads((folder / SEEN[0]).read_bytes()), (folder / SEEN[1]).read_bytes()
    stamps, found = np.load(folder / SEEN[2], allow_pickle=False), []
    ends = np.flatnonzero(np.frombuffer(paths, np.uint8) == 0) + 1
    begin, first = 0, 0
    for count in told["counts"]:
        end, last = (int(ends[first + count - 1]) if count else begin), first + count
        found.append(Stamped(paths[begin:end], stamps[first:last]))
        begin, first = end, last
    return told, found


def _lying(files: Iterable[FileEntry], folders: Iterable[str]) -> tuple[bytes, Numbers]:
    """What LYING holds of files, in these folders."""
    number, paths, rows = {folder: at for at, folder in enumerate(folders)}, [], []
    for entry in files:
        stamp = _parsed(entry.stamp)
        paths.append(entry.place)
        rows.append((*stamp, APART if stamp == NOWHERE else number[folder_of(entry.place)]))
    return joined(paths), np.array(rows, np.int64).reshape(-1, 4)


def lying_by_table(data: Path) -> tuple[bytes, Numbers, bytes]:
    """Of a base whose walk nobody has seen: where its files lie, and their folders."""
    table = FileTable.of_folder(data)
    entries = list(table.entries) if table else []
    folders = dict.fromkeys(folder_of(entry.place) for entry in entries)
    return *_lying(entries, folders), joined(folders)


def _parsed(stamp: str) -> Stamp:
    """Of a file: as ncs.sources.origins writes it; NOWHERE for an object's name, which no file has."""
    parts = stamp.split(":")
    if len(parts) != 3:
        return NOWHERE
    size, *times = map(int, parts)
    return (size, times[0], times[1])


def folder_of(place: str) -> str:
    """Where it lies."""
    return os.path.dirname(place)  # noqa: PTH120  (a Path a file is slow)
