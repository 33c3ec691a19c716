"""Documents come back from a segment as they went in, by row, by id and by filter."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncs.errors import IndexDamaged, NcsError
from ncs.storage.documents import DocumentTable
from ncs.storage.documents_writer import StoreWriter
from ncs.storage.packing import pack, pack_body, unpack_body
from ncs.types import Document, Field, Location

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
"""Surrogates, NUL and separators too: names of files and broken sources hold them."""
ANY_WORDS = st.dictionaries(st.sampled_from(get_args(Field)), st.lists(ANY_TEXT, max_size=4).map(tuple), max_size=5)
ANY_LINE = st.integers(1, 2**31 - 1)


def document(i: int, **changes: object) -> Document:
    line = 10 * i + 1
    made = Document(
        f"app/src/File{i % 3}.java:{line}",
        "app",
        f"src/File{i % 3}.java",
        line,
        line + 5,
        "java",
        "method",
        f"f{i}",
        f"Class.f{i}",
        {"name": (f"f{i}",), "calls": ("open", "read"), "comments": ("two\nlines",)},
        f"void f{i}() {{\n\topen(read());\n}}\n",
        bytes([i % 256]) * 16,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def write(path: Path, documents: Sequence[Document], *, code: bool = True) -> Path:
    with StoreWriter(path, code=code) as writer:
        for batch in (documents[:1], [], documents[1:]):
            writer.add([pack(document, code=code) for document in batch])
        for row, added in enumerate(documents):
            for copy in added.copies:
                writer.add_copy(row, copy)
        writer.finish()
    return path


@pytest.fixture
def table(tmp_path: Path) -> Iterator[DocumentTable]:
    documents = [
        document(0, copies=(Location("owner/lib", "vendor/File.java", 5, 10, "Vendor.f0"),)),
        document(1),
        document(2, repository="owner/lib", path="lib/a.py", language="python", kind="function"),
        document(3, id="any id: 7"),
        document(
            4, copies=(Location("app", "test/T.java", 1, 6, "T.a"), Location("app", "test/T.java", 11, 16, "T.b"))
        ),
    ]
    with DocumentTable(write(tmp_path / "documents.sqlite", documents)) as opened:
        yield opened


def mask(
    table: DocumentTable,
    language: str | None = None,
    repository: str | None = None,
    path: str | None = None,
    dead: Sequence[int] = (),
) -> list[int]:
    """The rows that meet the filters."""
    found = table.mask(language, repository, path, None, np.array(dead, np.int64))
    assert found.dtype == bool
    rows: list[int] = np.flatnonzero(found).tolist()
    return rows


@settings(max_examples=100, deadline=None)
@given(code=ANY_TEXT, words=ANY_WORDS)
def test_any_code_and_words_come_back_exactly(code: str, words: dict[Field, tuple[str, ...]]) -> None:
    assert unpack_body(pack_body(code, words)) == (code, words)
    assert list(unpack_body(pack_body(code, words))[1]) == list(words)


@settings(max_examples=30, deadline=None)
@given(
    documents=st.lists(
        st.builds(
            Document,
            id=ANY_TEXT,
            repository=ANY_TEXT,
            path=ANY_TEXT,
            start_line=ANY_LINE,
            end_line=ANY_LINE,
            language=st.sampled_from(["java", "python"]),
            kind=ANY_TEXT,
            name=ANY_TEXT,
            qualified_name=ANY_TEXT,
            words=ANY_WORDS,
            code=ANY_TEXT,
            digest=st.binary(max_size=16),
            copies=st.lists(st.builds(Location, ANY_TEXT, ANY_TEXT, ANY_LINE, ANY_LINE, ANY_TEXT), max_size=2).map(
                tuple
            ),
        ),
        max_size=5,
    )
)
def test_any_document_comes_back_exactly(tmp_path_factory: pytest.TempPathFactory, documents: list[Document]) -> None:
    path = write(tmp_path_factory.mktemp("any") / "documents.sqlite", documents)
    with DocumentTable(path) as table:
        assert len(table) == len(documents)
        assert table.documents(range(len(documents))) == documents
        assert table.locations(range(len(documents))) == [d.location for d in documents]
        assert table.ids(range(len(documents))) == [d.id for d in documents]
        for document in documents:
            assert {documents[row].id for row in table.rows_of(document.id)} == {document.id}


def test_rows_come_in_the_order_asked_for_and_as_often(table: DocumentTable) -> None:
    assert [d.name for d in table.documents([3, 0, 3, 1])] == ["f3", "f0", "f3", "f1"]
    assert table.ids([3, 0]) == ["any id: 7", "app/src/File0.java:1"]
    assert table.documents([]) == []
    with pytest.raises(IndexDamaged, match=r"documents.sqlite has no row 5; build the index again with: ncs build"):
        table.documents([0, 5])


def test_an_id_finds_its_row(table: DocumentTable) -> None:
    assert table.rows_of("app/src/File1.java:11") == [1]
    assert table.rows_of("any id: 7") == [3]
    assert table.rows_of("app/src/File1.java:12") == []
    assert table.rows_of("app/src/File0.java:31") == []  # where row 3 stands, but it has an id of its own
    assert table.rows_of("app/src/File1.java:011") == []
    assert table.rows_of("no such id") == []
    assert table.rows_of("") == []


def test_counts_are_of_documents_and_in_order_of_names(table: DocumentTable, tmp_path: Path) -> None:
    assert table.counts == {
        "repositories": {"app": 4, "owner/lib": 1},
        "languages": {"java": 4, "python": 1},
        "kinds": {"function": 1, "method": 4},
        "copies": 3,
    }
    assert list(table.counts["kinds"]) == ["function", "method"]
    with DocumentTable(write(tmp_path / "empty.sqlite", [])) as empty:
        assert (len(empty), empty.documents([]), mask(empty, "java")) == (0, [], [])
        assert empty.counts == {"repositories": {}, "languages": {}, "kinds": {}, "copies": 0}


@pytest.mark.parametrize(
    ("language", "repository", "path", "rows"),
    [
        ("java", None, None, [0, 1, 3, 4]),
        ("Python", None, None, [2]),
        ("cobol", None, None, []),
        (None, "owner/lib", None, [0, 2]),  # row 0 by its copy
        (None, "lib", None, [0, 2]),
        ("java", "lib", None, [0]),
        (None, "li", None, []),
        (None, None, "src", [0, 1, 3, 4]),
        (None, None, "test/*", [4]),
        (None, None, "File1.java", [1, 4]),
        (None, "lib", "src", []),  # row 0 stands in both, but no one place does
        (None, "lib", "vendor", [0]),
        ("python", "*", "*.py", [2]),
        (None, "", "", [0, 1, 2, 3, 4]),
    ],
)
def test_a_mask_marks_the_rows_that_meet_every_filter_themselves_or_by_a_copy(
    table: DocumentTable, language: str | None, repository: str | None, path: str | None, rows: list[int]
) -> None:
    assert mask(table, language, repository, path) == rows


def test_a_copy_in_a_dead_file_is_neither_shown_nor_a_reason_to_be_found(table: DocumentTable) -> None:
    _, places = table.files()
    dead = places.index(("app", "test/T.java"))
    assert table.documents([4], frozenset([dead]))[0].copies == ()
    assert mask(table, path="test", dead=[dead]) == []
    assert table.live_counts(np.array([dead]))["copies"] == 1


@pytest.mark.parametrize("packed_with_code", [True, False])
def test_without_code_only_the_place_names_and_kind_are_on_the_disk(tmp_path: Path, packed_with_code: bool) -> None:
    kept = document(5)
    path = tmp_path / "documents.sqlite"
    with StoreWriter(path, code=False) as writer:
        writer.add([pack(kept, code=packed_with_code)])
        writer.finish()
    with DocumentTable(path) as table:
        assert table.documents([0]) == [replace(kept, words={}, code="", digest=b"")]
    assert kept.digest not in path.read_bytes()


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    documents = [document(i) for i in range(300)]
    first, second = (write(tmp_path / name, documents).read_bytes() for name in ("a", "b"))
    assert first == second


@pytest.mark.parametrize("name", ["with space", "a?b#c%20d", "ünï", "quote'\"", "semi;colon&x=1"])
def test_a_folder_may_have_any_name_and_is_read_without_writing_to_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    write(folder / "documents.sqlite", [document(0)]).chmod(0o444)
    folder.chmod(0o555)
    try:
        with DocumentTable(folder / "documents.sqlite") as table:
            assert table.documents([0]) == [document(0)]
            assert [path.name for path in folder.iterdir()] == ["documents.sqlite"]
    finally:
        folder.chmod(0o755)


def test_several_threads_read_one_table(tmp_path: Path) -> None:
    documents = [document(i) for i in range(100)]

    def read(table: DocumentTable, seed: int) -> bool:
        rows = random.Random(seed).sample(range(100), 3)
        return table.documents(rows) == [documents[row] for row in rows]

    with DocumentTable(write(tmp_path / "documents.sqlite", documents)) as table, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(partial(read, table), range(2000)))


def test_a_table_that_is_open_stays_readable_when_its_file_is_removed(tmp_path: Path) -> None:
    documents = [document(i) for i in range(2000)]
    path = write(tmp_path / "documents.sqlite", documents)
    with DocumentTable(path) as table:
        path.unlink()
        assert table.documents(range(2000)) == documents


@pytest.mark.parametrize(
    "content", [None, b"", b"not a database, but long enough to have a header of a hundred bytes" * 9]
)
def test_what_is_no_table_is_named_with_the_remedy(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "documents.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        IndexDamaged, match=r"documents.sqlite is damaged \(.*\); build the index again with: ncs build"
    ):
        DocumentTable(path)


def test_another_database_and_an_unfinished_table_are_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    with StoreWriter(tmp_path / "documents.sqlite") as writer:
        writer.add([pack(document(0))])
    for name in ("other.sqlite", "documents.sqlite"):
        with pytest.raises(IndexDamaged):
            DocumentTable(tmp_path / name)


def damaged_reads(path: Path, rows: int) -> int:
    """How many ways to read a table find it damaged; any other error fails the test."""
    reads: list[Callable[[DocumentTable], object]] = [
        lambda table: table.documents(range(rows)),
        lambda table: table.locations(range(rows)),
        lambda table: table.ids(range(rows)),
        lambda table: mask(table, "java", "app*", "src"),
        lambda table: table.rows_of("app/src/File1.java:11"),
        lambda table: table.counts,
    ]
    damaged = 0
    for read in reads:
        damaged += 1
        with suppress(IndexDamaged), DocumentTable(path) as table:
            read(table)
            damaged -= 1
    return damaged


def test_a_damaged_table_gives_answers_or_index_damaged_but_no_other_error(tmp_path: Path) -> None:
    rows, order, path = 400, random.Random(7), tmp_path / "changed.sqlite"
    whole = write(tmp_path / "documents.sqlite", [document(i) for i in range(rows)]).read_bytes()
    for share in (0.0001, 0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        assert damaged_reads(path, rows) > 0
    damaged = 0
    for _ in range(60):
        changed = bytearray(whole)
        page = order.randrange(len(whole) // 8192) * 8192
        for _ in range(order.randrange(1, 30)):
            changed[page + order.randrange(300)] = order.randrange(256)
        path.write_bytes(changed)
        damaged += damaged_reads(path, rows) > 0
    assert damaged > 20


def test_a_table_is_neither_written_over_nor_without_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "documents.sqlite", [document(0)])
    with pytest.raises(NcsError, match=r"cannot write .*documents.sqlite"):
        StoreWriter(path)
    with DocumentTable(path) as table:
        assert len(table) == 1
    with pytest.raises(NcsError, match=r"cannot write .*: unable to open database file; free some space"):
        StoreWriter(tmp_path / "none" / "documents.sqlite")
