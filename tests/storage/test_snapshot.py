"""Opening an index folder: what is whole opens, all else is named with its remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncs.errors import IndexDamaged, IndexFolderError, IndexNotFound, IndexVersion, NcsError
from ncs.storage import snapshot as snapshots
from ncs.storage.snapshot import DEFAULT_NAME, Snapshot, checksum, find_index, open_snapshot, read_description
from tests.snapshots import alter
from tests.storage.small_index import build, text_of


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "my index"
    build(folder)
    return folder


def open_text(folder: Path, *, verify: bool = False) -> str:
    return open_snapshot(folder, text_of, verify=verify)


@pytest.mark.parametrize(
    ("folder", "file", "error", "message"),
    [
        ("none", "file", IndexNotFound, r"no index at .*/none; make one with: ncs build SOURCES -i .*/none"),
        (".", "", IndexNotFound, "make one with: ncs build"),
        ("file", "file", IndexNotFound, "file is not a folder; name an index folder with -i"),
        (".", "file", IndexDamaged, "has no snapshot.json and is not an index; name another"),
        (
            ".",
            "ncs.lock",
            IndexDamaged,
            "its build has not ended .wait for it., or an older ncs made it; build the index again: ncs build",
        ),
    ],
)
def test_what_is_no_index_says_why_and_the_remedy(
    tmp_path: Path, folder: str, file: str, error: type[NcsError], message: str
) -> None:
    if file:
        (tmp_path / file).touch()
    with pytest.raises(error, match=message):
        open_text(tmp_path / folder)


KEYS = ("number", "created", "statistics", "segments", "config", "counts", "notes", "files")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[1]", b"\xff\xfe", b'{"name": "a page"}', b'{"format": true}', b'{"format": 3}', b"[" * 10**5),
        *({key: 3.5} for key in KEYS),
        *({"segments": [[name, 3]]} for name in ("..", "../other/000001", "000001/..", "1", "00000a", "")),
        {"statistics": "../other/000001"},
        {"tombstones": "../secret"},
        {"segments": [["000001", -1]]},
        {"segments": []},
    ],
)
def test_a_garbled_snapshot_or_one_that_names_other_folders_is_damaged(
    index: Path, content: bytes | dict[str, object]
) -> None:
    if isinstance(content, bytes):
        (index / "snapshot.json").write_bytes(content)
    else:
        alter(index, lambda description: description.update(content))
    with pytest.raises(
        IndexDamaged, match=r"my index/snapshot.json is damaged \(.*\); build the index again: ncs build"
    ):
        open_text(index)


def test_whatever_bytes_of_a_snapshot_change_it_opens_or_is_one_of_our_errors(index: Path) -> None:
    whole = (index / "snapshot.json").read_bytes()

    @settings(max_examples=150)
    @given(start=st.integers(0, len(whole) - 1), length=st.integers(0, 3), instead=st.binary(max_size=3))
    def opens_or_is_refused(start: int, length: int, instead: bytes) -> None:
        (index / "snapshot.json").write_bytes(whole[:start] + instead + whole[start + length :])
        message = f"{index} build the index again: ncs build"
        try:
            assert open_text(index, verify=True) == "one"
        except IndexFolderError as error:
            message = str(error)
        assert str(index) in message
        assert "\n" not in message
        assert re.search("build (it again with: ncs build|the index again)", message)

    opens_or_is_refused()


def test_unknown_keys_are_ignored_and_another_format_is_refused(index: Path) -> None:
    before = read_description(index)
    alter(index, lambda description: description.update(shards=[1, 2]))
    assert read_description(index) == before
    (index / "snapshot.json").write_text('{"format": 7, "segments": "elsewhere"}')
    with pytest.raises(
        IndexVersion, match=r"index .*my index has format 7, this ncs reads 3; build the index again: ncs build SOURCES"
    ):
        open_text(index)


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "bm25/../../secret", "", "..", "C:\\x", "a\\..\\b", "a\0", "a\nb"]
)
def test_a_snapshot_that_leads_outside_the_folder_is_refused(index: Path, path: str) -> None:
    (index / "secret").write_text("x")
    alter(index, lambda description: description.update(files={path: checksum(index / "secret")}))
    with pytest.raises(IndexDamaged, match="names a file outside the folder"):
        open_text(index)


def test_missing_truncated_and_altered_files_are_named(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, documents = (index / "segments" / "000001" / name for name in ("bm25/rows.npy", "documents.sqlite"))
    monkeypatch.setattr(snapshots, "QUICK_BYTES", 33)  # the files of 3 bytes come first, then not all of 30
    rows.write_text("two" * 10)
    assert open_text(index) == "one"
    with pytest.raises(IndexDamaged, match=r"rows.npy was altered"):
        open_text(index, verify=True)
    for content, message in (("one", "has 3 bytes instead of 30"), (None, "is missing")):
        rows.write_text(content) if content else rows.unlink()
        with pytest.raises(IndexDamaged, match=f"segments/000001/bm25/rows.npy {message}; build the index again: ncs"):
            open_text(index)
    rows.write_text("one" * 10)
    documents.write_text("two")
    with pytest.raises(IndexDamaged, match=r"documents.sqlite was altered; build the index again"):
        open_text(index)
    documents.unlink()
    documents.mkdir()
    with pytest.raises(IndexDamaged, match=r"documents.sqlite"):
        open_text(index)


def test_opening_takes_the_new_snapshot_where_a_commit_came_between(index: Path) -> None:
    numbers: list[int] = []

    def load(snapshot: Snapshot) -> str:
        numbers.append(snapshot.description.number)
        if len(numbers) == 1:
            snapshot.close()
            build(index, "two")
        return text_of(snapshot)

    assert open_snapshot(index, load) == "two"
    assert len(numbers) == 2

    def fail(snapshot: Snapshot) -> None:
        numbers.append(0)
        raise NcsError("no such ranker")

    with pytest.raises(NcsError, match="no such ranker"):  # not tried again
        open_snapshot(index, fail)
    assert len(numbers) == 3


def test_the_nearest_index_above_is_found(tmp_path: Path) -> None:
    near = tmp_path / "a" / "b"
    build(tmp_path / DEFAULT_NAME)
    build(near / DEFAULT_NAME)
    (near / "c" / DEFAULT_NAME).mkdir(parents=True)  # what is not complete is passed by
    assert find_index(near / "c") == find_index(near) == near / DEFAULT_NAME
    assert find_index(tmp_path / "a") == tmp_path / DEFAULT_NAME
    with pytest.raises(IndexNotFound, match=r"no index in /dev or above; make one with: ncs build \."):
        find_index(Path("/dev"))
