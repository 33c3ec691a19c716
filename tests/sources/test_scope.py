"""Walks over the part of the disk in which something changed."""

from __future__ import annotations

import random
import shutil
import zipfile
from pathlib import Path

import pytest

from ncs.sources import Scope, repository_names, walk
from tests.gitrepo import bare, commit, git, repository, write, zipped
from tests.sources.walked import is_java


class Table:
    """The files of an index: what an update compares a walk with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = {(file.repository, file.path): file for file in walk([root], readable=is_java)}

    def update(self, scope: Scope | None) -> int:
        """Take over what a walk of this scope says; how many contents were read."""
        origins = {file.origin: file for file in self.files.values()}
        names = repository_names((r, p, file.origin.place) for (r, p), file in self.files.items() if file.origin)
        walked, read = {}, 0
        for file in walk([self.root], readable=is_java, scope=scope, names=names, is_unchanged=lambda o: o in origins):
            assert file.origin is not None
            walked[file.repository, file.path] = origins[file.origin] if file.unchanged else file
            read += not file.unchanged
        stay = {
            key: file
            for key, file in self.files.items()
            if scope is not None and file.origin is not None and not scope.covers(file.origin.place)
        }
        assert not stay.keys() & walked.keys()
        self.files = {**stay, **walked}
        return read

    def contents(self) -> dict[tuple[str, str], bytes]:
        return {key: file.data for key, file in self.files.items()}


def tree(root: Path) -> Path:
    archive = zipped({"p/E.java": "e", "p/F.java": "f"})
    write(root, {"Loose.java": "l", "a/A.java": "a", "a/b/B.java": "b", "c/C.java": "c", "z.zip": archive})
    repository(root / "one", {"A.java": "1", "src/B.java": "2"})
    repository(root / root.name, {"S.java": "same name"})
    bare(root / "two.git", {"D.java": "3"})
    return root


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_an_update_of_the_paths_that_changed_comes_to_what_a_whole_walk_does(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    root = tree(tmp_path / "root")
    table = Table(root)
    for n in range(25):
        folder = choose.choice([root, root / "a", root / "a" / "b", root / "new" / "er", root / "one" / "src"])
        path = folder / choose.choice(["A.java", "B.java", ".gitignore", ".ncsignore", "N.java"])
        kind = choose.random()
        if kind < 0.15 and folder != root:
            shutil.rmtree(folder, ignore_errors=True)
            path = folder
        elif kind < 0.35:
            path.unlink(missing_ok=True)
        else:
            rules = choose.choice(["A.java\n", "!A.java\n", "b/\n", "*.java\n", ""])
            write(folder, {path.name: rules if path.name.startswith(".") else f"class {n} {{}}"})
        table.update(Scope.of([str(path)]))
        assert table.contents() == Table(root).contents()


def test_unchanged_files_of_folders_git_and_archives_are_not_read_again(tmp_path: Path) -> None:
    table = Table(tree(tmp_path / "root"))
    assert len(table.files) == 10
    assert table.update(None) == 0
    (tmp_path / "root" / "a" / "A.java").write_text("changed")
    assert table.update(None) == 1
    assert table.contents() == Table(tmp_path / "root").contents()


def test_a_change_inside_a_repository_or_archive_concerns_all_of_it(tmp_path: Path) -> None:
    root = tree(tmp_path / "root")
    table = Table(root)

    def update(path: str) -> int:
        read = table.update(Scope.of([str(root / path)]))
        assert table.contents() == Table(root).contents()
        return read

    git(tmp_path, "clone", "-q", str(root / "two.git"), "work")
    commit(tmp_path / "work", {"D.java": "new", "G.java": "g"})
    git(tmp_path / "work", "push", "-q", "origin", "main")
    assert update("two.git/refs/heads/main") == 2
    with zipfile.ZipFile(root / "z.zip", "a") as archive:
        archive.writestr("p/H.java", "h")
    assert update("z.zip") == 3
    (root / "z.zip").unlink()
    assert update("z.zip") == 0
    write(root / "one", {".git/info/exclude": "src/\n"})
    assert update("one/.git/info/exclude") == 0


def test_a_repository_keeps_its_name_although_the_one_that_took_the_plain_name_is_not_walked(tmp_path: Path) -> None:
    table = Table(tree(tmp_path / "root"))
    assert ("root/root", "S.java") in table.files
    write(tmp_path / "root" / "root", {"S.java": "again", "T.java": "t"})
    table.update(Scope.of(str(tmp_path / "root" / "root" / name) for name in ("S.java", "T.java")))
    assert {path for name, path in table.files if name == "root/root"} == {"S.java", "T.java"}


def test_a_scope_covers_its_paths_and_what_lies_below_and_reaches_what_lies_above() -> None:
    scope = Scope.of(["/code/app/src", "/code/lib/.gitignore"])
    covered = ["/code/app/src", "/code/app/src/a/B.java", "/code/lib/C.java"]
    assert all(map(scope.covers, covered))
    assert not any(map(scope.covers, ["/code/app", "/code/app/src2", "/code/app/B.java", "/code"]))
    assert all(map(scope.reaches, ["/", "/code", "/code/app", *covered]))
    assert not scope.reaches("/code/other")
    assert not Scope.of([]).covers("/code/app")
    assert Scope.of(["/"]).covers("/code/app")
