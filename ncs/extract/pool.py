"""Many files into Documents, in several processes, in the order of the files."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
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
    counts: tuple[int, ...]
    """Documents of each file, in the order of the files."""
    broken: tuple[str, ...]
    """repository/path of files with syntax errors; the rest of them is in the result."""
    failed: tuple[str, ...]
    """repository/path of files that the front end could not read."""


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
    result is sent, so it must be a function of an importable module (or a functools.partial of one). workers:
    processes, one a core by default; with one, or with little input, everything runs here. Files that nothing reads
    (ncs.extract.readers) have none.
    Raises NcsError where a process was killed twice, as happens when memory runs out.
    """
    workers = workers or os.cpu_count() or 1
    read_chunk = partial(_read_chunk, frontend=frontend, outside=outside, finish=finish)
    chunks = _chunks(files)
    first: list[list[SourceFile]] = []
    if workers > 1:
        size = 0
        for chunk in chunks:
            first.append(chunk)
            size += sum(len(file.data) for file in chunk)
            if size >= SMALL:
                yield from _in_processes(chain(first, chunks), workers, read_chunk)
                return
    yield from map(read_chunk, chain(first, chunks))


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


def _read_chunk(
    chunk: list[SourceFile], *, frontend: str, outside: bool, finish: Callable[[list[Document]], T]
) -> Extraction[T]:
    """Without the search for reference cycles: documents have none, and it would take up to a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return _read_files(chunk, frontend, outside, finish)
    finally:  # the documents are freed
        if enabled:
            gc.enable()


def _read_files(
    chunk: list[SourceFile], frontend: str, outside: bool, finish: Callable[[list[Document]], T]
) -> Extraction[T]:
    documents: list[Document] = []
    counts: list[int] = []
    broken: list[str] = []
    failed: list[str] = []
    for file in chunk:
        some: list[Document] = []
        try:
            some, errors = read(file.data, file.repository, file.path, frontend, outside=outside)
        except SourceError:
            failed.append(f"{file.repository}/{file.path}")
        else:
            if errors:
                broken.append(f"{file.repository}/{file.path}")
        documents += some
        counts.append(len(some))
    return Extraction(finish(documents), tuple(counts), tuple(broken), tuple(failed))


def _in_processes(
    chunks: Iterator[list[SourceFile]], workers: int, read_chunk: Callable[[list[SourceFile]], Extraction[T]]
) -> Iterator[Extraction[T]]:
    """At most two chunks per worker are in flight, so that memory stays flat and no worker waits.

    Chunks travel in files: in older Pythons an executor waits forever if its workers are killed while it writes more to
    them than a pipe holds (CPython gh-94777).
    """
    pool = _pool(workers)
    waiting: deque[tuple[Path, Future[Extraction[T]]]] = deque()
    killed = False
    with TemporaryDirectory(prefix="ncs-extract-") as folder:
        try:
            numbered = enumerate(chunks)
            while True:
                for number, chunk in islice(numbered, 2 * workers - len(waiting)):
                    file = Path(folder, str(number))
                    file.write_bytes(pickle.dumps(chunk))
                    waiting.append((file, _submit(pool, file, read_chunk)))
                if not waiting:
                    return
                file, future = waiting[0]
                try:
                    extraction = future.result()
                except BrokenProcessPool:
                    if killed:
                        first = _load(file)[0]
                        raise NcsError(
                            f"a worker process was killed twice, near {first.repository}/{first.path};"
                            " if memory ran out, use fewer processes: --workers 1"
                        ) from None
                    killed = True
                    pool.shutdown(wait=False)
                    pool = _pool(workers)
                    waiting = deque((file, _submit(pool, file, read_chunk)) for file, _ in waiting)
                    continue
                waiting.popleft()
                file.unlink()
                yield extraction
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _pool(workers: int) -> ProcessPoolExecutor:
    """Fresh processes: a fork of one that runs threads (fasttext, faiss) may hang. Ctrl-C is left to the parent."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, spawn, signal.signal, (signal.SIGINT, signal.SIG_IGN))


def _submit(
    pool: ProcessPoolExecutor, file: Path, read_chunk: Callable[[list[SourceFile]], Extraction[T]]
) -> Future[Extraction[T]]:
    """Submitting starts processes, which would run the caller's script again if they saw it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        return pool.submit(_read_chunk_file, file, read_chunk)
    finally:
        sys.modules["__main__"] = main


def _read_chunk_file(file: Path, read_chunk: Callable[[list[SourceFile]], Extraction[T]]) -> Extraction[T]:
    return read_chunk(_load(file))


def _load(file: Path) -> list[SourceFile]:
    chunk: list[SourceFile] = pickle.loads(file.read_bytes())  # noqa: S301  (of our own)
    return chunk
