"""`ncs watch`: files that are saved are found without a command, and nothing that happens to them ends it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncs.build import watch as watching_module
from ncs.build.request import Changes
from ncs.build.update import update
from ncs.build.watch import RETRY, Follower, watch
from ncs.errors import MissingExtra
from ncs.index import Index
from ncs.storage.commit import open_writer
from tests.corpus import QUICK
from tests.gitrepo import write
from tests.waiting import LONG, put, until


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with its index in it, and a file that is not to be indexed."""
    open_file, walk_dog = "def open_file(path):\n    return read(path)\n", "def walk_dog(dog):\n    return dog.walk()\n"
    files = {"lib/files.py": open_file, "lib/dogs.py": walk_dog, ".ncsignore": "private/\n"}
    root = write(tmp_path / "project", files)
    Index.build(root, root / ".ncs", config=QUICK).close()
    return root


def names(folder: Path) -> list[str]:
    with Index.load(folder) as index:
        return sorted(place.qualified_name for place in index.documents.locations(index.documents.rows().tolist()))


def find(folder: Path, name: str) -> None:
    until(lambda: name in names(folder))


@contextmanager
def watching(folder: Path) -> Iterator[list[str]]:
    """`watch` in a thread; what it says."""
    said: list[str] = []
    stop = threading.Event()
    thread = threading.Thread(target=watch, args=(folder, said.append), kwargs={"stop": stop})
    thread.start()
    try:
        until(lambda: bool(said))
        yield said
    finally:
        stop.set()
        thread.join(LONG)
    assert not thread.is_alive()


@pytest.mark.slow
def test_functions_that_are_saved_moved_and_removed_are_found_as_they_are_until_ctrl_c(
    tmp_path: Path, project: Path
) -> None:
    folder, log = project / ".ncs", tmp_path / "log"
    command = [sys.executable, "-m", "ncs.cli", "watch", "-i", str(folder)]
    with log.open("w") as messages, subprocess.Popen(command, stderr=messages, preexec_fn=restore_ctrl_c) as process:
        try:
            until(lambda: log.read_text() != "")
            put(project / "lib" / "cats.py", "def feed_cat(cat):\n    return cat.eat()\n", tmp_path)
            find(folder, "feed_cat")
            (project / "private").mkdir()
            (project / "private" / "keys.py").write_text("def secret_key(x):\n    return hide(x)\n")
            (project / "lib").rename(project / "moved")
            (project / "moved" / "cats.py").unlink()
            (project / "moved" / "dogs.py").write_text("def pat_dog(dog):\n    return dog.pat()\n")
            find(folder, "pat_dog")
            until(lambda: names(folder) == ["open_file", "pat_dog"])
            until(lambda: "; 2 documents, " in log.read_text().splitlines()[-1])  # its update is done
            process.send_signal(signal.SIGINT)
            assert process.wait(LONG) == 130
        finally:
            process.kill()
    first, second, *_, last = log.read_text().splitlines()
    assert first.startswith(f"watching {project}: 2 documents")
    assert second.startswith("new: project/lib/cats.py; 3 documents, ")
    assert last.startswith("stopped watching")
    assert not list(folder.glob("*.part"))
    assert names(folder) == ["open_file", "pat_dog"]


def restore_ctrl_c() -> None:
    """Background jobs ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_a_root_that_is_gone_is_named_once_and_followed_when_it_comes_back(tmp_path: Path, project: Path) -> None:
    folder = tmp_path / "index"
    shutil.rmtree(project / ".ncs")
    Index.build(project, folder, config=QUICK).close()
    (project / "lib" / "more.py").write_text("def dog_walk(dog):\n    return dog.walk()\n")
    project.rename(tmp_path / "away")

    def failures() -> list[str]:
        return [line for line in said if line.startswith("not updated")]

    with watching(folder) as said:
        until(lambda: len(failures()) == 1)
        (tmp_path / "away").rename(project)
        find(folder, "dog_walk")
        project.rename(tmp_path / "away")
        until(lambda: len(failures()) == 2)
        (tmp_path / "away").rename(project)
        (project / "lib" / "cats.py").write_text("def feed_cat(cat):\n    return cat.eat()\n")
        find(folder, "feed_cat")
        (project / "lib" / "cats.py").write_text("def groom_cat(cat):\n    return cat.purr()\n")
        find(folder, "groom_cat")
    assert len(failures()) == 2
    assert all(line.startswith(f"not updated: there is no {project}") for line in failures())


@pytest.mark.slow
def test_files_that_come_and_go_during_updates_leave_an_index_that_equals_a_new_one(
    tmp_path: Path, project: Path
) -> None:
    folder, stop = project / ".ncs", threading.Event()

    def churn() -> None:
        for number in count():
            if stop.is_set():
                return
            path = project / "lib" / f"brief{number % 7}.py"
            path.write_text(f"def brief_{number}(x):\n    return go(x, {number})\n")
            time.sleep(0.002)
            path.unlink()

    edits = threading.Thread(target=churn)
    with watching(folder) as said:
        edits.start()
        try:
            until(lambda: len(said) > 3)
        finally:
            stop.set()
            edits.join()
        (project / "lib" / "last.py").write_text("def last_of_all(x):\n    return go(x)\n")
        find(folder, "last_of_all")
        until(lambda: names(folder) == ["last_of_all", "open_file", "walk_dog"])
    assert not [line for line in said if line.startswith("not updated")]
    Index.build(project, tmp_path / "anew", config=QUICK).close()
    assert names(tmp_path / "anew") == names(folder)


def follow(project: Path) -> tuple[Follower, SimpleNamespace, list[str]]:
    """A follower with a clock that is set by hand, and what it says."""
    said: list[str] = []
    clock = SimpleNamespace(now=0.0)
    follower = Follower(project / ".ncs", said.append, lambda: clock.now)
    follower.step([])
    return follower, clock, said


def test_an_update_that_fails_is_one_line_and_is_tried_again_later_and_later(tmp_path: Path, project: Path) -> None:
    follower, clock, said = follow(project)
    assert said == []
    (project / "lib" / "cats.py").write_text("def feed_cat(cat):\n    return cat.eat()\n")
    with open_writer(project / ".ncs"):  # another build
        follower.step([str(project / "lib" / "cats.py")])
        clock.now = RETRY
        follower.step([])
    assert len(said) == 1
    assert said[0].startswith("not updated: another build is writing to")
    follower.step([])
    assert len(said) == 1
    clock.now = 2 * RETRY
    follower.step([])
    assert said[1].startswith("new: project/lib/cats.py")


def test_what_git_and_builds_note_for_themselves_makes_no_update(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count_update(folder: Path, *, paths: Sequence[Path] | None) -> Changes:
        updates.append(paths)
        return update(folder, paths=paths)

    updates: list[Sequence[Path] | None] = []
    follower, clock, _ = follow(project)
    monkeypatch.setattr(watching_module, "update", count_update)
    clock.now = 100
    follower.step([str(project / ".git" / "index.lock"), str(project / ".ncs" / "snapshot.json")])
    assert not updates
    follower.step([str(project / ".gitignore")])
    assert updates == [[project / ".gitignore"]]


def test_advice_to_learn_word_vectors_anew_is_given_once(project: Path) -> None:
    follower, _, said = follow(project)
    for number in range(3):
        path = project / "lib" / f"more{number}.py"
        path.write_text(f"def zebra{number}(x):\n    return gnu{number}(emu(x))\n")
        follower.step([str(path)])
    (note,) = [line for line in said if line.startswith("note: ")]
    assert "ncs update --retrain" in note


@pytest.mark.slow
def test_a_file_that_is_a_root_is_followed_though_editors_replace_it(tmp_path: Path) -> None:
    source = tmp_path / "one.py"
    source.write_text("def open_file(path):\n    return read(path)\n")
    Index.build(source, tmp_path / "index", config=QUICK).close()
    with watching(tmp_path / "index"):
        (tmp_path / "one.py~").write_text("def close_file(path):\n    return shut(path)\n")
        os.replace(tmp_path / "one.py~", source)  # noqa: PTH105
        find(tmp_path / "index", "close_file")


def test_without_its_extra_the_command_to_install_it_is_said(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtra, match=r"pip install 'neural-code-search\[watch\]'"):
        watch(project / ".ncs", print)
