"""Which files of an index differ, found without walking over all: only folders in which something changed are walked.

What the walk of the base has seen is asked for its stamps. Where an ignore file, an archive or a bare repository
changed, a folder became a repository, or anything else was met that would make the list of files another one, this
gives up, and all is walked over.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.delta.files import Filed, Walked
from ncs.delta.remembered import Remembered, above
from ncs.file_table import FileEntry
from ncs.sources import Skipped
from ncs.sources.seen import RACY, Seen, stamp_of

if TYPE_CHECKING:
    from ncs.delta.remembered import Stamps
    from ncs.freshness import Recipe
    from ncs.sources import Origin, SourceFile


@dataclass(frozen=True)
class _Files:
    """The files of an index where they lie. place: of each, by its number; stamps: of the base's files, others: of
    those that are not as they were in it; stale: those whose stamp is another one now, or cannot be believed."""

    place: Mapping[int, str]
    number: Mapping[str, int]
    stamps: Stamps
    others: Mapping[int, str]
    stale: set[int]

    @classmethod
    def of(cls, kept: Remembered, filed: Filed, began: int) -> _Files:
        """Every file is looked at."""
        standing = filed.order[filed.order >= 0].tolist()
        place = {number: kept.files[number] for number in standing}
        stale = set(kept.differing(3, kept.files, began)) & place.keys()
        others: dict[int, str] = {}
        for number in [*filed.order[filed.order < 0].tolist(), *(filed.again.keys() & place.keys())]:
            entry = filed.entry(number)
            place[number], others[number] = entry.place, entry.stamp
            stale.discard(number)
            if not _believed(entry, began):
                stale.add(number)
        return cls(place, {at: number for number, at in place.items()}, kept.part(3), others, stale)

    def unchanged(self, origin: Origin) -> bool:
        """Whether the content that lies there is what the index holds."""
        number = self.number.get(origin.place)
        if number is None or number in self.stale:
            return False
        stamp = self.others.get(number) or ":".join(map(str, self.stamps[number].tolist()))
        return stamp == origin.stamp


def _believed(entry: FileEntry, began: int) -> bool:
    """Whether a file has the stamp that it had, and has had it for long."""
    parts = tuple(map(int, entry.stamp.split(":"))) if entry.stamp.count(":") == 2 else ()
    return parts == stamp_of(entry.place) and all(time < began - RACY for time in parts[1:])


def quick_look(
    data: Path,
    filed: Filed,
    recipe: Recipe,
    began: tuple[int, int],
    most: int,
    also: frozenset[str] = frozenset(),
) -> Walked | None:
    """What `Looking.over` finds; None where all must be walked over.

    began: when the base's walk did, and since when the index's files are known, in nanoseconds since 1970. most: bytes
    to be read. also: places to be read anyway.
    """
    kept = None if recipe.config.revision is not None else Remembered.load(data, began[0])
    if kept is None or not kept.guarded():
        return None
    files = _Files.of(kept, filed, began[1])
    files.stale.update(files.number[place] for place in also if place in files.number)
    folders = {kept.folders[at] for at in kept.differing(0, kept.folders, kept.began)}
    folders |= {_folder(kept.left[at]) for at in kept.differing(2, kept.left, kept.began)}
    folders |= {_folder(files.place[number]) for number in files.stale}
    if not folders:
        return Walked(filed.order.tolist(), filed.again, (), (), ())
    known, ways, seen = {*kept.folders, *kept.guards}, above(folders), Seen()
    met = list(recipe.files(Skipped(), files, seen, lambda at: at in folders or at in ways or at not in known))
    if not _as_before(kept, seen, folders | ways & set(kept.folders)) or sum(len(file.data) for file in met) > most:
        return None
    return _merged(kept, filed, files, met, folders, also)


def _folder(place: str) -> str:
    return os.path.dirname(place)  # noqa: PTH120


def _as_before(kept: Remembered, seen: Seen, folders: set[str]) -> bool:
    """Whether the folders that were walked belong where they did, and no ignore file is new."""
    before = dict(zip(kept.folders, kept.places, strict=True))
    for folder in folders & before.keys():
        if folder in seen.folders:
            if seen.folders[folder][1] != before[folder]:
                return False
        elif Path(folder).exists() or any(_folder(guard) == folder for guard in kept.guards):
            return False
    return not (seen.odd or seen.apart) and seen.guards.keys() <= set(kept.guards)


def _merged(
    kept: Remembered, filed: Filed, files: _Files, met: Sequence[SourceFile], folders: set[str], also: frozenset[str]
) -> Walked | None:
    """All files in order, with what the walk of some folders has met."""
    again, added, changed = dict(filed.again), [], []
    here: dict[int, int | SourceFile] = {}
    new: list[SourceFile] = []
    for file in met:
        if file.origin is None:
            return None
        number = files.number.get(file.origin.place)
        if number is None:
            new.append(file)
            continue
        if file.unchanged:
            here[number] = number
            continue
        entry, now = filed.entry(number), FileEntry.of(file)
        if (entry.repository, entry.path) != (file.repository, file.path):
            return None
        here[number] = number if entry.digest == now.digest and number >= 0 and entry.place not in also else file
        if entry.digest != now.digest:
            changed.append(f"{file.repository}/{file.path}")
        elif number >= 0 and (entry.place, entry.stamp) != tuple(file.origin):
            again[number] = (file.origin.place, file.origin.stamp)
    gone = {n for n, place in files.place.items() if n not in here and _folder(place) in folders}
    found: list[int | SourceFile] = [here.get(n, n) for n in filed.order.tolist() if n not in gone]
    for file in new:
        at = _place_of(kept, filed, files, found, file)
        if at is None:
            return None
        found.insert(at, file)
        added.append(f"{file.repository}/{file.path}")
    return Walked(found, again, tuple(added), tuple(changed), tuple(n for n in filed.order.tolist() if n in gone))


def _place_of(
    kept: Remembered, filed: Filed, files: _Files, found: Sequence[int | SourceFile], file: SourceFile
) -> int | None:
    """Where a new file comes in the order of all; None where its repository has no other."""

    def lies(other: int | SourceFile) -> bytes:
        place = files.place[other] if isinstance(other, int) else (other.origin.place if other.origin else "")
        return os.fsencode(place.replace(os.sep, "/"))

    owners, names = filed.owners()
    if file.repository not in names:
        return None
    own = set(filed.order[owners == names.index(file.repository)].tolist())
    at = [
        i
        for i, other in enumerate(found)
        if (other in own if isinstance(other, int) else other.repository == file.repository)
    ]
    first = next((other for i in at if isinstance(other := found[i], int)), None)
    if first is None or at[-1] - at[0] + 1 != len(at):
        return None
    roots = dict(zip(kept.folders, kept.places, strict=True))
    root = roots.get(_folder(files.place[first]))
    if not root or not lies(file).startswith(os.fsencode(root.replace(os.sep, "/") + "/")):
        return None
    return at[0] + bisect_left([lies(found[i]) for i in at], lies(file))
