"""Writing the documents of files into a new segment: cached files are copied, the others are extracted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.batches import Batch, CollectedDocuments, Collector, pack_batch
from ncs.extract import Extraction, extract_files
from ncs.storage.files import BROKEN, FAILED, READ, FileEntry

if TYPE_CHECKING:
    from ncs.build.file_cache import FileCache
    from ncs.config import BuildConfig
    from ncs.sources import SourceFile

RUN = 300
"""Cached files copied at once."""


class MovedError(Exception):
    """An unchanged file has another name now; start again without the cache."""


def ingest(
    files: Iterable[SourceFile],
    segment: Path,
    config: BuildConfig,
    workers: int | None,
    cache: FileCache | None = None,
    *,
    began: int = 0,
) -> CollectedDocuments:
    """Documents, words and the file table of a new segment, in the order of the files.

    began: when reading did, in nanoseconds since 1970. Raises MovedError where a cached file has another name.
    """
    with Collector(segment, config.store_code, config.deduplicate) as collector:
        reader = _Reader(collector, cache)
        for extraction in extract_files(
            reader.to_extract(files),
            workers=workers,
            frontend=config.java_frontend,
            outside=config.outside,
            finish=partial(pack_batch, code=config.store_code),
        ):
            reader.add(extraction)
        reader.take_over()
        return collector.finish(began)


class _Reader:
    """Merges extracted and cached documents in the order of the files."""

    def __init__(self, collector: Collector, cache: FileCache | None) -> None:
        self._collector = collector
        self._cache = cache
        self._queue: deque[tuple[FileEntry, int | None]] = deque()
        """Files in order, with their number in the cache where they are cached."""
        self._in_extraction = 0

    def to_extract(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        """The files that must be extracted; cached ones are queued."""
        for file in files:
            entry, number = self._look_up(file)
            self._queue.append((entry, number))
            if number is None:
                self._in_extraction += 1
                yield file
            elif not self._in_extraction and len(self._queue) >= RUN:
                self.take_over()

    def _look_up(self, file: SourceFile) -> tuple[FileEntry, int | None]:
        if self._cache is None:
            return FileEntry.of(file), None
        if not file.unchanged:
            entry = FileEntry.of(file)
            number = self._cache.number_of(entry)
            return (entry if number is None else entry._replace(state=self._cache.entry(number).state)), number
        number = self._cache.number(file.repository, file.path)
        if number is None or (file.origin is not None and self._cache.entry(number).place != file.origin.place):
            raise MovedError
        return self._cache.entry(number), number

    def take_over(self) -> None:
        """Copy the cached files at the front of the queue, in runs of adjacent files."""
        while self._cache is not None and self._queue and self._queue[0][1] is not None:
            entries: list[FileEntry] = []
            numbers: list[int] = []
            while self._queue and len(numbers) < RUN and self._is_adjacent(numbers):
                entry, number = self._queue.popleft()
                entries.append(entry)
                numbers.append(number or 0)
            batch, owners = self._cache.batch(numbers)
            self._collector.add(batch, entries, owners)

    def _is_adjacent(self, numbers: list[int]) -> bool:
        number = self._queue[0][1]
        if number is None or self._cache is None:
            return False
        return not numbers or self._cache.is_adjacent(numbers[-1], number)

    def add(self, extraction: Extraction[Batch]) -> None:
        """Add the documents of files that were extracted."""
        states = {**dict.fromkeys(extraction.broken, BROKEN), **dict.fromkeys(extraction.failed, FAILED)}
        done = at = 0
        while done < extraction.files:
            self.take_over()
            entries: list[FileEntry] = []
            while len(entries) < extraction.files - done and self._queue and self._queue[0][1] is None:
                entry = self._queue.popleft()[0]
                entries.append(entry._replace(state=states.get(f"{entry.repository}/{entry.path}", READ)))
            counts = extraction.counts[done : done + len(entries)]
            batch = extraction.result.part(at, at + sum(counts))
            self._collector.add(batch, entries, np.repeat(np.arange(len(entries)), counts))
            done, at = done + len(entries), at + sum(counts)
        self._in_extraction -= extraction.files
        self.take_over()
