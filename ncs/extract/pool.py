"""Many files into Documents, in several processes, in the order of the files."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Generic, TypeVar

from ncs.errors import NcsError, SourceError
from ncs.extract.readers import read

if TYPE_CHECKING:
    from ncs.sources import SourceFile
    from ncs.types import Document

T = TypeVar("T")

CHUNK_FILES, CHUNK_BYTES = 200, 1_500_000
"""A chunk is as many files; one file a task would cost a third of the speed in traffic."""
SMALL = 4_000_000
"""Bytes below which starting processes costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Extraction(Generic[T]):
    """What a chunk of files came to."""

    result: T
    """What `finish` made of the chunk's documents."""
    files: int
    bytes: int
    documents: int
    counts: tuple[int, ...]
    """How many documents each file gave, in the order of the files."""
    broken: tuple[str, ...]
    """repository/path of files with syntax errors; what parsed is in the result."""
    failed: tuple[str, ...]
    """repository/path of files that gave nothing because the front end could not read them."""


@dataclass(frozen=True, slots=True)
class _How(Generic[T]):
    """What is done with every chunk."""

    frontend: str
    outside: bool
    finish: Callable[[list[Document]], T]


def extract_files(
    files: Iterable[SourceFile],
    *,
    workers: int | None = None,
    frontend: str = "tree-sitter",
    outside: bool = False,
    finish: Callable[[list[Document]], T],
) -> Iterator[Extraction[T]]:
    """Documents of many files, a chunk at a time, in input order whatever the number of workers.

    outside: classes and top-level code too. finish: runs where the documents were made; only its result travels,
    so it must be a function of a module (or a functools.partial of one). workers: processes, one a core by
    default; with one, or with little input, everything happens here. Files that nothing reads
    (ncs.extract.readers) give none.
    Raises NcsError where a process was killed twice, as happens without memory.
    """
    workers = workers or os.cpu_count() or 1
    how = _How(frontend, outside, finish)
    chunks = _chunks(files)
    first: list[list[SourceFile]] = []
    if workers > 1:
        size = 0
        for chunk in chunks:
            first.append(chunk)
            size += sum(len(file.data) for file in chunk)
            if size >= SMALL:
                yield from _in_processes(chain(first, chunks), workers, how)
                return
    for chunk in chain(first, chunks):
        yield _read_chunk(chunk, how)


def _chunks(files: Iterable[SourceFile]) -> Iterator[list[SourceFile]]:
    chunk: list[SourceFile] = []
    size = 0
    for file in files:
        chunk.append(file)
        size += len(file.data)
        if len(chunk) >= CHUNK_FILES or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@contextmanager
def _no_gc() -> Iterator[None]:
    """Without the search for reference cycles: documents have none, and their number makes it a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_no_gc()  # around the whole function: when it comes back on, the documents are gone
def _read_chunk(chunk: list[SourceFile], how: _How[T]) -> Extraction[T]:
    documents: list[Document] = []
    starts: list[int] = []
    broken: list[str] = []
    failed: list[str] = []
    for file in chunk:
        starts.append(len(documents))
        try:
            found, errors = read(file.data, file.repository, file.path, how.frontend, outside=how.outside)
        except SourceError:
            failed.append(f"{file.repository}/{file.path}")
            continue
        documents += found
        if errors:
            broken.append(f"{file.repository}/{file.path}")
    size = sum(len(file.data) for file in chunk)
    counts = tuple(end - start for start, end in pairwise([*starts, len(documents)]))
    return Extraction(how.finish(documents), len(chunk), size, len(documents), counts, tuple(broken), tuple(failed))


def _in_processes(chunks: Iterator[list[SourceFile]], workers: int, how: _How[T]) -> Iterator[Extraction[T]]:
    """At most two chunks a worker are in flight, so memory stays flat and nobody waits."""
    pool = _pool(workers)
    waiting: deque[tuple[list[SourceFile], Future[Extraction[T]]]] = deque()
    kills = 0
    try:
        while True:
            while len(waiting) < 2 * workers and (chunk := next(chunks, None)) is not None:
                waiting.append((chunk, _submit(pool, chunk, how)))
            if not waiting:
                return
            try:
                extraction = waiting[0][1].result()
            except BrokenProcessPool:
                kills += 1
                if kills > 1:
                    first = waiting[0][0][0]
                    raise NcsError(
                        f"a process that read files was killed twice, near {first.repository}/{first.path};"
                        " is there enough memory? fewer processes take less: --workers 1"
                    ) from None
                pool.shutdown(wait=False)
                pool = _pool(workers)
                waiting = deque((chunk, _submit(pool, chunk, how)) for chunk, _ in waiting)
                continue
            waiting.popleft()
            yield extraction
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pool(workers: int) -> ProcessPoolExecutor:
    """Fresh processes: a fork of one that runs threads (fasttext, faiss) may hang."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _quiet)


def _quiet() -> None:
    """Ctrl-C is the parent's to handle; gc is off for good, chunk by chunk everything is freed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _submit(pool: ProcessPoolExecutor, chunk: list[SourceFile], how: _How[T]) -> Future[Extraction[T]]:
    """Submitting starts processes, and these would run the caller's script anew if they saw it."""
    main = sys.modules["__main__"]
    if getattr(getattr(how.finish, "func", how.finish), "__module__", "__main__") != "__main__":
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        return pool.submit(_read_chunk, chunk, how)
    finally:
        sys.modules["__main__"] = main
