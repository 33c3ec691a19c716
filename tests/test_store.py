"""Documents come back from the store as they went in, by row, by id and by filter."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncs.errors import IndexDamaged, NcsError
from ncs.storage.documents import Store
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
        writer.add([pack(document, code=code) for document in documents])
        for row, added in enumerate(documents):
            for copy in added.copies:
                writer.add_copy(row, copy)
        writer.finish()
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    documents = [
        document(0, copies=(Location("owner/lib", "vendor/File.java", 5, 10, "Vendor.f0"),)),
        document(1),
        document(2, repository="owner/lib", path="lib/a.py", language="python", kind="function"),
        document(3, id="any id: 7"),
        document(
            4, copies=(Location("app", "test/T.java", 1, 6, "T.a"), Location("app", "test/T.java", 11, 16, "T.b"))
        ),
    ]
    with Store(write(tmp_path / "documents.sqlite", documents)) as opened:
        yield opened


@settings(max_examples=300, deadline=None)
@given(code=ANY_TEXT, words=ANY_WORDS)
def test_any_code_and_words_come_back_exactly(code: str, words: dict[Field, tuple[str, ...]]) -> None:
    assert unpack_body(pack_body(code, words)) == (code, words)
    assert list(unpack_body(pack_body(code, words))[1]) == list(words)


@settings(max_examples=60, deadline=None)
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
    with Store(path) as store:
        assert len(store) == len(documents)
        assert store.documents(range(len(documents))) == documents
        assert store.locations(range(len(documents))) == [d.location for d in documents]
        assert store.ids(range(len(documents))) == [d.id for d in documents]
        for row, expected in enumerate(documents):
            found = store.row_of(expected.id)
            assert found is not None
            assert documents[found].id == documents[row].id


def test_rows_come_in_the_order_asked_for_and_as_often(store: Store) -> None:
    assert [d.name for d in store.documents([3, 0, 3, 1])] == ["f3", "f0", "f3", "f1"]
    assert store.ids([3, 0]) == ["any id: 7", "app/src/File0.java:1"]
    assert store.documents([]) == []


def test_a_row_that_is_not_there_is_damage(store: Store) -> None:
    with pytest.raises(IndexDamaged, match=r"documents.sqlite has no row 5; build the index again with: ncs build"):
        store.documents([0, 5])


def test_an_id_finds_its_row(store: Store) -> None:
    assert store.row_of("app/src/File1.java:11") == 1
    assert store.row_of("any id: 7") == 3
    assert store.row_of("app/src/File1.java:12") is None
    assert store.row_of("app/src/File0.java:31") is None  # where row 3 stands, but it has an id of its own
    assert store.row_of("app/src/File1.java:011") is None
    assert store.row_of("no such id") is None
    assert store.row_of("") is None


def test_rows_are_numbered_over_all_batches(tmp_path: Path) -> None:
    documents = [document(i) for i in range(7)]
    with StoreWriter(tmp_path / "documents.sqlite") as writer:
        for batch in (documents[:3], [], documents[3:4], documents[4:]):
            writer.add([pack(document) for document in batch])
        assert len(writer) == 7
        writer.finish()
    with Store(tmp_path / "documents.sqlite") as store:
        assert store.documents(range(7)) == documents


def test_an_empty_store_opens(tmp_path: Path) -> None:
    with Store(write(tmp_path / "documents.sqlite", [])) as store:
        assert len(store) == 0
        assert store.documents([]) == []
        mask = store.mask("java")
        assert mask is not None
        assert mask.tolist() == []
        assert store.counts == {"repositories": {}, "languages": {}, "kinds": {}, "copies": 0}


def test_counts_are_of_documents_and_in_order_of_names(store: Store) -> None:
    assert store.counts == {
        "repositories": {"app": 4, "owner/lib": 1},
        "languages": {"java": 4, "python": 1},
        "kinds": {"function": 1, "method": 4},
        "copies": 3,
    }
    assert list(store.counts["kinds"]) == ["function", "method"]


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
    store: Store, language: str | None, repository: str | None, path: str | None, rows: list[int]
) -> None:
    mask = store.mask(language, repository, path)
    assert mask is not None
    assert mask.dtype == bool
    assert mask.nonzero()[0].tolist() == rows
    for found in store.documents(rows) if repository or path else ():
        shown = store.shown_at(found, repository, path)
        assert shown.location == store.matching_location(found, repository, path)


def test_without_filters_there_is_no_mask(store: Store) -> None:
    assert store.mask(None, None, None) is None


@pytest.mark.parametrize("packed_with_code", [True, False])
def test_without_code_only_the_place_names_and_kind_are_on_the_disk(tmp_path: Path, packed_with_code: bool) -> None:
    kept = document(5)
    path = tmp_path / "documents.sqlite"
    with StoreWriter(path, code=False) as writer:
        writer.add([pack(kept, code=packed_with_code)])
        writer.finish()
    with Store(path) as store:
        assert store.document(0) == replace(kept, words={}, code="", digest=b"")
    assert kept.digest not in path.read_bytes()


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    documents = [document(i) for i in range(300)]
    first, second = (write(tmp_path / name, documents).read_bytes() for name in ("a", "b"))
    assert first == second


@pytest.mark.parametrize("name", ["with space", "a?b#c%20d", "ünï", "quote'\"", "semi;colon&x=1"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with Store(write(tmp_path / name / "documents.sqlite", [document(0)])) as store:
        assert store.document(0) == document(0)
    assert [path.name for path in (tmp_path / name).iterdir()] == ["documents.sqlite"]


def test_a_store_is_read_without_writing_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path / "documents.sqlite", [document(0)])
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with Store(path) as store:
            assert store.document(0) == document(0)
            assert [found.name for found in tmp_path.iterdir()] == ["documents.sqlite"]
    finally:
        tmp_path.chmod(0o755)


def test_several_threads_read_one_store(tmp_path: Path) -> None:
    documents = [document(i) for i in range(100)]

    def read(store: Store, seed: int) -> bool:
        rows = random.Random(seed).sample(range(100), 3)
        return store.documents(rows) == [documents[row] for row in rows]

    with Store(write(tmp_path / "documents.sqlite", documents)) as store, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(partial(read, store), range(2000)))


def test_a_store_that_is_open_stays_readable_when_its_file_is_removed(tmp_path: Path) -> None:
    documents = [document(i) for i in range(2000)]
    path = write(tmp_path / "documents.sqlite", documents)
    with Store(path) as store:
        path.unlink()
        assert store.documents(range(2000)) == documents


@pytest.mark.parametrize(
    "content", [None, b"", b"not a database, but long enough to have a header of a hundred bytes" * 9]
)
def test_what_is_no_store_is_named_with_the_remedy(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "documents.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        IndexDamaged, match=r"documents.sqlite is damaged \(.*\); build the index again with: ncs build"
    ):
        Store(path)


def test_another_database_is_no_store(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "documents.sqlite")
    other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    with pytest.raises(IndexDamaged, match="no such table"):
        Store(tmp_path / "documents.sqlite")


def test_an_unfinished_store_is_refused(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "documents.sqlite") as writer:
        writer.add([pack(document(0))])
    with pytest.raises(IndexDamaged):
        Store(tmp_path / "documents.sqlite")


def is_damaged(read: Callable[[], object]) -> bool:
    """Whether reading fails with IndexDamaged; any other error is a failure of the test."""
    try:
        read()
    except IndexDamaged:
        return True
    return False


def ways_damaged(path: Path, rows: int) -> int:
    """How many ways to read a store find it damaged."""
    if is_damaged(lambda: Store(path).close()):
        return 1
    with Store(path) as store:
        ways: list[Callable[[], object]] = [
            lambda: store.documents(range(rows)),
            lambda: store.locations(range(rows)),
            lambda: store.ids(range(rows)),
            lambda: store.mask("java", "app*", "src"),
            lambda: store.row_of("app/src/File1.java:11"),
            lambda: store.counts,
        ]
        return sum(map(is_damaged, ways))


def test_a_damaged_store_gives_answers_or_index_damaged_but_no_other_error(tmp_path: Path) -> None:
    rows = 400
    whole = write(tmp_path / "documents.sqlite", [document(i) for i in range(rows)]).read_bytes()
    order = random.Random(7)
    damaged = 0
    for _ in range(60):
        changed = bytearray(whole)
        page = order.randrange(len(whole) // 8192) * 8192
        for _ in range(order.randrange(1, 30)):
            changed[page + order.randrange(300)] = order.randrange(256)
        (tmp_path / "changed.sqlite").write_bytes(changed)
        damaged += bool(ways_damaged(tmp_path / "changed.sqlite", rows))
    assert damaged > 20


@pytest.mark.parametrize("share", [0.0001, 0.1, 0.5, 0.9])
def test_a_truncated_store_is_damaged(tmp_path: Path, share: float) -> None:
    whole = write(tmp_path / "documents.sqlite", [document(i) for i in range(400)]).read_bytes()
    (tmp_path / "documents.sqlite").write_bytes(whole[: int(share * len(whole))])
    assert ways_damaged(tmp_path / "documents.sqlite", 400) > 0


def test_a_store_is_not_written_over(tmp_path: Path) -> None:
    path = write(tmp_path / "documents.sqlite", [document(0)])
    with pytest.raises(NcsError, match=r"cannot write .*documents.sqlite"):
        StoreWriter(path)
    with Store(path) as store:
        assert len(store) == 1


def test_a_store_cannot_be_written_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NcsError, match=r"cannot write .*: unable to open database file; free some space"):
        StoreWriter(tmp_path / "none" / "documents.sqlite")
