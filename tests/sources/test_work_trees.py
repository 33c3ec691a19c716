"""Linked work trees of git inside a tree: each has an index of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncs.build import ingest
from ncs.errors import IndexNotFound
from ncs.extract import extract_files
from ncs.index import Index
from ncs.sources.repositories import main_work_tree
from ncs.storage.snapshot import find_index
from tests import gitrepo
from tests.command import invoke
from tests.corpus import QUICK
from tests.sources.walked import walked

FILES = {
    "door.py": "def open_door(key):\n    return key.turn()\n",
    "lib/window.py": "def shut_window(latch):\n    latch.fall()\n\n\ndef open_door(key):\n    return key.turn()\n",
}
INNER = ".claude/worktrees/w1"


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with a linked work tree inside and one beside it."""
    folder = gitrepo.repository(tmp_path / "all" / "main", FILES)
    gitrepo.git(folder, "worktree", "add", "-q", "-b", "w1", INNER)
    gitrepo.git(folder, "worktree", "add", "-q", "-b", "w2", "../w2")
    return folder


def python_files(root: Path) -> tuple[set[str], int]:
    """The files of a walk, and how many linked work trees it skipped."""
    walk = walked(root, readable=lambda path: path.endswith(".py"))
    return set(walk.names), walk.counts.get("linked work trees", 0)


def test_a_linked_work_tree_inside_a_tree_is_skipped_and_counted(main: Path) -> None:
    assert python_files(main) == ({"main:door.py", "main:lib/window.py"}, 1)
    assert python_files(main / INNER) == ({"w1:door.py", "w1:lib/window.py"}, 0)
    assert python_files(main.parent) == ({f"{name}:{path}" for name in ("main", "w2") for path in FILES}, 1)


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree])
def test_it_is_also_where_the_tree_was_moved_or_copied(main: Path, move: Callable[..., object], tmp_path: Path) -> None:
    move(main, tmp_path / "there")
    assert python_files(tmp_path / "there") == ({"there:door.py", "there:lib/window.py"}, 1)


def test_nested_repositories_submodules_and_work_trees_of_others_are_read(main: Path, tmp_path: Path) -> None:
    gitrepo.repository(main / "nested", {"a.py": "def a():\n    return 1\n"})
    other = gitrepo.repository(tmp_path / "other", {"b.py": "def b():\n    return 1\n"})
    gitrepo.git(main, "submodule", "add", "-q", str(other), "module")
    assert (main / "module" / ".git").is_file()
    gitrepo.git(other, "worktree", "add", "-q", "-b", "w1", str(main / "foreign"))
    found, skipped = python_files(main)
    assert {"nested:a.py", "module:b.py", "foreign:b.py"} <= found
    assert skipped == 1
    project = tmp_path / "project"
    project.mkdir()
    gitrepo.git(tmp_path, "clone", "-q", "--bare", str(other), "project/.bare")
    (project / ".git").write_text("gitdir: ./.bare\n")
    gitrepo.git(project, "worktree", "add", "-q", "-b", "side", "side")
    assert python_files(project) == ({"side:b.py"}, 0)


def test_an_index_is_looked_for_up_to_the_root_of_an_inner_work_tree(main: Path) -> None:
    Index.build(main, main / ".ncs", config=QUICK).close()
    gitrepo.repository(main / "nested", {"a.py": "def a():\n    return 1\n"})
    assert find_index(main / "lib") == find_index(main / "nested") == main / ".ncs"
    with pytest.raises(IndexNotFound, match=f"no index in {main / INNER}, which is a work tree of its own; make one"):
        find_index(main / INNER / "lib")
    shutil.copytree(main / ".ncs", main / INNER / ".ncs")
    assert find_index(main / INNER / "lib") == main / INNER / ".ncs"
    shutil.copytree(main / ".ncs", main.parent / ".ncs")
    assert find_index(main.parent / "w2" / "lib") == main.parent / ".ncs"


def test_a_build_in_a_work_tree_takes_over_the_unchanged_files_of_the_main_one(
    main: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, read = main / INNER, list[str]()

    def spy(files: Any, **options: Any) -> Any:
        return extract_files((read.append(file.path) or file for file in files), **options)  # type: ignore[func-returns-value]

    (tree / "new.py").write_text("def ring_bell(cord):\n    cord.pull()\n")
    Index.build(tree, main.parent / "from-files", config=QUICK).close()
    Index.build(main, main / ".ncs", config=QUICK).close()
    monkeypatch.setattr(ingest, "extract_files", spy)
    Index.build(tree, tree / ".ncs", config=QUICK).close()
    assert read == ["new.py"]
    with Index.load(tree / ".ncs") as index, Index.load(main.parent / "from-files") as expected:
        rows = range(len(expected))
        assert index.documents.documents(rows) == expected.documents.documents(rows)
        assert index.description.counts["repositories"] == expected.description.counts["repositories"]
    assert main_work_tree(tree) == main
    assert main_work_tree(main) is None


def test_what_a_stranger_writes_into_git_takes_nothing_over(main: Path, tmp_path: Path) -> None:
    stranger = gitrepo.write(tmp_path / "clone", {**FILES, ".git": f"gitdir: {main}/.git/worktrees/w1\n"})
    assert main_work_tree(stranger) is None


def test_an_update_of_the_main_tree_does_not_swallow_one_that_is_new(main: Path) -> None:
    Index.build(main, main / ".ncs", config=QUICK).close()
    gitrepo.git(main, "worktree", "add", "-q", "-b", "w3", ".claude/worktrees/w3")
    index, changes = Index.update(main / ".ncs")
    index.close()
    assert not changes


def test_an_answer_from_the_index_of_another_tree_says_so(main: Path, tmp_path: Path) -> None:
    Index.build(main, main / ".ncs", config=QUICK).close()
    for tree in (main / INNER, main.parent / "w2"):
        run = invoke("query", "open door", "-i", str(main / ".ncs"), cwd=tree)
        text = (
            f"ncs: this index is of {main}, another work tree of this repository; make one of this tree: ncs build .\n"
        )
        assert run.stderr == text
        assert "open_door" in run.stdout
        run = invoke("query", "open door", "--json", "-i", str(main / ".ncs"), cwd=tree)
        assert json.loads(run.stdout)["notes"] == [text.removeprefix("ncs: ").rstrip()]
        run = invoke("query", "open door", cwd=tree, NCS_INDEX=str(main / ".ncs"))
        assert run.stderr.startswith("ncs: this index is of ")
    for folder in (main, main / "lib", tmp_path):
        assert invoke("query", "open door", "-i", str(main / ".ncs"), cwd=folder).stderr == ""
