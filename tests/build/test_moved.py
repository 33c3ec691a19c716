"""A project that was moved, renamed or copied together with its index."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ncs.build.watch import Follower
from ncs.index import Index
from ncs.search.locate_source import SourceLocator
from tests import gitrepo
from tests.command import invoke, program
from tests.corpus import QUICK

FILES = {
    "door.py": "def open_door(key):\n    return key.turn()\n",
    "lib/window.py": "def shut_window(latch):\n    latch.fall()\n",
}
MOVES = pytest.mark.parametrize("move", [shutil.move, shutil.copytree])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = gitrepo.repository(tmp_path / "project", FILES)
    Index.build(folder, folder / ".ncs", config=QUICK).close()
    return folder


def moved(project: Path, move: Callable[..., object]) -> Path:
    there = project.parent / "elsewhere" / "renamed"
    there.parent.mkdir()
    move(project, there)
    return there


@MOVES
def test_its_files_are_found_opened_and_compared_where_they_are_now(
    project: Path, move: Callable[..., object], tmp_path: Path
) -> None:
    there = moved(project, move)
    if project.exists():
        (project / "door.py").write_text("def other():\n    return 2\n")
    run = invoke("query", "open door", "-n", "1", "--format", "vimgrep", cwd=there)
    assert (run.returncode, run.stdout) == (0, "door.py:1:5:def open_door(key):\n")
    editor = program(tmp_path, "vim", 'echo "$@" > "$(dirname "$0")/opened"')
    assert invoke("query", "open door", "--open", "1", cwd=there, VISUAL=str(editor)).stderr == ""
    assert (tmp_path / "opened").read_text() == f"+1 {there}/door.py\n"
    similar = invoke("similar", "door.py:1", "--json", cwd=there)
    assert "open_door" not in [hit["name"] for hit in json.loads(similar.stdout)["hits"]]
    said = invoke("doctor", cwd=there).stdout
    assert "nothing changed since" in said
    assert "2 files checked" in said


@MOVES
def test_an_update_reads_what_changed_and_keeps_the_name_of_the_repository(
    project: Path, move: Callable[..., object]
) -> None:
    there = moved(project, move)
    (there / "lib" / "window.py").write_text("def break_window(stone):\n    stone.fly()\n")
    index, changes = Index.update(there / ".ncs")
    with index:
        assert (changes.added, changes.changed, changes.unchanged) == ((), ("project/lib/window.py",), 1)
        assert SourceLocator(index.snapshot).path_of("project", "lib/window.py") == there / "lib" / "window.py"
        assert SourceLocator(index.snapshot).name_of(there / "door.py") == "project/door.py"
    index, changes = Index.update(there / ".ncs", compact=True)
    with index:
        assert (list(index.description.counts["repositories"]), bool(changes)) == (["project"], False)


@MOVES
def test_it_is_watched_where_it_is(project: Path, move: Callable[..., object]) -> None:
    there, said = moved(project, move), list[str]()
    follower = Follower(there / ".ncs", said.append, clock=iter(range(100)).__next__)
    assert [path for path, _, _ in follower.places()] == [str(there)]
    follower.step(())
    (there / "new.py").write_text("def ring_bell(cord):\n    cord.pull()\n")
    follower.step([str(there / "new.py")])
    assert said[0].startswith("new: project/new.py; 3 documents")


def test_sources_outside_of_the_folder_that_holds_the_index_stay_absolute(project: Path, tmp_path: Path) -> None:
    Index.build(project, tmp_path / "indexes" / "one", config=QUICK).close()
    with Index.load(tmp_path / "indexes" / "one") as index:
        assert index.description.counts["sources"]["roots"] == [str(project)]
        assert SourceLocator(index.snapshot).path_of("project", "door.py") == project / "door.py"
    shutil.move(tmp_path / "indexes", tmp_path / "archive")
    run = invoke("query", "open door", "-n", "1", "-i", "one", cwd=tmp_path / "archive")
    assert "open_door" in run.stdout
    assert run.stderr.count("it was moved, and has sources elsewhere") == 1
