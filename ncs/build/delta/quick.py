"""Which files of an index differ, found without walking over all: only folders in which something changed are walked.

What the last walk has seen is asked for its stamps. Where an ignore file, an archive or a bare repository
changed, a folder became a repository, or anything else was met that would make the list of files another one, this
gives up, and all is walked over.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.files import Filed, Walked
from ncs.build.delta.remembered import Remembered, above
from ncs.build.delta.seen_files import folder_of
from ncs.storage.files import FileEntry
from ncs.sources import Skipped
from ncs.sources.seen import RACY, Seen, stamp_of
from ncs.sources.stamps import parted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ncs.build.request import Recipe
    from ncs.sources import Origin, SourceFile
    from ncs.types import Mask


NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Files:
    """The files of an index where they lie. early: of those of the base's that are as it read them, whether, by their
    numbers; others: of all others, by their numbers; number: of each place of these; stale: those whose stamp is
    another one now, or cannot be believed."""

    kept: Remembered
    early: Mask
    others: Mapping[int, FileEntry]
    number: Mapping[str, int]
    stale: set[int]

    @classmethod
    def of(cls, kept: Remembered, filed: Filed) -> _Files:
        """Every file is looked at."""
        again = np.fromiter(filed.again, np.int32, len(filed.again))
        as_read = (filed.order >= 0) & ~np.isin(filed.order, again)
        early = np.zeros(len(filed.base), np.bool_)
        early[filed.order[as_read]] = True
        others = {number: filed.entry(number) for number in filed.order[~as_read].tolist()}
        number = {entry.place: number for number, entry in others.items()}
        stale = {number for number, entry in others.items() if not _believed(entry, kept.began)}
        differing = kept.files.differing(kept.began)
        return cls(kept, early, others, number, stale | set(differing[early[differing]].tolist()))

    @cached_property
    def _places(self) -> list[str]:
        return parted(self.kept.files.paths)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return dict(zip(self._places, range(len(self.early)), strict=True))

    def place(self, number: int) -> str:
        """Where a file lies."""
        return self.others[number].place if number in self.others else self._places[number]

    def at(self, place: str) -> int | None:
        """The number of the file that lay there."""
        if place in self.number:
            return self.number[place]
        number = self._numbers.get(place)
        return number if number is not None and self.early[number] else None

    def lying_in(self, folders: set[str]) -> set[int]:
        """The files in these folders."""
        late = (number for number, entry in self.others.items() if folder_of(entry.place) in folders)
        early = self.kept.lying_in(folders)
        return {*late, *early[self.early[early]].tolist()}

    def known(self, folders: Collection[str]) -> bool:
        """Whether places tell files apart, and those that are no part of something else lie in these folders."""
        late = (folder_of(entry.place) for entry in self.others.values() if _in_folder(entry))
        return len(self.number) == len(self.others) and all(
            map(folders.__contains__, chain(late, self.kept.folders_of(np.flatnonzero(self.early))))
        )

    def unchanged(self, origin: Origin) -> bool:
        """Whether the content that lies there is what the index holds."""
        number = self.at(origin.place)
        if number is None or number in self.stale:
            return False
        if number in self.others:
            return self.others[number].stamp == origin.stamp
        return ":".join(map(str, self.kept.files.stamps[number].tolist())) == origin.stamp


def _in_folder(entry: FileEntry) -> bool:
    """Whether it is a file of its own, not part of an archive or a bare repository."""
    return entry.stamp.count(":") == 2


def _believed(entry: FileEntry, began: int) -> bool:
    """Whether a file has the stamp that it had, and has had it for long; what is part of something else has while that
    is as it was, which its guards tell."""
    if not _in_folder(entry):
        return True
    parts = tuple(map(int, entry.stamp.split(":")))
    return parts == stamp_of(entry.place) and all(time < began - RACY for time in parts[1:])


def quick_look(
    data: Path,
    filed: Filed,
    recipe: Recipe,
    began: int,
    most: int,
    also: frozenset[int] = frozenset(),
) -> Walked | None:
    """What `Looking.over` finds; None where all must be walked over.

    began: since when the index's files are known, in nanoseconds since 1970. most: bytes to be read. also: the numbers
    of files to be read anyway.
    """
    kept = None if recipe.config.revision is not None else Remembered.load(data, began)
    if kept is None or not kept.guarded():
        return None
    files = _Files.of(kept, filed)
    places = dict(zip(parted(kept.folders.paths), kept.places, strict=True))
    if not files.known(places):
        return None
    files.stale.update(also)
    folders = {*kept.differing_folders(), *(folder_of(files.place(number)) for number in files.stale)}
    if not folders:
        return Walked(filed.order.tolist(), filed.again, (), (), ())
    guards, ways, seen = set(parted(kept.guards.paths)), above(folders), Seen()

    def enter(folder: str) -> bool:
        return folder in folders or folder in ways or not (folder in places or folder in guards)

    met = list(recipe.files(Skipped(), files, seen, enter))
    walked = folders | ways & places.keys()
    if not _as_before(places, guards, seen, walked) or sum(len(file.data) for file in met) > most:
        return None
    found = _merged(filed, files, places, met, folders, also)
    return found and replace(found, seen=kept.again(seen, walked))


def _as_before(places: Mapping[str, str], guards: set[str], seen: Seen, walked: set[str]) -> bool:
    """Whether the folders that were walked belong where they did, and no ignore file is new."""
    guarded = set(map(folder_of, guards))
    for folder in walked & places.keys():
        if folder in seen.folders:
            if seen.folders[folder][1] != places[folder]:
                return False
        elif folder in guarded or Path(folder).exists():
            return False
    return not (seen.odd or seen.apart) and seen.guards.keys() <= guards


def _merged(
    filed: Filed,
    files: _Files,
    roots: Mapping[str, str],
    met: Sequence[SourceFile],
    folders: set[str],
    also: frozenset[int],
) -> Walked | None:
    """All files in order, with what the walk of some folders has met."""
    again, changed = dict(filed.again), []
    here: dict[int, int | SourceFile] = {}
    new: list[SourceFile] = []
    for file in met:
        if file.origin is None:
            return None
        number = files.at(file.origin.place)
        if number is None:
            new.append(file)
            continue
        if file.unchanged:
            here[number] = number
            continue
        entry, now = filed.entry(number), FileEntry.of(file)
        if (entry.repository, entry.path) != (file.repository, file.path):
            return None
        here[number] = number if entry.digest == now.digest and number >= 0 and number not in also else file
        if entry.digest != now.digest:
            changed.append(f"{file.repository}/{file.path}")
        elif number >= 0 and (entry.place, entry.stamp) != tuple(file.origin):
            again[number] = (file.origin.place, file.origin.stamp)
    stays = ~np.isin(filed.order, [number for number in files.lying_in(folders) if number not in here])
    places = _places_of(filed, files, roots, stays, new)
    if places is None:
        return None
    found: list[int | SourceFile] = [here.get(number, number) for number in filed.order[stays].tolist()]
    for at, _, file in reversed(places):
        found.insert(at, file)
    added = tuple(f"{file.repository}/{file.path}" for file in new)
    return Walked(found, again, added, tuple(changed), tuple(filed.order[~stays].tolist()))


def _places_of(
    filed: Filed, files: _Files, roots: Mapping[str, str], stays: Mask, new: Sequence[SourceFile]
) -> list[tuple[int, bytes, SourceFile]] | None:
    """Before which of the files that stay each new one comes, in order; None where its repository has no other."""
    if not new:
        return []
    owners, names = filed.owners()
    order, owners = filed.order[stays].tolist(), owners[stays]
    found = []
    for file in new:
        own = np.flatnonzero(owners == names.index(file.repository)) if file.repository in names else NOBODY
        if not len(own) or own[-1] - own[0] + 1 != len(own):
            return None
        root = roots.get(folder_of(files.place(order[own[0]])))
        lies = _in_order(file.origin.place if file.origin else "")
        if not root or not lies.startswith(_in_order(root) + b"/"):
            return None
        at = bisect_left(order, lies, int(own[0]), int(own[-1]) + 1, key=lambda number: _in_order(files.place(number)))
        found.append((at, lies, file))
    return sorted(found, key=itemgetter(0, 1))


def _in_order(place: str) -> bytes:
    return os.fsencode(place.replace(os.sep, "/"))
