"""Extracts Documents of many files, in the order of the files; a file that kills its process harms no other file."""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Generic, TypeVar

from ncs.errors import NcsError, SourceError
from ncs.extract.readers import read
from ncs.sources import SourceFile
from ncs.types import Document
from ncs.workers import READ_MEMORY, TaskKilled, Workers, import_silently

T = TypeVar("T")

CHUNK_FILES, CHUNK_BYTES = 100, 200_000
"""The size of a chunk: small, so that small projects keep all processes busy; with one file per chunk a third of the
time goes into communication.
"""
MAX_SMALL = 2_000
"""Most tokens of a file that cannot need much memory. In code with errors tree-sitter takes up to 90 bytes for each
pair of nested tokens: 350 MB for 2,000 tokens, 9 GB for 10,000.
"""
CHUNK_SECONDS, FILE_SECONDS = 600, 300
"""Seconds until a process is killed. They decide about no file: the counts of ncs.extract.treesitter end the parsing of
a file after some 5 seconds.
"""
_TOKEN = re.compile(rb"\w+|[^\w\s]")


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
    processes, one per core by default. A single chunk of small files is read in this process, and so is everything if
    this process has limits already. Files without a reader (ncs.extract.readers) have no documents.
    """
    read_chunk = partial(_read_chunk, frontend=frontend, outside=outside, finish=finish)
    module = getattr(finish, "func", finish).__module__
    chunks = _chunks(files)
    first = list(islice(chunks, 2))
    if multiprocessing.current_process().daemon or (len(first) < 2 and all(map(_is_small, chain(*first)))):
        yield from map(read_chunk, chain(first, chunks))
    else:
        yield from _in_processes(chain(first, chunks), workers or os.cpu_count() or 1, read_chunk, module)


def _is_small(file: SourceFile) -> bool:
    return len(file.data) <= MAX_SMALL or next(islice(_TOKEN.finditer(file.data), MAX_SMALL, None), None) is None


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
    documents: list[Document] = []
    counts: list[int] = []
    broken: list[str] = []
    failed: list[str] = []
    enabled = gc.isenabled()
    gc.disable()  # documents have no reference cycles; the search for them would take up to a tenth of the time
    try:
        for file in chunk:
            some: list[Document] = []
            try:
                some, errors = read(file.data, file.repository, file.path, frontend, outside=outside)
                if errors:
                    broken.append(f"{file.repository}/{file.path}")
            except SourceError:
                failed.append(f"{file.repository}/{file.path}")
            documents += some
            counts.append(len(some))
        return Extraction(finish(documents), tuple(counts), tuple(broken), tuple(failed))
    finally:
        if enabled:
            gc.enable()


def _in_processes(
    chunks: Iterator[list[SourceFile]],
    workers: int,
    read_chunk: Callable[[list[SourceFile]], Extraction[T]],
    module: str,
) -> Iterator[Extraction[T]]:
    """At most two chunks per worker are in flight, so that memory stays flat and no worker waits.

    The files of a chunk whose process died are read one by one; a file whose process dies again has failed.
    """
    waiting: deque[tuple[list[SourceFile], Future[Extraction[T]]]] = deque()
    with Workers(workers, memory=READ_MEMORY, initialize=import_silently, arguments=(module,)) as pool:
        while True:
            for chunk in islice(chunks, 2 * workers - len(waiting)):
                waiting.append((chunk, pool.submit(read_chunk, chunk, seconds=CHUNK_SECONDS)))
            if not waiting:
                return
            yield from _results(*waiting.popleft(), pool, read_chunk)


def _results(
    chunk: list[SourceFile],
    future: Future[Extraction[T]],
    pool: Workers,
    read_chunk: Callable[[list[SourceFile]], Extraction[T]],
) -> Iterator[Extraction[T]]:
    """The result of a chunk or, where its process died, of its files one by one."""
    if not isinstance(future.exception(), TaskKilled):
        yield future.result()
        return
    try:
        nothing = pool.submit(read_chunk, []).result()
    except TaskKilled as error:
        raise NcsError(
            f"no process can read source files: {error}; if memory ran out, use fewer processes: --workers 1"
        ) from None
    futures = [pool.submit(read_chunk, [file], seconds=FILE_SECONDS) for file in chunk]
    for file, future in zip(chunk, futures, strict=True):
        killed = isinstance(future.exception(), TaskKilled)
        failed = replace(nothing, counts=(0,), failed=(f"{file.repository}/{file.path}",))
        yield failed if killed else future.result()
