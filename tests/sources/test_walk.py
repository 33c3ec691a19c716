"""Folders, roots, names and order."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.sources import SourceFile, count, walk
from tests.gitrepo import bare, commit, repository, write
from tests.rights import make_pipe, without_rights
from tests.sources.walked import is_java, walked


def test_the_files_of_a_folder_come_in_bytewise_order_of_their_whole_paths(tmp_path: Path) -> None:
    names = ["a/b.java", "a-b/c.java", "a.java", "a/C.java", "a/b/c.java", "Z.java", "ä.java", "a0/x.java", "😀.java"]
    files = walked(write(tmp_path / "tree", {**dict.fromkeys(names, "class A {}\r\n"), "B.txt": "no"}))
    assert files.names == [f"tree:{name}" for name in sorted(names, key=str.encode)]
    assert files.names[:3] == ["tree:Z.java", "tree:a-b/c.java", "tree:a.java"]
    assert files.files[0] == SourceFile("tree", "Z.java", b"class A {}\r\n")
    assert files.counts == {"other language": 1}


def test_every_git_directory_below_a_folder_is_a_repository_named_by_its_path(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"Loose.java": "", "group/Loose.java": ""})
    repository(root / "group" / "one", {"A.java": "", "inner/B.java": ""})
    repository(root / "group" / "one" / "nested", {"N.java": ""})
    repository(root / "group" / "one-more", {"M.java": ""})
    bare(root / "two.git", {"C.java": ""})
    bare(root / "deep" / "er" / "three", {"D.java": ""})
    names = walked(root).names
    assert names[:3] == ["root:Loose.java", "root:group/Loose.java", "deep/er/three:D.java"]
    assert names[3:6] == ["group/one:A.java", "group/one:inner/B.java", "group/one-more:M.java"]
    assert names[6:] == ["group/one/nested:N.java", "two:C.java"]


def test_repositories_of_the_same_name_are_told_apart_and_a_further_root_renames_none(tmp_path: Path) -> None:
    for above in ("x", "y", "z/x"):
        repository(tmp_path / above / "app", {"A.java": above})
    roots = [tmp_path / "x", tmp_path / "y", tmp_path / "z" / "x"]
    names = ["app:A.java", "y/app:A.java", "x/app:A.java"]
    for n in range(3):
        assert walked(*roots[: n + 1]).names == names[: n + 1]
        assert walked(*(root / "app" for root in roots[: n + 1])).names == names[: n + 1]
    write(tmp_path / "same", {"Loose.java": ""})
    repository(tmp_path / "same" / "same", {"A.java": ""})
    assert walked(tmp_path / "same").names == ["same:Loose.java", "same/same:A.java"]
    (tmp_path / "one").mkdir()
    bare(tmp_path / "one" / "app.git", {"A.java": ""})
    repository(tmp_path / "one" / "app", {"A.java": ""})  # both are called app, in one folder
    assert walked(tmp_path / "one").names == ["app:A.java", "one/app:A.java"]


def test_a_root_given_twice_or_inside_another_root_is_read_once(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"A.java": "", "sub/B.java": "", "sub/C.java": ""})
    whole = ["root:A.java", "root:sub/B.java", "root:sub/C.java"]
    assert walked(root, root, root / ".." / "root").names == whole
    assert walked(root, root / "sub").names == ["root:A.java", "sub:B.java", "sub:C.java"]
    assert walked(root, root / "sub" / "B.java").names == ["root:A.java", "root:sub/C.java", "sub:B.java"]


def test_links_and_special_files_are_counted_and_never_opened(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"a/A.java": "", "outside.txt": ""})
    (root / "a" / "loop").symlink_to(root, target_is_directory=True)
    (root / "self").symlink_to("self")
    (root / "Again.java").symlink_to("a/A.java")
    (root / "Nowhere.java").symlink_to("missing.java")
    make_pipe(root / "Pipe.java")
    (tmp_path / "link").symlink_to(root, target_is_directory=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "S.java"))
        assert walked(root).counts == {"links": 2, "other language": 3, "special files": 2}
        assert walked(tmp_path / "link").names == ["root:a/A.java"]


def bind(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a long path does not fit into an address
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(before)


ODD: dict[str, Callable[[Path], object]] = {
    "pipe": make_pipe,
    "socket": bind,
    "folder": Path.mkdir,
    **{target: partial(Path.symlink_to, target=target) for target in ("/dev/zero", "/dev/tty", "loop", "..")},
}
READ = (
    ".gitignore",
    ".ncsignore",
    ".git",
    "x.zip",
    "x.tar.gz",
    "X.java",
    ".git/config",
    ".git/info/exclude",
    ".git/HEAD",
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write(tmp_path_factory.mktemp("sound") / "root", {"A.java": "a", "sub/B.java": "b"})
    repository(root / "app", {"A.java": "a", "sub/B.java": "b"})
    return root


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("kind", ODD)
def test_no_file_that_is_opened_is_waited_for(sound: Path, tmp_path: Path, name: str, kind: str) -> None:
    root = shutil.copytree(sound, tmp_path / "root")
    app = root / "app"
    for folder in (root, root / "sub", app, app / "sub"):
        path = folder / name
        if not name.startswith(".git/") or folder == app:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            ODD[kind](path)
    walk = walked(root)
    assert {file.path for file in walk.files} >= {"A.java", "sub/B.java"}
    assert set(walk.data.values()) == {b"a", b"b"}
    assert walked(app / "sub").data == {"sub:B.java": b"b"}
    for place in (app / name, root / name):
        with suppress(SourceError):
            walked(place, force=True)


def test_folders_and_files_that_cannot_be_read_are_named_and_do_not_stop_a_walk() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = write(Path(folder), {"A.java": "", "b/B.java": "", "c/C.java": "", "D.java": ""})
        for path in (root / "b", root / "D.java"):
            path.chmod(0)
        with without_rights():
            files = walked(root)
        (root / "b").chmod(0o755)
    assert [file.path for file in files.files] == ["A.java", "c/C.java"]
    assert (files.skipped.unreadable, files.counts) == (["D.java", "b/"], {"unreadable": 2})


@pytest.mark.parametrize(
    ("files", "skipped"),
    [
        ({"node_modules/x/A.java": "", "a/third_party/B.java": "", "a/Pods/C.java": ""}, {"vendored folders": 3}),
        ({"env/pyvenv.cfg": "", "env/lib/A.java": ""}, {"vendored folders": 1}),
        ({"__pycache__/A.java": "", ".gradle/B.java": ""}, {"cache folders": 2}),
        ({"app/build/generated/source/A.java": "", "app/build/Build.java": ""}, {"generated folders": 1}),
        ({"index/snapshot.json": "{}", "index/segments/1/A.java": ""}, {"index folders": 1}),
        ({".git2/A.java": "", ".ncs/B.java": "", ".hg/C.java": "", ".svn/D.java": ""}, {}),
        ({"A.java": b"\x00\x01class A {}", "B.java": b"class B {} \x00"}, {"binary": 2}),
        ({"A.java": "x" * (1 << 20), "B.java": "x" * ((1 << 20) + 1)}, {"minified": 1, "too large": 1}),
        ({"main/java/com/acme/vendor/Seller.java": "", "vendor/com/acme/Copy.java": ""}, {"vendored folders": 1}),
    ],
)
def test_what_the_owner_did_not_write_is_counted_by_reason(
    tmp_path: Path, files: dict[str, str], skipped: dict[str, int]
) -> None:
    assert walked(write(tmp_path / "site-packages", files)).counts == skipped  # the root may have any name


def test_a_single_file_is_read_whatever_it_looks_like(tmp_path: Path) -> None:
    generated = "// Code generated by aapt; DO NOT EDIT."
    write(tmp_path / "src", {"R.java": generated, "notes.txt": ""})
    assert walked(tmp_path / "src" / "R.java").data == {"src:R.java": generated.encode()}
    with pytest.raises(SourceError, match=r"notes\.txt is no source file of a known language; name a folder"):
        walked(tmp_path / "src" / "notes.txt")


def test_roots_are_checked_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write(tmp_path / "home" / "me", {"A.java": "", "project/B.java": ""})
    (home / "loop").symlink_to("loop")
    for name in ("nowhere", "loop"):
        with pytest.raises(SourceError, match=rf"there is no .*{name}; name a folder"):
            walk([home, home / name], readable=is_java)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(home)
    for root in (home, home.parent, Path("/"), Path()):
        for function in (walk, count):
            with pytest.raises(SourceError, match="use --force"):
                function([root], readable=is_java)
    assert walked(home, force=True).names == ["me:A.java", "me:project/B.java"]
    assert walked(home / "project").names == ["project:B.java"]


def test_the_count_is_what_a_walk_reads_before_it_looks_into_the_files(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"A.java": "12345", "B.java": "// @generated", "b.txt": "", "vendor/C.java": ""})
    repository(root / "one", {"D.java": "123"})
    bare(root / "two.git", {"E.java": "1234567"})
    assert count([root], readable=is_java) == (4, {"root": 5 + 13, "one": 3, "two": 7})
    assert sum(len(file.data) for file in walked(root).files) == 5 + 3 + 7


def test_the_rules_of_a_repository_hold_in_a_folder_of_it_that_is_the_root(tmp_path: Path) -> None:
    app = repository(tmp_path / "app", {"src/A.java": "", "src/gen/B.java": "", "src/own/C.java": "", "src/D.java": ""})
    write(app, {".gitignore": "/src/gen/\nD.java\n", "src/.gitignore": "!D.java\n", ".ncsignore": "own/\n"})
    (app / ".git" / "info" / "exclude").write_text("A.java\n")
    assert walked(app / "src").names == ["src:D.java"]
    assert walked(app / "src" / "gen").names == ["gen:B.java"]  # named by itself
    commit(app)
    assert walked(app / "src", revision="HEAD").names == ["src:A.java", "src:D.java", "src:gen/B.java"]
