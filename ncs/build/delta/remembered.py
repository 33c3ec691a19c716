"""What the last walk has seen, kept with the index: an update then looks at what may differ, not at all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta import room_of
from ncs.build.delta.seen_files import APART, LYING, SEEN, Stamped, folder_of, lying_by_table, read_seen
from ncs.storage.files import ROOM
from ncs.sources.seen import Seen, Stamp, digest_of
from ncs.sources.stamps import parted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

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

    def guarded_by(self, guards: Mapping[str, tuple[Stamp, str]]) -> bool:
        """Whether these are the same, by their stamps, else by their contents."""
        stamps = _by_path(self.guards)
        digests = dict(zip(stamps, self.digests, strict=True))
        return guards.keys() == stamps.keys() and all(
            stamp == stamps[path] or bool(digest and digest == digests[path])
            for path, (stamp, digest) in guards.items()
        )

    def differing_folders(self) -> set[str]:
        """Those that are not as they were, and those of files that were left out and are not."""
        folders, left = self.folders.differing(self.began, folders=True), self.left.differing(self.began)
        return {*self.folders.named(folders), *map(folder_of, self.left.named(left))}

    def lying_in(self, folders: Collection[str]) -> Numbers:
        """The files of the base in these folders."""
        number = {folder: at for at, folder in enumerate(parted(self.base_folders))}
        return np.flatnonzero(np.isin(self.lying, [number[at] for at in folders if at in number]))

    def folders_of(self, files: Numbers) -> Iterator[str]:
        """The folders in which files of the base lie, each once."""
        paths, lying = parted(self.base_folders), self.lying[files]
        here = np.bincount(lying[lying != APART], minlength=len(paths)) > 0
        return compress(paths, here.tolist())

    def again(self, seen: Seen, walked: Collection[str]) -> Seen | None:
        """What all folders were seen to hold, after a walk over some; what was walked and not seen is gone. None where
        that is the same, as after most edits."""
        if self._holds(seen, walked):
            return None
        stamps, places = _by_path(self.folders), dict(zip(parted(self.folders.paths), self.places, strict=True))
        folders = {path: (stamp, places[path]) for path, stamp in stamps.items() if path not in walked}
        told = zip(_by_path(self.guards).items(), self.digests, strict=True)
        guards = {path: (stamp, digest) for (path, stamp), digest in told}
        left = {path: stamp for path, stamp in _by_path(self.left).items() if folder_of(path) not in walked}
        return Seen(folders | seen.folders, guards | seen.guards, left | seen.left)

    def _holds(self, seen: Seen, walked: Collection[str]) -> bool:
        """Whether a walk over these folders has seen what is remembered of them, in the places that are."""
        number = {folder: at for at, folder in enumerate(parted(self.folders.paths)) if folder in walked}
        if not seen.folders.keys() == number.keys() == set(walked):
            return False
        guards, left = _by_path(self.guards), _by_path(self.left)
        return (
            all(self.folders.stamps[number[folder]].tolist() == [*stamp] for folder, (stamp, _) in seen.folders.items())
            and all(guards[guard] == stamp for guard, (stamp, _) in seen.guards.items())
            and {path: stamp for path, stamp in left.items() if folder_of(path) in walked} == seen.left
        )


def _by_path(kind: Stamped) -> dict[str, Stamp]:
    stamps: Iterator[Stamp] = map(tuple, kind.stamps.tolist())
    return dict(zip(parted(kind.paths), stamps, strict=True))


def above(paths: Iterable[str]) -> set[str]:
    """All folders above these."""
    found: set[str] = set()
    for path in paths:
        while (path := folder_of(path)) not in found:
            found.add(path)
    return found
