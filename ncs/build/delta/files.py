"""The files of an index that is a base and a delta: which of them each holds, and what a walk finds changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta import room_of
from ncs.storage.files import Entries, FileEntry, FileTable
from ncs.sources.seen import RACY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ncs.sources import Origin, SourceFile
    from ncs.sources.seen import Seen

    Numbers = NDArray[np.int64]

ORDER, ROWS, COPIES, AGAIN = "order.npy", "file_rows.npy", "file_copies.npy", "again.json"
"""In the delta's folder: int32 [files], the number of each in the base, or ~ of it in the delta; where its documents
and its copies begin; of files that only seem to have changed where they lie and their stamps, by these numbers."""


@dataclass(frozen=True, slots=True)
class Filed:
    """order: the files of an index, a number of the base or ~ of the delta; again: place and stamp where they are not
    those of the base any more."""

    base: FileTable
    delta: FileTable | None
    order: NDArray[np.int32]
    again: dict[int, tuple[str, str]]

    @classmethod
    def load(cls, data: Path) -> Filed | None:
        """Of a data folder; None where it keeps none."""
        base, room = FileTable.of_folder(data), room_of(data)
        if base is None:
            return None
        if room is None:
            return cls(base, None, np.arange(len(base), dtype=np.int32), {})
        again = {
            int(number): (place, stamp) for number, (place, stamp) in json.loads((room / AGAIN).read_bytes()).items()
        }
        return cls(base, FileTable.of_folder(room), np.load(room / ORDER, allow_pickle=False), again)

    def entry(self, number: int) -> FileEntry:
        """A file by its number."""
        if number < 0:
            if self.delta is None:
                raise ValueError(f"there is no file {number}")
            return self.delta.entries[~number]
        entry = self.base.entries[number]
        if number in self.again:
            place, stamp = self.again[number]
            return replace(entry, place=place, stamp=stamp)
        return entry

    def repository(self, number: int) -> str:
        """Of a file by its number."""
        return (self.base if number >= 0 else self._late()).entries[max(number, ~number)].repository

    def path(self, number: int) -> str:
        """In its repository."""
        return (self.base if number >= 0 else self._late()).entries[max(number, ~number)].path

    def owners(self) -> tuple[Numbers, list[str]]:
        """Of each file the number of its repository in a list of their names."""
        early, late = (_owners(table) for table in (self.base, self.delta))
        names = list(dict.fromkeys([*early[1], *late[1]]))
        number = {name: at for at, name in enumerate(names)}
        parts = [np.array([number[name] for name in known], np.int64)[of] for of, known in (early, late)]
        return self._of_each(*parts), names

    def states(self) -> Numbers:
        """Of each file READ, BROKEN or FAILED."""
        return self._of_each(*(_column(table, "states") for table in (self.base, self.delta)))

    def bytes(self) -> int:
        """Of all files."""
        return int(self._of_each(*(_column(table, "bytes") for table in (self.base, self.delta))).sum())

    def _of_each(self, early: Numbers, late: Numbers) -> Numbers:
        """What both tables say of their files, for each in order."""
        found: Numbers = np.concatenate([early, late])[np.where(self.order >= 0, self.order, len(early) + ~self.order)]
        return found

    def _late(self) -> FileTable:
        if self.delta is None:
            raise ValueError("there is no delta")
        return self.delta

    def table(self, rows: Numbers, copies: Numbers) -> FileTable:
        """As one table."""
        return FileTable([self.entry(number) for number in self.order.tolist()], rows, copies)

    def save(self, room: Path) -> None:
        """Write what the tables do not say."""
        np.save(room / ORDER, self.order)
        (room / AGAIN).write_text(json.dumps(self.again), encoding="utf-8")


def _owners(table: FileTable | None) -> tuple[Numbers, list[str]]:
    if table is None:
        return np.zeros(0, np.int64), []
    if isinstance(table.entries, Entries):
        return table.entries.owners()
    names: dict[str, int] = {}
    numbers = [names.setdefault(entry.repository, len(names)) for entry in table.entries]
    return np.array(numbers, np.int64), list(names)


def _column(table: FileTable | None, name: str) -> Numbers:
    if table is None:
        return np.zeros(0, np.int64)
    if isinstance(table.entries, Entries):
        return np.asarray(getattr(table.entries, name), np.int64)
    return np.array([getattr(entry, {"states": "state"}.get(name, name)) for entry in table.entries], np.int64)


def whole_table(data: Path, room: Path) -> FileTable | None:
    """The files of an index as one table."""
    filed = Filed.load(data)
    if filed is None:
        return None
    rows, copies = (np.load(room / name, allow_pickle=False) for name in (ROWS, COPIES))
    return filed.table(rows, copies)


@dataclass(frozen=True)
class Walked:
    """What a walk came to: every file in order as its number in what stands, or as what was read of it.

    seen: what else it met; None: what the index remembers.
    """

    found: Sequence[int | SourceFile]
    again: dict[int, tuple[str, str]]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[int, ...]
    seen: Seen | None = None

    @cached_property
    def differs(self) -> bool:
        """Whether any file is another one."""
        return bool(self.added or self.changed or self.removed)


class Looking:
    """Compares files as they are walked over with those of an index; tells a walk which need not be read."""

    def __init__(self, filed: Filed, began: int, also: Iterable[str] = ()) -> None:
        """began: when the index was begun, in nanoseconds since 1970. also: places to be read anyway."""
        self.filed, self._began = filed, began
        numbers = filed.order.tolist()
        entries = {number: filed.entry(number) for number in numbers}
        self._stamps = {entry.place: (entry.stamp, number) for number, entry in entries.items() if entry.stamp}
        self._names = {(entry.repository, entry.path): number for number, entry in entries.items()}
        self._entries = entries
        self._also = frozenset(also)

    def unchanged(self, origin: Origin) -> bool:
        """Whether the content that lies there is what the index holds, without reading it."""
        stamp, _ = self._stamps.get(origin.place, ("", 0))
        if stamp != origin.stamp or origin.place in self._also:
            return False
        _, *times = stamp.split(":")
        return not any(int(time) >= self._began - RACY for time in times)

    def over(self, files: Iterable[SourceFile], most: int) -> Walked | None:
        """All files; None where more than so many bytes were read, or where a file is known by another name."""
        found: list[int | SourceFile] = []
        again = dict(self.filed.again)
        added, changed, left, size = [], [], dict.fromkeys(self._entries), 0
        for file in files:
            number = self._known(file)
            if number is None:
                return None
            name = f"{file.repository}/{file.path}"
            if isinstance(number, int):
                left.pop(number, None)
                entry = self._entries[number]
                if file.origin and number >= 0 and tuple(file.origin) != (entry.place, entry.stamp):
                    again[number] = (file.origin.place, file.origin.stamp)
                found.append(number)
                continue
            size += len(file.data)
            if size > most:
                return None
            old = self._names.get((file.repository, file.path))
            if old is None:
                added.append(name)
            else:
                left.pop(old, None)
                if self._entries[old].digest != FileEntry.of(file).digest:
                    changed.append(name)
            found.append(file)
        return Walked(found, again, tuple(added), tuple(changed), tuple(left))

    def _known(self, file: SourceFile) -> int | SourceFile | None:
        """Its number; the file itself where it is to be read; None where it has another name than it had."""
        if file.unchanged and file.origin:
            number = self._stamps[file.origin.place][1]
            entry = self._entries[number]
            return number if (entry.repository, entry.path) == (file.repository, file.path) else None
        number = self._names.get((file.repository, file.path), None)
        if number is None or (file.origin and file.origin.place in self._also):
            return file
        entry = self._entries[number]
        if entry.digest != FileEntry.of(file).digest:
            return file
        return number if number >= 0 else file  # the delta is made anew anyway: it takes it over by its digest
