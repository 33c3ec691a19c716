"""Files into documents: those that an index knows are taken over from it, the others are read and parsed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.batches import Batch, Collected, Collector, pack_batch
from ncs.extract import Extraction, extract_files
from ncs.storage.files import BROKEN, FAILED, READ, FileEntry

if TYPE_CHECKING:
    from ncs.config import BuildConfig
    from ncs.build.file_cache import Known
    from ncs.sources import SourceFile

RUN = 300
"""Files taken over at once."""


class MovedError(Exception):
    """A file that was not read because it is unchanged has another name now: begin again without reuse."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Which files differ from those an index was made of, as repository/path; and how many do not."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.added or self.changed or self.removed)


def changes(files: Iterable[SourceFile], of: Iterable[FileEntry]) -> Changes:
    """Walk over files without taking anything over. A file that has only moved on disk is unchanged."""
    entries = {(entry.repository, entry.path): entry for entry in of}
    added, changed, unchanged = [], [], 0
    for file in files:
        entry = entries.pop((file.repository, file.path), None)
        if entry is None:
            added.append(f"{file.repository}/{file.path}")
        elif file.unchanged or entry.digest == FileEntry.of(file).digest:
            unchanged += 1
        else:
            changed.append(f"{file.repository}/{file.path}")
    removed = (f"{repository}/{path}" for repository, path in entries)
    return Changes(tuple(added), tuple(changed), tuple(removed), unchanged)


def read(
    files: Iterable[SourceFile], folder: Path, config: BuildConfig, workers: int | None, known: Known | None = None
) -> Collected:
    """Documents into the store and words in a table, in the order of the files.

    Raises MovedError where a file is known under another name.
    """
    with Collector(folder, config.store_code, config.deduplicate) as collector:
        reader = _Reader(collector, known)
        for extraction in extract_files(
            reader.unknown(files),
            workers=workers,
            frontend=config.java_frontend,
            outside=config.outside,
            finish=partial(pack_batch, code=config.store_code),
        ):
            reader.add(extraction)
        reader.take_over()
        return collector.finish()


class _Reader:
    """Puts what is extracted and what is taken over back into the order of the files."""

    def __init__(self, collector: Collector, known: Known | None) -> None:
        self._collector = collector
        self._known = known
        self._waiting: deque[tuple[FileEntry, int | None]] = deque()
        """Files in order, with their number in the index where they are known."""
        self._being_read = 0

    def unknown(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        """The files that must be extracted; the others wait for those before them."""
        for file in files:
            entry, number = self._looked_up(file)
            self._waiting.append((entry, number))
            if number is None:
                self._being_read += 1
                yield file
            elif not self._being_read and len(self._waiting) >= RUN:
                self.take_over()

    def _looked_up(self, file: SourceFile) -> tuple[FileEntry, int | None]:
        if self._known is None:
            return FileEntry.of(file), None
        if not file.unchanged:
            entry = FileEntry.of(file)
            number = self._known.number_of(entry)
            return (entry if number is None else replace(entry, state=self._known.table.entries[number].state)), number
        number = self._known.number_at(file.origin)
        entry = self._known.table.entries[number]
        if (entry.repository, entry.path) != (file.repository, file.path):
            raise MovedError
        return entry, number

    def take_over(self) -> None:
        """The known files at the front, in runs that stand side by side in the index."""
        while self._known is not None and self._waiting and self._waiting[0][1] is not None:
            entries: list[FileEntry] = []
            numbers: list[int] = []
            while self._waiting and len(numbers) < RUN and self._follows(numbers):
                entry, number = self._waiting.popleft()
                entries.append(entry)
                numbers.append(number or 0)
            batch, owners = self._known.batch(numbers)
            self._collector.add(batch, entries, owners)

    def _follows(self, numbers: list[int]) -> bool:
        number = self._waiting[0][1]
        return number is not None and (not numbers or number == numbers[-1] + 1)

    def add(self, extraction: Extraction[Batch]) -> None:
        """The documents of files that were read."""
        states = {**dict.fromkeys(extraction.broken, BROKEN), **dict.fromkeys(extraction.failed, FAILED)}
        done = at = 0
        while done < extraction.files:
            self.take_over()
            entries: list[FileEntry] = []
            while len(entries) < extraction.files - done and self._waiting and self._waiting[0][1] is None:
                entry = self._waiting.popleft()[0]
                entries.append(replace(entry, state=states.get(f"{entry.repository}/{entry.path}", READ)))
            counts = extraction.counts[done : done + len(entries)]
            batch = extraction.result.part(at, at + sum(counts))
            self._collector.add(batch, entries, np.repeat(np.arange(len(entries)), counts))
            done, at = done + len(entries), at + sum(counts)
        self._being_read -= extraction.files
        self.take_over()
