"""The floor under extraction: tree-sitter parses the same files, and nothing is done with the trees.

Files travel to processes exactly as `extract_files` sends them: the same chunks, the same kind of pool, as many
chunks in flight; and below its limit for small input everything happens in this process, as it does there.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import get_context
from types import ModuleType

from tree_sitter import Language, Parser

from ncs.extract.languages import LANGUAGES, installed, language_of
from ncs.extract.pool import SMALL, _chunks, _pool
from ncs.sources import SourceFile


def parse_files(files: Sequence[SourceFile], workers: int) -> int:
    """Parse every file once; the number of files with syntax errors."""
    chunks = _chunks(files)
    if workers == 1 or sum(len(file.data) for file in files) < SMALL:
        return sum(map(parse_chunk, chunks))
    broken = 0
    waiting: deque[Future[int]] = deque()
    with _without_main(), _pool(workers) as pool:
        for chunk in chunks:
            waiting.append(pool.submit(parse_chunk, chunk))
            if len(waiting) == 2 * workers:
                broken += waiting.popleft().result()
        return broken + sum(future.result() for future in waiting)


def start_processes(workers: int) -> None:
    """What both sides pay before the first byte: as many processes start, import the parsers, and end."""
    nothing = [SourceFile("", f"empty{row.extensions[0]}", b"") for row in LANGUAGES.values() if installed(row.name)]
    with _without_main(), ProcessPoolExecutor(workers, get_context("spawn"), parse_chunk, (nothing,)) as pool:
        for future in [pool.submit(parse_chunk, []) for _ in range(workers)]:
            future.result()


def parse_chunk(chunk: Iterable[SourceFile]) -> int:
    """Parse files of known languages; the number of those with syntax errors."""
    broken = 0
    for file in chunk:
        language = language_of(file.path)
        if language is not None and installed(language):
            broken += _parser(language).parse(file.data).root_node.has_error
    return broken


@lru_cache
def _parser(language: str) -> Parser:
    return Parser(Language(LANGUAGES[language].load()))


@contextmanager
def _without_main() -> Iterator[None]:
    """New processes import the caller's script if they see it; those of `extract_files` do not see it either."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
