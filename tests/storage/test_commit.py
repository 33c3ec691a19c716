"""Writing an index folder: all at once or not at all, and never into anything else."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput, IndexBusy, IndexFolderError, NcsError
from ncs.storage.arrays import both
from ncs.storage.commit import open_writer
from ncs.storage.snapshot import SEGMENTS, open_snapshot, read_description
from ncs.workers import Workers
from tests.gitrepo import write
from tests.rights import small_files, without_rights
from tests.storage.small_index import (
    ROWS,
    build,
    commit_until_enough,
    consistent_text_of,
    fail,
    files,
    names,
    text_of,
    update,
    write_segment,
)
from tests.waiting import LONG


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    root = os.name != "nt" and os.geteuid() == 0
    if not root or not shutil.which("mount") or subprocess.run(mount, check=False).returncode:
        pytest.skip("cannot mount here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_the_last_commit_opens_and_leaves_nothing_else(tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        written = build(tmp_path, text, config={"dim": 100})
        assert open_snapshot(tmp_path, text_of, verify=True) == text
        ((segment, documents),) = written.segments
        assert names(tmp_path) == files(int(segment))
    read = read_description(tmp_path)
    assert read == written
    assert (read.config, read.counts, read.notes, documents) == ({"dim": 100}, {"documents": 3}, ("a note",), 3)
    checksum = blake2b(b"three", digest_size=16).hexdigest()
    assert read.files[f"segments/{segment}/documents.sqlite"] == {"bytes": 5, "blake2b": checksum}
    assert sorted(read.files) == [name for name in files(int(segment)) if "/" in name]
    assert (tmp_path / ".gitignore").read_text().endswith("\n*\n")


def test_an_update_keeps_the_old_segments_and_adds_tombstones(tmp_path: Path) -> None:
    first, second = build(tmp_path), update(tmp_path, "two")
    assert second.segments == (*first.segments, ("000003", 3))
    assert {name: second.files[name] for name in first.files} == first.files
    with open_snapshot(tmp_path, lambda snapshot: snapshot, verify=True) as snapshot:
        assert snapshot.tombstones.tolist() == [[1, 0]]
        assert (text_of(snapshot), len(snapshot), snapshot.documents) == ("two", 6, 5)
        allowed = both(np.arange(6) % 2 == 0, snapshot.live)
        assert allowed is not None
        assert np.flatnonzero(allowed).tolist() == [2, 4]


def test_the_old_index_answers_until_the_commit_which_one_build_at_a_time_may_reach(tmp_path: Path) -> None:
    build(tmp_path, "old")
    with open_writer(tmp_path) as writer:
        write_segment(writer, "new")
        assert open_snapshot(tmp_path, text_of) == "old"
        with pytest.raises(IndexBusy, match=r"another build is writing to .*; wait .* -i"):
            build(tmp_path)
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path)
    with pytest.raises(TypeError):
        build(tmp_path, config={"a set": {1}})
    assert open_snapshot(tmp_path, text_of, verify=True) == "old"
    assert names(tmp_path) == files(1)


def test_a_failed_build_removes_what_it_made_and_where_the_snapshot_is_garbled_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "a" / "b" / ".ncs", KeyboardInterrupt)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "fsync", interrupt)  # the first thing that a writer does under its lock
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / ".ncs")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    index = tmp_path / "idx"
    index.mkdir()
    with pytest.raises(ZeroDivisionError):
        fail(index)
    assert names(tmp_path) == ["idx"]
    build(index)
    (index / "snapshot.json").write_text("{")
    with pytest.raises(ZeroDivisionError):
        fail(index)
    assert set(files(1)) <= set(names(index))
    number = int(build(index).segments[0][0])
    assert names(index) == files(number)


def test_leftovers_of_killed_builds_are_removed_and_other_files_are_not(tmp_path: Path) -> None:
    build(tmp_path)
    foreign = ["data-3/file", "notes.txt", "segments/mine/file"]
    leftovers = ["segments/000007/file", "statistics/000008/file", "snapshot.json.part"]
    write(tmp_path, dict.fromkeys([*foreign, *leftovers], "x"))
    with open_writer(tmp_path):  # its space is free before the work starts
        assert names(tmp_path) == sorted([*files(1), *foreign])
    number = int(build(tmp_path).segments[0][0])
    assert names(tmp_path) == sorted([*files(number), *foreign])


def test_a_copied_segment_shares_its_files_and_their_checksums(tmp_path: Path) -> None:
    first = build(tmp_path)
    with open_writer(tmp_path) as writer:
        copy = writer.copy_folder(tmp_path / SEGMENTS / "000001", without=["bm25"])
        statistics = writer.copy_folder(tmp_path / "statistics" / "000001", copy.name)
        assert (copy / "documents.sqlite").samefile(tmp_path / SEGMENTS / "000001" / "documents.sqlite")
        second = writer.commit([(copy, 3)], statistics, config={}, counts={}, versions={})
    assert second.files[f"segments/{copy.name}/documents.sqlite"] == first.files["segments/000001/documents.sqlite"]
    assert names(tmp_path) == [name for name in files(int(copy.name)) if "bm25" not in name]


@pytest.mark.parametrize("content", ["notes.txt", "segments/mine", ".gitignore"])
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    write(tmp_path, {content: '{"name": "a web page"}'})
    with pytest.raises(BadInput, match=r"is not empty and not an index; choose another folder with -i"):
        build(tmp_path)
    assert names(tmp_path) == [content]


def test_a_file_or_a_link_to_nowhere_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="file is not a folder; choose another one with -i"):
        build(tmp_path / "file")
    refused = "below is not a folder; choose another one" if os.name != "nt" else "cannot write to .*; choose another"
    with pytest.raises(NcsError, match=refused):
        build(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "at" / "all")
    with pytest.raises(NcsError, match=r"link is a link, which ncs does not write to; remove it"):
        build(tmp_path / "link")


def test_a_folder_without_the_right_to_write_is_refused_and_still_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        room.chmod(0o755)
        with without_rights():
            if not os.access(room, os.R_OK | os.X_OK, effective_ids=True):
                pytest.skip("other users do not reach the folder of temporary files")
        (room / "theirs").mkdir(mode=0o755)
        build(room / "idx")
        for folder in (room / "theirs", room / "theirs" / "new", room / "idx"):
            if folder.exists():
                folder.chmod(0o555)
            with (
                pytest.raises(NcsError, match=f"cannot write to {folder}: Permission denied; choose another folder"),
                without_rights(),
            ):
                build(folder)
        with without_rights():
            assert read_description(room / "idx").counts["documents"] == ROWS


def test_too_little_space_is_an_error_before_work_starts(tmp_path: Path) -> None:
    with (
        pytest.raises(NcsError, match=r"idx has [\d,.]+ MB free and the index may take 1,000,000,000,000.0 MB; free"),
        open_writer(tmp_path / "idx", needed_bytes=10**18),
    ):
        pytest.fail("work started")
    assert names(tmp_path) == []


def test_a_disk_that_is_full_or_fills_up_is_named_in_one_line_and_harms_nothing(small_disk: Path) -> None:
    build(small_disk / "idx", "old")

    with (
        pytest.raises(NcsError, match=r"^the disk of .*idx is full; free some space or choose another folder with -i$"),
        open_writer(small_disk / "idx") as writer,
    ):
        np.save(writer.new_folder(SEGMENTS) / "big.npy", np.zeros(1 << 20))  # an error without a number
    assert open_snapshot(small_disk / "idx", text_of, verify=True) == "old"
    assert names(small_disk / "idx") == files(1)
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    for name in ("idx", "another"):
        with pytest.raises(NcsError, match=r"the disk of .* is full"):
            build(small_disk / name)
    assert open_snapshot(small_disk / "idx", text_of, verify=True) == "old"


def test_a_write_beyond_the_limit_of_file_sizes_is_one_line_too(tmp_path: Path) -> None:
    build(tmp_path, "old")
    refused = pytest.raises(NcsError, match=r"choose another folder with -i$")
    with small_files(1 << 20), refused, open_writer(tmp_path) as writer:
        (writer.new_folder(SEGMENTS) / "big").write_bytes(bytes(4 << 20))
    assert open_snapshot(tmp_path, text_of, verify=True) == "old"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it says which files are open")
def test_on_windows_what_a_reader_has_open_stays_whole_until_a_later_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(self: Path, target: Path, rename: Callable[[Path, Path], Path] = Path.rename) -> Path:
        if any(str(each.resolve()).startswith(str(self)) for each in Path("/proc/self/fd").iterdir()):
            raise PermissionError(13, "in use", str(self))  # as Windows for a folder with an open file
        return rename(self, target)

    monkeypatch.setattr("ncs.storage.snapshot.WINDOWS", True)
    monkeypatch.setattr("ncs.storage.commit.WINDOWS", True)
    monkeypatch.setattr(Path, "rename", rename)
    build(tmp_path, "one")
    before = names(tmp_path)
    with open_snapshot(tmp_path, lambda snapshot: snapshot) as reader:
        build(tmp_path, "two")
        assert set(names(tmp_path)) >= set(before)
        assert text_of(reader) == "one"
    ((segment, _),) = build(tmp_path, "three").segments
    assert names(tmp_path) == files(int(segment))


@pytest.mark.slow
def test_readers_always_find_a_whole_snapshot_while_builds_and_updates_replace_it(tmp_path: Path) -> None:
    seen = set()
    with Workers(1) as workers:
        last = workers.submit(commit_until_enough, tmp_path, seconds=LONG)
        while not last.done():
            try:
                seen.add(open_snapshot(tmp_path / "idx", consistent_text_of))
            except IndexFolderError:
                assert not seen
            if len(seen) > 10:
                (tmp_path / "enough").touch()
    assert open_snapshot(tmp_path / "idx", consistent_text_of) == last.result()
