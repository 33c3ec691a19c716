"""Opening an index folder: what is whole opens, all else is named with its remedy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncs.errors import IndexDamaged, IndexFolderError, IndexNotFound, IndexVersion, NcsError
from ncs.storage import snapshot as snapshots
from ncs.storage.snapshot import DEFAULT_NAME, Snapshot, checksum, find_index, open_snapshot, read_description
from tests.storage.made import build, text_of


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "my index"
    build(folder)
    return folder


def open_text(folder: Path, *, verify: bool = False) -> str:
    return open_snapshot(folder, text_of, verify=verify)


def rewrite(index: Path, **changes: Any) -> None:
    path = index / "snapshot.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_what_is_no_index_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match=r"no index at .*/none; make one with: ncs build <sources> -i .*/none"):
        open_text(tmp_path / "none")
    with pytest.raises(IndexNotFound, match="make one with: ncs build"):
        open_text(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexNotFound, match="file is not a folder; name an index folder with -i"):
        open_text(tmp_path / "file")
    with pytest.raises(IndexDamaged, match=f"{tmp_path} has no snapshot.json and is not an index; name another"):
        open_text(tmp_path)


def test_an_index_of_the_old_format_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 2, "generation": "data-1"}')
    with pytest.raises(IndexVersion, match=r"has an older format, this ncs reads 3; build it again with: ncs build"):
        open_text(tmp_path)


def test_an_index_whose_first_build_has_not_ended_says_so(tmp_path: Path) -> None:
    (tmp_path / "ncs.lock").touch()
    with pytest.raises(IndexDamaged, match="its build has not ended; wait for it or build it again with: ncs build"):
        open_text(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[1]",
        b"\xff\xfe",
        b'{"name": "a page"}',
        b'{"format": true}',
        b'{"format": 3}',
        b"[" * 10**5,
    ],
)
def test_a_garbled_snapshot_is_named_with_the_remedy(index: Path, content: bytes) -> None:
    (index / "snapshot.json").write_bytes(content)
    with pytest.raises(IndexDamaged, match=r"my index/snapshot.json is damaged \(.*\); build it again with: ncs build"):
        open_text(index)


def test_whatever_bytes_of_a_snapshot_change_it_opens_or_is_one_of_our_errors(index: Path) -> None:
    whole = (index / "snapshot.json").read_bytes()

    @settings(max_examples=300, deadline=None)
    @given(start=st.integers(0, len(whole) - 1), length=st.integers(0, 3), instead=st.binary(max_size=3))
    def opens_or_is_refused(start: int, length: int, instead: bytes) -> None:
        (index / "snapshot.json").write_bytes(whole[:start] + instead + whole[start + length :])
        refused = ""
        try:
            assert open_text(index, verify=True) == "one"
        except IndexFolderError as error:
            refused = str(error)
        if refused:
            assert str(index) in refused
            assert "\n" not in refused
            assert "build it again with: ncs build" in refused

    opens_or_is_refused()


@pytest.mark.parametrize("key", ["number", "created", "statistics", "segments", "config", "counts", "notes", "files"])
def test_a_snapshot_without_a_key_or_with_the_wrong_kind_is_damaged(index: Path, key: str) -> None:
    rewrite(index, **{key: 3.5})
    with pytest.raises(IndexDamaged, match=r"snapshot.json is damaged"):
        open_text(index)


def test_keys_of_a_later_program_with_the_same_format_are_passed_over(index: Path) -> None:
    before = read_description(index)
    rewrite(index, shards=[1, 2])
    assert read_description(index) == before


def test_another_format_is_refused_with_both_numbers_and_the_remedy(index: Path) -> None:
    (index / "snapshot.json").write_text('{"format": 7, "segments": "elsewhere"}')
    with pytest.raises(
        IndexVersion, match=r"index .*my index has format 7, this ncs reads 3; build it again with: ncs build <sources>"
    ):
        open_text(index)


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "bm25/../../secret", "", "..", "C:\\x", "a\\..\\b", "a\0", "a\nb"]
)
def test_a_snapshot_that_leads_outside_the_folder_is_refused(index: Path, path: str) -> None:
    (index / "secret").write_text("x")
    rewrite(index, files={path: checksum(index / "secret")})
    with pytest.raises(IndexDamaged, match="names a file outside the folder"):
        open_text(index)


@pytest.mark.parametrize("name", ["..", ".", "../other/000001", "000001/..", "1", "00000a", ""])
def test_a_segment_outside_the_folder_is_refused(index: Path, name: str) -> None:
    damages: list[dict[str, object]] = [{"segments": [[name, 3]]}, {"statistics": name}]
    damages += [{"segments": [["000001", -1]]}, {"segments": []}]
    for changes in damages:
        build(index)
        rewrite(index, **changes)
        with pytest.raises(IndexDamaged, match=r"snapshot.json is damaged"):
            open_text(index)


def test_missing_truncated_and_altered_files_are_named(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, documents = (index / "segments" / "000001" / name for name in ("bm25/rows.npy", "documents.sqlite"))
    monkeypatch.setattr(snapshots, "QUICK_BYTES", 33)  # the files of 3 bytes come first, then not all of 30
    rows.write_text("two" * 10)
    assert open_text(index) == "one"
    with pytest.raises(IndexDamaged, match=r"rows.npy was altered"):
        open_text(index, verify=True)
    rows.write_text("one")
    with pytest.raises(IndexDamaged, match=r"rows.npy has 3 bytes instead of 30; build it again"):
        open_text(index)
    rows.unlink()
    with pytest.raises(IndexDamaged, match=r"segments/000001/bm25/rows.npy is missing; build it again with: ncs build"):
        open_text(index)
    rows.write_text("one" * 10)
    documents.write_text("two")
    with pytest.raises(IndexDamaged, match=r"documents.sqlite was altered; build it again"):
        open_text(index)
    documents.unlink()
    documents.mkdir()
    with pytest.raises(IndexDamaged, match=r"documents.sqlite"):
        open_text(index)
    shutil.rmtree(index / "segments")
    with pytest.raises(IndexDamaged, match="is missing; build it again"):
        open_text(index)


def test_a_moved_or_copied_index_opens(index: Path, tmp_path: Path) -> None:
    shutil.copytree(index, tmp_path / "copy")
    shutil.move(index, tmp_path / "moved")
    assert open_text(tmp_path / "copy", verify=True) == open_text(tmp_path / "moved", verify=True) == "one"


def test_opening_takes_the_new_snapshot_where_a_commit_came_between(index: Path) -> None:
    numbers: list[int] = []

    def load(snapshot: Snapshot) -> str:
        numbers.append(snapshot.description.number)
        if len(numbers) == 1:
            snapshot.close()
            build(index, "two")
        return text_of(snapshot)

    assert open_snapshot(index, load) == "two"
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 2


def test_opening_does_not_repeat_what_fails_for_another_reason(index: Path) -> None:
    tries: list[Snapshot] = []

    def load(snapshot: Snapshot) -> None:
        tries.append(snapshot)
        raise NcsError("no such ranker")

    with pytest.raises(NcsError, match="no such ranker"):
        open_snapshot(index, load)
    assert len(tries) == 1


def test_rows_of_dead_files_are_tombstones_and_rows_are_split_by_segment(tmp_path: Path) -> None:
    from ncs.storage.commit import open_writer
    from ncs.storage.snapshot import SEGMENTS, STATISTICS
    from tests.storage.made import dead

    with open_writer(tmp_path) as writer:
        parts = []
        for offsets in ([0, 2, 2, 5], [0, 1, 4]):
            segment = writer.new_folder(SEGMENTS)
            (segment / "files").mkdir()
            np.save(segment / "files" / "rows.npy", np.array(offsets))
            parts.append((segment, offsets[-1]))
        statistics = writer.new_folder(STATISTICS)
        about: dict[str, Any] = {"config": {}, "counts": {}, "versions": {}}
        writer.commit(parts, statistics, tombstones=dead((1, 0), (1, 1), (2, 1)), **about)
    with open_snapshot(tmp_path, lambda snapshot: snapshot) as snapshot:
        assert len(snapshot) == 9
        assert snapshot.documents == 4
        assert snapshot.live is not None
        assert snapshot.live.tolist() == [False, False, True, True, True, True, False, False, False]
        allowed = snapshot.allowed(np.arange(9) % 2 == 1)
        assert allowed is not None
        assert np.flatnonzero(allowed).tolist() == [3, 5]
        split = [(n, at.tolist(), rows.tolist()) for n, at, rows in snapshot.split(np.array([8, 0, 4, 5]))]
        assert split == [(0, [1, 2], [0, 4]), (1, [0, 3], [3, 0])]


def test_the_nearest_index_above_is_found(tmp_path: Path) -> None:
    build(tmp_path / DEFAULT_NAME)
    build(tmp_path / "a" / "b" / DEFAULT_NAME)
    (tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / DEFAULT_NAME).mkdir()  # what is not complete is passed by
    assert find_index(tmp_path / "a" / "b" / "c" / "d") == tmp_path / "a" / "b" / DEFAULT_NAME
    assert find_index(tmp_path / "a" / "b") == tmp_path / "a" / "b" / DEFAULT_NAME
    assert find_index(tmp_path / "a") == tmp_path / DEFAULT_NAME
    with pytest.raises(IndexNotFound, match=r"no index in /dev or above; make one with: ncs build \."):
        find_index(Path("/dev"))
