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
"""The size of a chunk; with single files a third of the time goes into communication."""
SMALL = 4_000_000
"""Bytes of input below which starting processes costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Extraction(Generic[T]):
    """The result of extracting a chunk of files."""

    result: T
    """What `finish` returned for the chunk's documents."""
    files: int
    bytes: int
    documents: int
    counts: tuple[int, ...]
    """Documents of each file, in the order of the files."""
    broken: tuple[str, ...]
    """repository/path of files with syntax errors; the rest of them is in the result."""
    failed: tuple[str, ...]
    """repository/path of files that the front end could not read."""


@dataclass(frozen=True, slots=True)
class _Options(Generic[T]):
    """The options of an extraction, the same for every chunk."""

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

    outside: classes and top-level code too. finish: runs in the process that made the documents, and only its
    result is sent, so it must be a module's function (or a functools.partial of one). workers: processes, one a core by
    default; with one, or with little input, everything runs here. Files that nothing reads
    (ncs.extract.readers) have none.
    Raises NcsError where a process was killed twice, as happens when memory runs out.
    """
    workers = workers or os.cpu_count() or 1
    options = _Options(frontend, outside, finish)
    chunks = _chunks(files)
    first: list[list[SourceFile]] = []
    if workers > 1:
        size = 0
        for chunk in chunks:
            first.append(chunk)
            size += sum(len(file.data) for file in chunk)
            if size >= SMALL:
                yield from _in_processes(chain(first, chunks), workers, options)
                return
    for chunk in chain(first, chunks):
        yield _read_chunk(chunk, options)


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
    """Without the search for reference cycles: documents have none, and it would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_no_gc()  # around the whole function: the documents are freed before it is enabled again
def _read_chunk(chunk: list[SourceFile], options: _Options[T]) -> Extraction[T]:
    documents: list[Document] = []
    starts: list[int] = []
    broken: list[str] = []
    failed: list[str] = []
    for file in chunk:
        starts.append(len(documents))
        try:
            some, errors = read(file.data, file.repository, file.path, options.frontend, outside=options.outside)
        except SourceError:
            failed.append(f"{file.repository}/{file.path}")
            continue
        documents += some
        if errors:
            broken.append(f"{file.repository}/{file.path}")
    size = sum(len(file.data) for file in chunk)
    counts = tuple(end - start for start, end in pairwise([*starts, len(documents)]))
    return Extraction(options.finish(documents), len(chunk), size, len(documents), counts, tuple(broken), tuple(failed))


def _in_processes(chunks: Iterator[list[SourceFile]], workers: int, options: _Options[T]) -> Iterator[Extraction[T]]:
    """At most two chunks per worker are in flight, so that memory stays flat and no worker waits."""
    pool = _pool(workers)
    waiting: deque[tuple[list[SourceFile], Future[Extraction[T]]]] = deque()
    kills = 0
    try:
        while True:
            while len(waiting) < 2 * workers and (chunk := next(chunks, None)) is not None:
                waiting.append((chunk, _submit(pool, chunk, options)))
            if not waiting:
                return
            try:
                extraction = waiting[0][1].result()
            except BrokenProcessPool:
                kills += 1
                if kills > 1:
                    first = waiting[0][0][0]
                    raise NcsError(
                        f"a worker process was killed twice, near {first.repository}/{first.path};"
                        " if memory ran out, use fewer processes: --workers 1"
                    ) from None
                pool.shutdown(wait=False)
                pool = _pool(workers)
                waiting = deque((chunk, _submit(pool, chunk, options)) for chunk, _ in waiting)
                continue
            waiting.popleft()
            yield extraction
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pool(workers: int) -> ProcessPoolExecutor:
    """Fresh processes: a fork of one that runs threads (fasttext, faiss) may hang."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _ignore_interrupts)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _submit(pool: ProcessPoolExecutor, chunk: list[SourceFile], options: _Options[T]) -> Future[Extraction[T]]:
    """Submitting starts processes, which would run the caller's script again if they saw it."""
    main = sys.modules["__main__"]
    if getattr(getattr(options.finish, "func", options.finish), "__module__", "__main__") != "__main__":
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        return pool.submit(_read_chunk, chunk, options)
    finally:
        sys.modules["__main__"] = main
