"""Writing an index folder: all at once or not at all, and never into anything else."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput, IndexBusy, NcsError
from ncs.storage.commit import open_writer
from ncs.storage.snapshot import SEGMENTS, Hold, Snapshot, open_snapshot, read_description
from tests.storage.made import build, dead, fail, files, names, text_of


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Root may write anywhere; nobody may not."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def mounted(folder: Path, *options: str) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    if os.geteuid() != 0 or not mount:
        pytest.skip("mounting needs root")
    done = subprocess.run([mount, *options, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs")


def test_what_was_committed_is_what_opens(tmp_path: Path) -> None:
    written = build(tmp_path, config={"dim": 100})
    read = open_snapshot(tmp_path, lambda snapshot: snapshot.description, verify=True)
    assert read == written
    assert (read.config, read.counts, read.notes) == ({"dim": 100}, {"documents": 3}, ("a note",))
    assert read.segments == (("000001", 3),)
    assert read.files["segments/000001/documents.sqlite"] == {
        "bytes": 3,
        "blake2b": blake2b(b"one", digest_size=16).hexdigest(),
    }
    assert sorted(read.files) == [name for name in files(1) if "/" in name]


def test_a_build_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    numbers = [build(tmp_path / "idx", str(i)).segments[0][0] for i in range(3)]
    assert names(tmp_path / "idx") == files(int(numbers[-1]))
    assert open_snapshot(tmp_path / "idx", text_of) == "2"


def test_an_update_keeps_the_old_segments_and_adds_tombstones(tmp_path: Path) -> None:
    first = build(tmp_path)
    with open_writer(tmp_path) as writer:
        segment = writer.new_folder(SEGMENTS)
        (segment / "documents.sqlite").write_text("one")
        old, statistics = tmp_path / SEGMENTS / "000001", tmp_path / "statistics" / "000001"
        second = writer.commit(
            [(old, 3), (segment, 2)], statistics, tombstones=dead((1, 7)), config={}, counts={}, versions={}
        )
    assert second.segments == (("000001", 3), (segment.name, 2))
    assert {name: second.files[name] for name in first.files} == first.files
    assert np.load(tmp_path / "tombstones" / f"{second.tombstones}.npy").tolist() == [[1, 7]]
    assert set(names(tmp_path)) > {f"tombstones/{second.tombstones}.npy", "segments/000001/documents.sqlite"}


def test_the_old_index_answers_until_the_commit_and_stays_if_the_build_fails(tmp_path: Path) -> None:
    build(tmp_path, "old")
    with open_writer(tmp_path) as writer:
        (writer.new_folder(SEGMENTS) / "documents.sqlite").write_text("new")
        assert open_snapshot(tmp_path, text_of) == "old"
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path)
    with pytest.raises(TypeError):
        build(tmp_path, config={"a set": {1}})
    assert open_snapshot(tmp_path, text_of, verify=True) == "old"
    assert names(tmp_path) == files(1)


def test_a_failed_first_build_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "a" / "b" / ".ncs", KeyboardInterrupt)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "idx").mkdir()
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "idx")
    assert names(tmp_path) == ["idx"]


def test_what_killed_builds_left_is_removed_and_other_files_are_not(tmp_path: Path) -> None:
    build(tmp_path)
    for name in ("segments/000007", "statistics/000008", "segments/mine", "my data-3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    (tmp_path / "snapshot.json.part").write_text("{")
    (tmp_path / "notes.txt").write_text("mine")
    kept = ["my data-3/file", "notes.txt", "segments/mine/file"]
    with open_writer(tmp_path):  # its space is free before the work starts
        assert names(tmp_path) == sorted([*files(1), *kept])
    number = int(build(tmp_path).segments[0][0])
    assert names(tmp_path) == sorted([*files(number), *kept])


def test_every_file_is_on_the_disk_before_the_snapshot_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def recorded_sync(descriptor: int) -> None:
        steps.append(os.path.relpath(Path(f"/proc/self/fd/{descriptor}").readlink(), tmp_path))
        sync(descriptor)

    class RecordedPath(type(tmp_path)):  # type: ignore[misc]
        def replace(self, target: Path) -> Path:
            steps.append(f"replace {Path(target).name}")
            replace(self, target)
            return target

    monkeypatch.setattr(os, "fsync", recorded_sync)
    build(RecordedPath(tmp_path))
    named = [name for name in files(1) if "/" in name]
    folders = {".", "segments", "segments/000001", "segments/000001/bm25", "statistics", "statistics/000001"}
    assert set(steps[:3]) == set(named)
    assert set(steps[3:-3]) == folders
    assert steps[-3:] == ["snapshot.json.part", "replace snapshot.json", "."]


def test_a_second_build_at_the_same_time_is_refused(tmp_path: Path) -> None:
    with open_writer(tmp_path), pytest.raises(IndexBusy, match=r"another build is writing to .*; wait .* -i"):
        build(tmp_path)


def test_a_snapshot_that_is_open_stays_until_it_is_closed(tmp_path: Path) -> None:
    build(tmp_path, "held")
    reader = open_snapshot(tmp_path, lambda snapshot: snapshot)
    build(tmp_path, "new")
    assert text_of(reader) == "held"
    assert open_snapshot(tmp_path, text_of) == "new"
    reader.close()
    number = int(build(tmp_path, "newer").segments[0][0])
    assert names(tmp_path) == files(number)


def test_a_copied_segment_shares_its_files_and_their_checksums(tmp_path: Path) -> None:
    first = build(tmp_path)
    with open_writer(tmp_path) as writer:
        copy = writer.copy_folder(tmp_path / SEGMENTS / "000001", without=["bm25"])
        statistics = writer.copy_folder(tmp_path / "statistics" / "000001", copy.name)
        assert (copy / "documents.sqlite").samefile(tmp_path / SEGMENTS / "000001" / "documents.sqlite")
        second = writer.commit([(copy, 3)], statistics, config={}, counts={}, versions={})
    assert second.files[f"segments/{copy.name}/documents.sqlite"] == first.files["segments/000001/documents.sqlite"]
    assert names(tmp_path) == [name for name in files(int(copy.name)) if "bm25" not in name]


def test_a_gitignore_keeps_the_index_out_of_the_repository(tmp_path: Path) -> None:
    git = shutil.which("git")
    if not git:
        pytest.skip("needs git")
    subprocess.run([git, "init", "-q", str(tmp_path)], check=True)
    build(tmp_path / ".ncs")
    status = subprocess.run([git, "-C", str(tmp_path), "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


@pytest.mark.parametrize("content", ["notes.txt", "segments/", "manifest.json", ".gitignore"])
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    if content.endswith("/"):
        (tmp_path / content).mkdir()
    else:
        (tmp_path / content).write_text('{"name": "a web page"}')
    with pytest.raises(BadInput, match=r"is not empty and not an index; choose another folder with -i"):
        build(tmp_path)
    assert names(tmp_path) == [content.strip("/")]


def test_an_index_of_the_old_format_is_replaced_by_a_build(tmp_path: Path) -> None:
    for name in ("ncs.lock", "manifest.json", "data-3/documents.sqlite"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path)
    assert {"manifest.json", "data-3/documents.sqlite"} < set(names(tmp_path))
    build(tmp_path)
    assert names(tmp_path) == files(1)


def test_a_failed_build_removes_nothing_where_the_snapshot_is_garbled(tmp_path: Path) -> None:
    build(tmp_path)
    (tmp_path / "snapshot.json").write_text("{")
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path)
    assert set(files(1)) <= set(names(tmp_path))
    number = int(build(tmp_path).segments[0][0])
    assert names(tmp_path) == files(number)


def test_a_file_or_a_link_to_nowhere_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="file is not a folder; choose another one with -i"):
        build(tmp_path / "file")
    with pytest.raises(NcsError, match="below is not a folder; choose another one with -i"):
        build(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "at" / "all")
    with pytest.raises(NcsError, match=r"cannot write to .*link: .*; choose another folder with -i"):
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
            assert open_snapshot(room / "idx", text_of, verify=True) == "one"


def test_read_only_media_are_read_and_refused_for_writing(tmp_path: Path) -> None:
    build(tmp_path / "media" / "idx")
    for media in mounted(tmp_path / "mounted", "--bind", "-o", "ro", str(tmp_path / "media")):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(media)], check=True)
        assert open_snapshot(media / "idx", text_of, verify=True) == "one"
        for folder in (media / "idx", media / "new"):
            with pytest.raises(NcsError, match=f"cannot write to {folder}: Read-only file system; choose another"):
                build(folder)


def test_too_little_space_is_found_before_work_starts(tmp_path: Path) -> None:
    with (
        pytest.raises(NcsError, match=r"idx has [\d,.]+ MB free and the index may take 1,000,000,000,000.0 MB; free"),
        open_writer(tmp_path / "idx", needed_bytes=10**18),
    ):
        pytest.fail("work started")
    assert names(tmp_path) == []


def test_a_disk_that_is_full_or_fills_up_is_named_in_one_line_and_harms_nothing(small_disk: Path) -> None:
    build(small_disk / "idx", "old")

    def fill_with_bytes(path: Path) -> None:
        (path / "big").write_bytes(bytes(4 << 20))

    def fill_with_an_array(path: Path) -> None:
        np.save(path / "big.npy", np.zeros(1 << 20))

    for fill in (fill_with_bytes, fill_with_an_array):
        with (
            pytest.raises(NcsError, match=r"^the disk of .*idx is full; free some space or choose another folder with"),
            open_writer(small_disk / "idx") as writer,
        ):
            fill(writer.new_folder(SEGMENTS))
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
    pytest.importorskip("resource")
    build(tmp_path, "old")
    script = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from ncs.errors import NcsError
        from ncs.storage.commit import open_writer

        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            with open_writer(Path(sys.argv[1])) as writer:
                (writer.new_folder("segments") / "big").write_bytes(bytes(4 << 20))
        except NcsError as error:
            print(error)
        """
    )
    command = [sys.executable, "-W", "error", "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert "choose another folder with -i" in done.stdout
    assert open_snapshot(tmp_path, text_of, verify=True) == "old"


def test_a_hold_on_a_folder_that_is_gone_is_an_error_that_is_tried_again(tmp_path: Path) -> None:
    build(tmp_path)
    description = read_description(tmp_path)
    build(tmp_path, "two")
    with pytest.raises(OSError, match="000001"):
        Hold(tmp_path / "segments" / "000001")
    with pytest.raises(OSError, match="000001"):
        Snapshot(tmp_path, description)
