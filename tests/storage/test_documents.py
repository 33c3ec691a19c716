"""Documents come back from a segment as they went in, by row, by id and by filter."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.errors import IndexDamaged, NcsError
from ncs.storage.documents import DocumentTable, StoreWriter, pack
from ncs.storage.filters import Filters
from ncs.types import Document, Field, Location

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
"""Surrogates, NUL and separators too: names of files and broken sources hold them."""
ANY_WORDS = st.dictionaries(st.sampled_from(get_args(Field)), st.lists(ANY_TEXT, max_size=4).map(tuple), max_size=5)
ANY_LINE = st.integers(1, 2**31 - 1)


def document(i: int, **changes: object) -> Document:
    line, path = 10 * i + 1, f"src/File{i % 3}.java"
    place, labels = ("app", path, line, line + 5), ("java", "method", f"f{i}", f"Class.f{i}")
    words: dict[Field, tuple[str, ...]] = {"name": (f"f{i}",), "calls": ("open", "read"), "comments": ("two\nlines",)}
    code = f"void f{i}() {{\n\topen(read());\n}}\n"
    whole = Document(f"app/{path}:{line}", *place, *labels, words, code, bytes([i % 256]) * 16)
    return replace(whole, **changes)  # type: ignore[arg-type]


def write(path: Path, documents: Sequence[Document]) -> Path:
    with closing(StoreWriter(path)) as writer:
        for batch in (documents[:1], [], documents[1:]):
            writer.add([pack(document) for document in batch])
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
        document(4, copies=tuple(Location("app", "test/T.java", line, line + 5, f"T.{line}") for line in (1, 11))),
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
    """The rows that match the filters."""
    filters = Filters(language and language.lower(), repository, path)
    marked = table.mask(filters, filters.locations(several=True), np.array(dead, np.int64))
    rows: list[int] = np.flatnonzero(marked).tolist()
    return rows


ANY_DOCUMENT = st.builds(
    Document,
    **dict.fromkeys(("id", "repository", "path", "language", "kind", "name", "qualified_name", "code"), ANY_TEXT),
    **dict.fromkeys(("start_line", "end_line"), ANY_LINE),
    words=ANY_WORDS,
    digest=st.binary(max_size=16),
    test=st.booleans(),
    copies=st.lists(st.builds(Location, ANY_TEXT, ANY_TEXT, ANY_LINE, ANY_LINE, ANY_TEXT), max_size=2).map(tuple),
)


@given(documents=st.lists(ANY_DOCUMENT, max_size=5))
def test_any_document_comes_back_exactly(tmp_path_factory: pytest.TempPathFactory, documents: list[Document]) -> None:
    path = write(tmp_path_factory.mktemp("any") / "documents.sqlite", documents)
    with DocumentTable(path) as table:
        assert len(table) == len(documents)
        assert table.documents(range(len(documents))) == documents
        assert [list(d.words) for d in table.documents(range(len(documents)))] == [list(d.words) for d in documents]
        assert table.locations(range(len(documents))) == [d.location for d in documents]
        assert table.ids(range(len(documents))) == [d.id for d in documents]
        for document in documents:
            assert {documents[row].id for row in table.rows_of(document.id)} == {document.id}


def test_rows_come_in_the_order_given_and_as_often_and_an_id_has_its_row(table: DocumentTable) -> None:
    assert [d.name for d in table.documents([3, 0, 3, 1])] == ["f3", "f0", "f3", "f1"]
    assert table.ids([3, 0]) == ["any id: 7", "app/src/File0.java:1"]
    with pytest.raises(IndexDamaged, match=r"documents.sqlite has no row 5; build the index again: ncs build"):
        table.documents([0, 5])
    assert (table.rows_of("app/src/File1.java:11"), table.rows_of("any id: 7")) == ([1], [3])
    # row 3 stands at line 31 of File0, but it has an id of its own
    for id in ("app/src/File0.java:31", "app/src/File1.java:12", "app/src/File1.java:011", ""):
        assert table.rows_of(id) == []


def test_counts_are_of_documents(table: DocumentTable, tmp_path: Path) -> None:
    assert table.counts() == {
        "documents": 5,
        "repositories": {"app": 4, "owner/lib": 1},
        "languages": {"java": 4, "python": 1},
        "kinds": {"function": 1, "method": 4},
        "copies": 3,
    }
    with DocumentTable(write(tmp_path / "empty.sqlite", [])) as empty:
        assert (len(empty), empty.documents([]), mask(empty, "java")) == (0, [], [])
        assert empty.counts() == {"documents": 0, "repositories": {}, "languages": {}, "kinds": {}, "copies": 0}


@pytest.mark.parametrize(
    ("language", "repository", "path", "rows"),
    [
        ("Java", None, None, [0, 1, 3, 4]),
        ("cobol", None, None, []),
        (None, "owner/lib", None, [0, 2]),  # row 0 by its copy
        ("java", "lib", None, [0]),
        (None, "li", None, []),
        (None, None, "src", [0, 1, 3, 4]),
        (None, None, "test/*", [4]),
        (None, "lib", "src", []),  # row 0 stands in both, but no one place does
        (None, "lib", "vendor", [0]),
        ("python", "*", "*.py", [2]),
        (None, "", "", [0, 1, 2, 3, 4]),
    ],
)
def test_a_mask_marks_the_rows_that_match_every_filter_themselves_or_by_a_copy(
    table: DocumentTable, language: str | None, repository: str | None, path: str | None, rows: list[int]
) -> None:
    assert mask(table, language, repository, path) == rows


def test_a_copy_in_a_dead_file_is_neither_shown_nor_counted_nor_a_match(table: DocumentTable) -> None:
    _, places = table.files
    dead = places.index(("app", "test/T.java"))
    assert table.documents([4], frozenset([dead]))[0].copies == ()
    assert mask(table, path="test", dead=[dead]) == []
    assert table.counts(np.array([dead]))["copies"] == 1


def test_without_code_only_the_place_names_and_kind_are_on_the_disk(tmp_path: Path) -> None:
    original = document(5)
    path = tmp_path / "documents.sqlite"
    with closing(StoreWriter(path)) as writer:
        writer.add([pack(original, code=False)])
        writer.finish()
    with DocumentTable(path) as table:
        assert table.documents([0]) == [replace(original, words={}, code="", digest=b"")]
    assert original.digest not in path.read_bytes()


def test_a_folder_may_have_any_name_and_is_read_without_writing_to_it(tmp_path: Path) -> None:
    forbidden = {ord(sign): None for sign in '?"'} if os.name == "nt" else {}
    folder = tmp_path / "with space a?b#c%20d ünï quote'\" semi;colon&x=1".translate(forbidden)
    folder.mkdir()
    write(folder / "documents.sqlite", [document(0)]).chmod(0o444)
    folder.chmod(0o555)
    with DocumentTable(folder / "documents.sqlite") as table:
        assert table.documents([0]) == [document(0)]
        assert [path.name for path in folder.iterdir()] == ["documents.sqlite"]
    folder.chmod(0o755)


def test_several_threads_read_one_table(tmp_path: Path) -> None:
    documents = [document(i) for i in range(100)]

    def read(table: DocumentTable, seed: int) -> bool:
        rows = random.Random(seed).sample(range(100), 3)
        return table.documents(rows) == [documents[row] for row in rows]

    with DocumentTable(write(tmp_path / "documents.sqlite", documents)) as table, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(partial(read, table), range(500)))


def test_no_file_another_file_another_database_and_an_unfinished_table_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "documents.sqlite"
    for content in (None, b"", b"not a database, but long enough to have a header of a hundred bytes" * 9):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(IndexDamaged, match=r"documents.sqlite is damaged \(.*\); build the index again: ncs build"):
            DocumentTable(path)
    path.unlink()
    with closing(StoreWriter(path)) as writer:
        writer.add([pack(document(0))])
    with pytest.raises(IndexDamaged):
        DocumentTable(path)


def test_a_damaged_table_gives_answers_or_index_damaged_but_no_other_error(tmp_path: Path) -> None:
    rows, order, path = 400, random.Random(7), tmp_path / "changed.sqlite"
    whole = write(tmp_path / "documents.sqlite", [document(i) for i in range(rows)]).read_bytes()
    reads: list[Callable[[DocumentTable], object]] = [
        lambda table: table.documents(range(rows)),
        lambda table: table.ids(range(rows)),
        lambda table: mask(table, "java", "app*", "src"),
        lambda table: table.rows_of("app/src/File1.java:11"),
        lambda table: table.counts(),
    ]

    def is_damaged(content: bytes) -> bool:
        path.write_bytes(content)
        damaged = len(reads)
        for read in reads:
            with suppress(IndexDamaged), DocumentTable(path) as table:
                read(table)
                damaged -= 1
        return damaged > 0

    assert all(is_damaged(whole[: int(share * len(whole))]) for share in (0.0001, 0.1, 0.5, 0.9))
    damaged = 0
    for _ in range(30):
        changed = bytearray(whole)
        page = order.randrange(len(whole) // 8192) * 8192
        for _ in range(order.randrange(1, 30)):
            changed[page + order.randrange(300)] = order.randrange(256)
        damaged += is_damaged(bytes(changed))
    assert damaged > 5


def test_a_table_is_not_written_over_nor_without_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "documents.sqlite", [document(0)])
    with pytest.raises(NcsError, match=r"cannot write .*documents.sqlite"):
        StoreWriter(path)
    with DocumentTable(path) as table:
        assert len(table) == 1
    with pytest.raises(NcsError, match=r"cannot write .*: unable to open database file; free some space"):
        StoreWriter(tmp_path / "none" / "documents.sqlite")


def test_code_that_repeats_itself_is_not_taken_for_damage(tmp_path: Path) -> None:
    """It packs a thousand times smaller: a build of forty such functions said that its own index was damaged."""
    code = "f()\n" * 250_000
    with DocumentTable(write(tmp_path / "documents.sqlite", [document(i, code=code) for i in range(40)])) as table:
        assert {each.code for each in table.documents(range(40))} == {code}
