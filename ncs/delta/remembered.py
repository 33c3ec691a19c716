"""What the last walk has seen, kept with the index: an update then looks at what may differ, not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.delta import room_of
from ncs.delta.seen_files import APART, LYING, SEEN, Stamped, folder_of, lying_by_table, read_seen
from ncs.file_table import ROOM
from ncs.sources.seen import Seen, digest_of
from ncs.sources.stamps import parted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Remembered:
    """folders: that the last walk has met, with the place that each belongs to in `places`; guards, with their digests,
    and left as in `Seen`. files: of the base, in archives and bare repositories too, as it read them; lying: of each
    the number of its folder in the base's folders, or APART. began: when what the index holds was looked at, in
    nanoseconds since 1970."""

    folders: Stamped
    places: Sequence[str]
    guards: Stamped
    digests: Sequence[str]
    left: Stamped
    files: Stamped
    lying: Numbers
    base_folders: bytes
    began: int

    @classmethod
    def load(cls, data: Path, began: int) -> Remembered | None:
        """Of a data folder; None where nothing was kept."""
        room = room_of(data)
        late = room is not None and (room / ROOM / SEEN[0]).exists()
        last = read_seen((room if room and late else data) / ROOM)
        if last is None:
            return None
        base = read_seen(data / ROOM) if late else last
        if base is None or not (data / ROOM / LYING[1]).exists():
            files, table, folders = lying_by_table(data)
        else:
            files, table = (data / ROOM / LYING[0]).read_bytes(), np.load(data / ROOM / LYING[1], allow_pickle=False)
            folders = base[1][0].paths
        told, (seen, guards, left) = last
        places = [told["roots"][at] for at in told["places"]]
        lies = Stamped(files, table[:, :3])
        return cls(seen, places, guards, told["digests"], left, lies, table[:, 3], folders, began)

    def guarded(self) -> bool:
        """Whether all that decides which files there are is as it was: by its stamp, else by its content."""
        paths = parted(self.guards.paths)
        differing = self.guards.differing(self.began).tolist()
        return all(self.digests[at] and digest_of(paths[at]) == self.digests[at] for at in differing)

    def differing_folders(self) -> set[str]:
        """Those that are not as they were, and those of files that were left out and are not."""
        folders, left = self.folders.differing(self.began, folders=True), self.left.differing(self.began)
        paths = (
            parted(each.paths) if len(found) else [] for each, found in ((self.folders, folders), (self.left, left))
        )
        of_folders, of_left = paths
        return {*(of_folders[at] for at in folders.tolist()), *(folder_of(of_left[at]) for at in left.tolist())}

    def lying_in(self, folders: Collection[str]) -> Numbers:
        """The files of the base in these folders."""
        number = {folder: at for at, folder in enumerate(parted(self.base_folders))}
        return np.flatnonzero(np.isin(self.lying, [number[at] for at in folders if at in number]))

    def folders_of(self, files: Numbers) -> Iterator[str]:
        """The folders in which files of the base lie, each once."""
        paths, here = parted(self.base_folders), np.unique(self.lying[files])
        return (paths[at] for at in here[here != APART].tolist())

    def seen(self) -> Seen:
        """All as it was seen."""
        each = (map(tuple, kind.stamps.tolist()) for kind in (self.folders, self.guards, self.left))
        folders, guards, left = (
            dict(zip(parted(kind.paths), stamps, strict=True))
            for kind, stamps in zip((self.folders, self.guards, self.left), each, strict=True)
        )
        return Seen(
            {path: (stamp, place) for (path, stamp), place in zip(folders.items(), self.places, strict=True)},
            {path: (stamp, digest) for (path, stamp), digest in zip(guards.items(), self.digests, strict=True)},
            left,
        )


def seen_again(before: Seen, seen: Seen, walked: Collection[str]) -> Seen | None:
    """What all folders were seen to hold, after a walk over some; what was walked and not seen is gone. None where that
    is the same."""
    folders = {path: at for path, at in before.folders.items() if path not in walked} | seen.folders
    left = {path: stamp for path, stamp in before.left.items() if folder_of(path) not in walked} | seen.left
    now = Seen(folders, before.guards | seen.guards, left)
    return None if now == before else now


def above(paths: Iterable[str]) -> set[str]:
    """All folders above these."""
    found: set[str] = set()
    for path in paths:
        while (path := folder_of(path)) not in found:
            found.add(path)
    return found
