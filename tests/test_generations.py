"""Writing an index folder: all at once or not at all, and never into anything else."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput, IndexBusy, NcsError
from ncs.storage.folder import Hold, Manifest, new_generation, open_folder


def build(folder: Path, text: str = "one", config: Mapping[str, object] | None = None) -> Manifest:
    with new_generation(folder) as generation:
        (generation.path / "words").mkdir()
        (generation.path / "words" / "ids.npy").write_text(text * 100)
        (generation.path / "documents.sqlite").write_text(text)
        config = config or {"dim": 100}
        return generation.commit(config=config, counts={"documents": 3}, notes=("a note",), versions={"ncs": "1"})


def fail(folder: Path, error: type[BaseException] = ZeroDivisionError) -> None:
    with new_generation(folder) as generation:
        (generation.path / "documents.sqlite").write_text("new")
        raise error


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


OURS = [".gitignore", "manifest.json", "ncs.lock"]


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


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A folder that other users reach, too; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        with without_rights():
            reached = os.access(name, os.R_OK | os.X_OK, effective_ids=True)
        if not reached:
            pytest.skip("other users do not reach the folder of temporary files")
        yield Path(name)


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


def test_a_committed_generation_is_what_opens(tmp_path: Path) -> None:
    written = build(tmp_path / "idx")
    data, manifest = open_folder(tmp_path / "idx", verify=True)
    assert manifest == written
    assert data == tmp_path / "idx" / "data-1"
    assert (manifest.config, manifest.counts, manifest.notes) == ({"dim": 100}, {"documents": 3}, ("a note",))
    assert manifest.files == {
        "documents.sqlite": {"bytes": 3, "blake2b": blake2b(b"one", digest_size=16).hexdigest()},
        "words/ids.npy": {"bytes": 300, "blake2b": blake2b(b"one" * 100, digest_size=16).hexdigest()},
    }


def test_a_new_generation_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    for i in range(3):
        build(tmp_path / "idx", str(i))
    assert names(tmp_path / "idx") == [".gitignore", "data-3", "manifest.json", "ncs.lock"]
    assert (tmp_path / "idx" / "data-3" / "documents.sqlite").read_text() == "2"


def test_the_old_index_answers_until_the_commit_and_stays_if_the_build_fails(tmp_path: Path) -> None:
    build(tmp_path / "idx", "old")
    with new_generation(tmp_path / "idx") as generation:
        (generation.path / "documents.sqlite").write_text("new")
        assert (open_folder(tmp_path / "idx")[0] / "documents.sqlite").read_text() == "old"
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "idx")
    assert (open_folder(tmp_path / "idx", verify=True)[0] / "documents.sqlite").read_text() == "old"
    assert names(tmp_path / "idx") == [".gitignore", "data-1", "manifest.json", "ncs.lock"]


def test_a_failed_first_build_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "a" / "b" / ".ncs", KeyboardInterrupt)
    assert names(tmp_path) == []


def test_a_failed_first_build_leaves_a_folder_that_was_there_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "idx").mkdir()
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "idx")
    assert names(tmp_path) == ["idx"]
    assert names(tmp_path / "idx") == []


def test_a_manifest_that_cannot_be_written_fails_the_build_and_keeps_the_old_index(tmp_path: Path) -> None:
    build(tmp_path / "idx", "old")
    with pytest.raises(TypeError):
        build(tmp_path / "idx", config={"a set": {1}})
    assert (open_folder(tmp_path / "idx", verify=True)[0] / "documents.sqlite").read_text() == "old"
    assert names(tmp_path / "idx") == [".gitignore", "data-1", "manifest.json", "ncs.lock"]


def test_what_killed_builds_left_is_removed_and_other_files_are_not(tmp_path: Path) -> None:
    build(tmp_path / "idx")
    for name in ("data-7.part", "data-8", "data-x", "my data-3"):
        (tmp_path / "idx" / name).mkdir()
        (tmp_path / "idx" / name / "file").write_text("x")
    (tmp_path / "idx" / "manifest.json.part").write_text("{")
    (tmp_path / "idx" / "notes.txt").write_text("mine")
    with new_generation(tmp_path / "idx"):  # its space is free before the work starts
        kept = ["data-1", "data-9.part", "data-x", "my data-3", "notes.txt"]
        assert names(tmp_path / "idx") == sorted([*OURS, *kept])
    build(tmp_path / "idx")
    assert names(tmp_path / "idx") == sorted([*OURS, "data-2", "data-x", "my data-3", "notes.txt"])


def test_every_file_is_on_the_disk_before_the_manifest_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def recorded_sync(descriptor: int) -> None:
        steps.append(os.path.relpath(Path(f"/proc/self/fd/{descriptor}").readlink(), tmp_path / "idx"))
        sync(descriptor)

    class RecordedPath(type(tmp_path)):  # type: ignore[misc]
        def rename(self, target: Path) -> Path:
            steps.append(f"rename {self.name}")
            return Path(super().rename(target))

        def replace(self, target: Path) -> Path:
            steps.append(f"replace {Path(target).name}")
            replace(self, target)
            return target

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    monkeypatch.setattr(os, "fsync", recorded_sync)
    build(RecordedPath(tmp_path / "idx"))
    part = {"data-1.part", "data-1.part/words", "data-1.part/words/ids.npy", "data-1.part/documents.sqlite"}
    assert set(steps[:4]) == part
    assert steps[4:] == ["rename data-1.part", "manifest.json.part", ".", "replace manifest.json", "."]


def test_a_second_build_at_the_same_time_is_refused(tmp_path: Path) -> None:
    with new_generation(tmp_path / "idx") as generation:
        with pytest.raises(IndexBusy, match=r"another build is writing to .*idx; wait .* -i"):
            build(tmp_path / "idx")
        (generation.path / "documents.sqlite").write_text("first")
        generation.commit(config={}, counts={}, versions={})
    assert (open_folder(tmp_path / "idx", verify=True)[0] / "documents.sqlite").read_text() == "first"


def test_a_held_generation_stays_until_it_is_let_go(tmp_path: Path) -> None:
    build(tmp_path / "idx", "held")
    hold = Hold(tmp_path / "idx" / "data-1")
    build(tmp_path / "idx", "new")
    assert (tmp_path / "idx" / "data-1" / "documents.sqlite").read_text() == "held"
    assert open_folder(tmp_path / "idx")[1].generation == "data-2"
    hold.close()
    build(tmp_path / "idx", "newer")
    assert names(tmp_path / "idx") == sorted([*OURS, "data-3"])


def test_a_gitignore_keeps_the_index_out_of_the_repository(tmp_path: Path) -> None:
    git = shutil.which("git")
    if not git:
        pytest.skip("needs git")
    subprocess.run([git, "init", "-q", str(tmp_path)], check=True)
    build(tmp_path / ".ncs")
    status = subprocess.run([git, "-C", str(tmp_path), "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


@pytest.mark.parametrize("content", ["notes.txt", "data-1/", "manifest.json", ".gitignore"])
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    if content.endswith("/"):
        (folder / content).mkdir()
    else:
        (folder / content).write_text('{"name": "a web page"}')
    with pytest.raises(BadInput, match=r"mine is not empty and no ncs index; choose another folder with -i"):
        build(folder)
    assert names(folder) == [content.strip("/")]


def test_an_index_without_its_lock_file_can_be_built_again(tmp_path: Path) -> None:
    build(tmp_path / "idx")
    (tmp_path / "idx" / "ncs.lock").unlink()
    assert build(tmp_path / "idx").generation == "data-2"


def test_an_index_of_another_format_can_be_built_again(tmp_path: Path) -> None:
    build(tmp_path / "idx")
    manifest = tmp_path / "idx" / "manifest.json"
    manifest.write_text(json.dumps({"format": 7, "generation": "data-1", "new": True}))
    (tmp_path / "idx" / "ncs.lock").unlink()
    assert build(tmp_path / "idx").generation == "data-2"
    open_folder(tmp_path / "idx", verify=True)


def test_a_failed_build_removes_nothing_where_the_manifest_is_garbled(tmp_path: Path) -> None:
    build(tmp_path / "idx")
    (tmp_path / "idx" / "manifest.json").write_text("{")
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "idx")
    assert names(tmp_path / "idx") == sorted([*OURS, "data-1"])
    assert build(tmp_path / "idx").generation == "data-2"
    assert names(tmp_path / "idx") == sorted([*OURS, "data-2"])


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="file is not a folder; choose another one with -i"):
        build(tmp_path / "file")
    with pytest.raises(NcsError, match="below is not a folder; choose another one with -i"):
        build(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "at" / "all")
    with pytest.raises(NcsError, match=r"cannot write to .*link: .*; choose another folder with -i"):
        build(tmp_path / "link")


def test_a_folder_without_the_right_to_write_is_refused_before_work_starts(open_tmp: Path) -> None:
    (open_tmp / "theirs").mkdir(mode=0o755)
    build(open_tmp / "idx")
    for folder in (open_tmp / "theirs", open_tmp / "theirs" / "new", open_tmp / "idx"):
        if folder.exists():
            folder.chmod(0o555)
        with (
            pytest.raises(NcsError, match=f"cannot write to {folder}: Permission denied; choose another folder"),
            without_rights(),
        ):
            build(folder)
    assert names(open_tmp / "theirs") == []
    with without_rights():
        assert open_folder(open_tmp / "idx", verify=True)[1].generation == "data-1"
        Hold(open_tmp / "idx" / "data-1").close()


def test_read_only_media_are_read_and_refused_for_writing(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    build(tmp_path / "media" / "idx")
    for media in mounted(tmp_path / "mounted", "--bind", "-o", "ro", str(tmp_path / "media")):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(media)], check=True)
        assert open_folder(media / "idx", verify=True)[1].generation == "data-1"
        Hold(media / "idx" / "data-1").close()
        for folder in (media / "idx", media / "new"):
            with pytest.raises(NcsError, match=f"cannot write to {folder}: Read-only file system; choose another"):
                build(folder)


def test_too_little_space_is_found_before_work_starts(tmp_path: Path) -> None:
    needed = 10**18
    with (
        pytest.raises(NcsError, match=r"idx has [\d,.]+ MB free and the index may take 1,000,000,000,000.0 MB; free"),
        new_generation(tmp_path / "idx", needed_bytes=needed),
    ):
        pytest.fail("work started")
    assert names(tmp_path) == []


def test_a_disk_that_fills_up_is_named_in_one_line_and_harms_nothing(small_disk: Path) -> None:
    build(small_disk / "idx", "old")

    def fill_with_bytes(path: Path) -> None:
        (path / "big").write_bytes(bytes(4 << 20))

    def fill_with_an_array(path: Path) -> None:
        np.save(path / "big.npy", np.zeros(1 << 20))

    for fill in (fill_with_bytes, fill_with_an_array):
        with (
            pytest.raises(NcsError, match=r"^the disk of .*idx is full; free some space or choose another folder with"),
            new_generation(small_disk / "idx") as generation,
        ):
            fill(generation.path)
        assert (open_folder(small_disk / "idx", verify=True)[0] / "documents.sqlite").read_text() == "old"
        assert names(small_disk / "idx") == sorted([*OURS, "data-1"])
    build(small_disk / "idx", "new")


def test_a_disk_already_full_is_found_before_work_starts(small_disk: Path) -> None:
    build(small_disk / "idx", "old")
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    with pytest.raises(NcsError, match=r"the disk of .* is full"):
        build(small_disk / "idx")
    with pytest.raises(NcsError, match=r"the disk of .* is full"):
        build(small_disk / "another")
    assert (open_folder(small_disk / "idx", verify=True)[0] / "documents.sqlite").read_text() == "old"
    assert names(small_disk) == ["ballast", "idx"]


def test_a_write_beyond_the_limit_of_file_sizes_is_one_line_too(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    build(tmp_path / "idx", "old")
    script = textwrap.dedent(
        """
        import random, resource, sys
        from pathlib import Path
        from ncs.errors import NcsError
        from ncs.folder import new_generation
        from ncs.packing import pack
        from ncs.store_writer import StoreWriter
        from ncs.types import Document

        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            with new_generation(Path(sys.argv[1])) as generation:
                if sys.argv[2] == "bytes":
                    (generation.path / "big").write_bytes(bytes(4 << 20))
                with StoreWriter(generation.path / "documents.sqlite") as writer:
                    for i in range(3_000):
                        code = random.Random(i).randbytes(500).hex()
                        writer.add([pack(Document(str(i), "r", "p", 1, 2, "java", "method", "n", "n", {}, code))])
                    writer.finish()
        except NcsError as error:
            print(error)
        """
    )
    for what in ("bytes", "store"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, str(tmp_path / "idx"), what],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.count("\n") == 1
        assert "choose another folder with -i" in done.stdout
        assert done.stderr == ""
    assert (open_folder(tmp_path / "idx", verify=True)[0] / "documents.sqlite").read_text() == "old"
    assert names(tmp_path / "idx") == sorted([*OURS, "data-1"])
