"""Files read in several processes: order, what is reported, and processes that are killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sysconfig
from functools import partial
from pathlib import Path

import pytest

from ncs.errors import NcsError
from ncs.extract import Extraction, extract_files, pool
from ncs.extract.readers import read
from ncs.sources import SourceFile
from ncs.types import Document
from ncs.workers import TaskKilled, Workers
from tests.fuzz.extract import CPU_SECONDS, SHAPES

Row = tuple[str, str, int, int, bytes]


def rows(documents: list[Document]) -> list[Row]:
    return [(d.id, d.qualified_name, d.start_line, d.end_line, d.digest) for d in documents]


def rows_but_killed_once(marker: str, documents: list[Document]) -> list[Row]:
    """The first process to come here dies as if the kernel had killed it for its memory."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return rows(documents)
    return killed(documents)


def rows_but_killed_by_a_bomb(documents: list[Document]) -> list[Row]:
    return killed(documents) if any(document.name == "bomb" for document in documents) else rows(documents)


def killed(documents: list[Document]) -> list[Row]:
    if multiprocessing.parent_process() is None:
        raise RuntimeError(f"{len(documents)} documents were finished in the test's own process")
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def refuses(documents: list[Document]) -> int:
    raise ValueError(f"{len(documents)} documents")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[SourceFile]:
    """A megabyte, enough for several processes: the standard library, two files with errors around one nobody reads."""
    monkeypatch.setattr(pool, "CHUNK_BYTES", 100_000)
    odd = [
        SourceFile("odd", "Broken.java", b"class A { void whole() { go(); } void half() { if ("),
        SourceFile("odd", "read.me", b"def not_source(): pass"),
        SourceFile("odd", "broken.py", b"def whole():\n    return 1\n\ndef (:\n"),
    ]
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:40]
    library = [SourceFile("stdlib", path.name, path.read_bytes()) for path in paths]
    return [*library[:20], *odd, *library[20:]]


@pytest.fixture
def alone(files: list[SourceFile]) -> list[Extraction[list[Row]]]:
    return list(extract_files(files, workers=1, finish=rows))


def test_one_process_reads_every_file_in_order_and_names_those_with_syntax_errors(
    files: list[SourceFile], alone: list[Extraction[list[Row]]]
) -> None:
    assert len(alone) > 1
    counts = [count for extraction in alone for count in extraction.counts]
    names = [row[0].rpartition(":")[0] for extraction in alone for row in extraction.result]
    assert names == [f"{f.repository}/{f.path}" for f, n in zip(files, counts, strict=True) for _ in range(n)]
    assert counts[20:23] == [1, 0, 1]
    assert [name for extraction in alone for name in extraction.broken] == ["odd/Broken.java", "odd/broken.py"]
    assert not any(extraction.failed for extraction in alone)


def test_a_file_that_the_strict_front_end_cannot_read_is_failed_and_harms_no_neighbor() -> None:
    sources = (b"class A { void a() { } }", b"class B { void b() { if (", b"class C { void c() { } }")
    files = [SourceFile("r", f"{n}.java", source) for n, source in enumerate(sources)]
    (extraction,) = extract_files(files, workers=1, frontend="javalang", finish=rows)
    assert [row[1] for row in extraction.result] == ["A.a", "C.c"]
    assert (extraction.failed, extraction.counts) == (("r/1.java",), (1, 0, 1))


def test_little_input_starts_no_process() -> None:
    with pytest.raises(RuntimeError, match="1 documents were finished in the test's own process"):
        list(extract_files([SourceFile("r", "a.py", b"def a(): pass\n")], workers=2, finish=killed))


@pytest.mark.slow
def test_two_processes_of_which_one_is_killed_give_what_one_process_gives(
    files: list[SourceFile], alone: list[Extraction[list[Row]]], tmp_path: Path
) -> None:
    marker = tmp_path / "killed"
    extractions = list(extract_files(files, workers=2, finish=partial(rows_but_killed_once, str(marker))))
    for name in ("result", "counts", "broken", "failed"):
        both = ([row for each in some for row in getattr(each, name)] for some in (extractions, alone))
        assert next(both) == next(both)
    assert marker.exists()


DEEP = b"/*\n" * 5_000
"""As Python: 2 s and 9 GB for tree-sitter."""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_files_that_kill_their_process_are_left_out_by_name_and_no_other_is(
    files: list[SourceFile], alone: list[Extraction[list[Row]]], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "READ_MEMORY", 300 << 20)
    bombs = [SourceFile("odd", "bomb.py", b"def bomb(): pass\n"), SourceFile("odd", "deep.py", DEEP)]
    extractions = list(
        extract_files([*files[:10], *bombs, *files[10:]], workers=workers, finish=rows_but_killed_by_a_bomb)
    )
    assert [name for extraction in extractions for name in extraction.failed] == ["odd/bomb.py", "odd/deep.py"]
    assert sum((extraction.counts for extraction in extractions), ())[10:12] == (0, 0)
    assert [row for extraction in extractions for row in extraction.result] == [
        row for extraction in alone for row in extraction.result
    ]


@pytest.mark.slow
def test_memory_that_runs_out_while_the_parser_calls_back_is_told_as_that() -> None:
    lua = partial(read, b"a->import a\n" * 25_000, "r", "a.lua", outside=True)
    with Workers(1, memory=150 << 20) as workers, pytest.raises(TaskKilled, match="it took too much memory"):
        workers.submit(lua).result()


LEFT_OUT = {
    1_383: ["Kotlin with a wrong byte"],
    30_000: ["Python of /* by line", "Java of a<", "Java of a< in a method"],
}


@pytest.mark.slow
@pytest.mark.parametrize("size", LEFT_OUT)
def test_of_expensive_files_the_same_are_left_out_each_time(size: int) -> None:
    """Decided by work counted and memory, before any clock: `bin/fuzz extract` has more of them."""
    files = [SourceFile(name, *shape(size)) for name, shape in SHAPES.items()]
    began = sum(os.times()[:4])
    extractions = list(extract_files(files, workers=2, outside=True, finish=len))
    seconds = sum(os.times()[:4]) - began
    failed = [name.rpartition("/")[0] for extraction in extractions for name in extraction.failed]
    assert [name for name in failed if not name.startswith("notebook")] == LEFT_OUT[size]
    assert seconds < 5 * CPU_SECONDS


@pytest.mark.slow
def test_processes_killed_again_and_again_are_an_error_with_a_remedy(files: list[SourceFile]) -> None:
    with pytest.raises(NcsError, match=r"no process can read .*--workers 1"):
        list(extract_files(files, workers=2, finish=killed))


@pytest.mark.slow
def test_no_process_is_left_behind_where_finish_raises_or_the_caller_stops_early(files: list[SourceFile]) -> None:
    before = set(multiprocessing.active_children())
    with pytest.raises(ValueError, match="documents"):
        list(extract_files(files, workers=2, finish=refuses))
    extractions = extract_files(files, workers=2, finish=rows)
    next(extractions)
    extractions.close()  # type: ignore[attr-defined]
    assert set(multiprocessing.active_children()) <= before
