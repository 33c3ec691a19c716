"""Folders, roots, names and order."""

from __future__ import annotations

import builtins
import os
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.sources import Limits, Skipped, SourceFile, count, walk
from tests.gitrepo import bare, commit, git, repository, write


def is_java(path: str) -> bool:
    return path.endswith(".java")


def read(*roots: Path, skipped: Skipped | None = None, limits: Limits | None = None) -> list[SourceFile]:
    return list(walk(roots, wanted=is_java, skipped=skipped, limits=limits or Limits()))


def places(*roots: Path, skipped: Skipped | None = None) -> list[str]:
    return [f"{file.repository}: {file.path}" for file in read(*roots, skipped=skipped)]


def counts(*roots: Path, limits: Limits | None = None) -> dict[str, int]:
    skipped = Skipped()
    read(*roots, skipped=skipped, limits=limits)
    return dict(skipped.counts)


def test_the_files_of_a_folder_come_in_bytewise_order_of_their_whole_paths(tmp_path: Path) -> None:
    names = ["a/b.java", "a-b/c.java", "a.java", "a/B.java", "a/b/c.java", "Z.java", "ä.java", "a0/x.java", "😀.java"]
    write(tmp_path / "tree", dict.fromkeys(names, "class A {}"))
    paths = [file.path for file in read(tmp_path / "tree")]
    assert paths == sorted(names, key=lambda name: name.encode())
    assert paths[:3] == ["Z.java", "a-b/c.java", "a.java"]


def test_content_and_repository_name_are_what_lies_on_disk(tmp_path: Path) -> None:
    write(tmp_path / "tree", {"src/A.java": "class A {}\r\n", "B.txt": "no"})
    assert read(tmp_path / "tree") == [SourceFile("tree", "src/A.java", b"class A {}\r\n")]
    assert counts(tmp_path / "tree") == {"other language": 1}


def test_every_git_directory_below_a_folder_is_a_repository_named_by_its_path(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"Loose.java": "", "group/Loose.java": ""})
    repository(root / "group" / "one", {"A.java": "", "inner/B.java": ""})
    repository(root / "group" / "one" / "nested", {"N.java": ""})
    repository(root / "group" / "one-more", {"M.java": ""})
    bare(root / "two.git", {"C.java": ""})
    bare(root / "deep" / "er" / "three", {"D.java": ""})
    assert places(root) == [
        "root: Loose.java",
        "root: group/Loose.java",
        "deep/er/three: D.java",
        "group/one: A.java",
        "group/one: inner/B.java",
        "group/one-more: M.java",
        "group/one/nested: N.java",
        "two: C.java",
    ]


def test_a_repository_as_root_is_named_after_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "app", {"A.java": ""})
    bare(tmp_path / "lib.git", {"B.java": ""})
    assert places(tmp_path / "app") == ["app: A.java"]
    assert places(tmp_path / "lib.git") == ["lib: B.java"]
    monkeypatch.chdir(tmp_path / "app")
    assert places(Path()) == ["app: A.java"]


def test_repositories_that_are_called_the_same_get_different_names(tmp_path: Path) -> None:
    for above in ("x", "y", "z/x"):
        repository(tmp_path / above / "app", {"A.java": above})
    roots = [tmp_path / "x", tmp_path / "y", tmp_path / "z" / "x", tmp_path / "x" / "app"]
    assert places(*roots[:3]) == ["app: A.java", "y/app: A.java", "x/app: A.java"]
    write(tmp_path / "same", {"Loose.java": ""})
    repository(tmp_path / "same" / "same", {"A.java": ""})
    assert places(tmp_path / "same") == ["same: Loose.java", "same/same: A.java"]
    for above in ("1", "2", "3"):
        repository(tmp_path / above / "app", {"A.java": above})
    three = [tmp_path / above / "app" for above in "123"]
    assert places(*three) == ["app: A.java", "2/app: A.java", "3/app: A.java"]
    assert places(*three[:2]) == places(*three)[:2]  # a further root renames none
    assert places(tmp_path / "x" / "app", tmp_path / "y" / "app", tmp_path / "z" / "x" / "app") == [
        "app: A.java",
        "y/app: A.java",
        "x/app: A.java",
    ]


def test_repositories_below_folders_of_one_name_are_told_apart_by_the_folders_above(tmp_path: Path) -> None:
    for above in ("a/x", "b/x", "c/x"):
        repository(tmp_path / above / "app", {"A.java": above})
    roots = [tmp_path / above / "x" / "app" for above in "abc"]
    assert places(*roots) == ["app: A.java", "x/app: A.java", "c/x/app: A.java"]
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "app.git").mkdir()
    bare(tmp_path / "one" / "app.git", {"A.java": ""})
    repository(tmp_path / "one" / "app", {"A.java": ""})  # both are called app, in one folder
    assert places(tmp_path / "one") == ["app: A.java", "one/app: A.java"]


def test_a_root_given_twice_or_inside_another_root_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "root", {"A.java": "", "sub/B.java": "", "sub/C.java": ""})
    root, sub = tmp_path / "root", tmp_path / "root" / "sub"
    assert places(root, root, tmp_path / "root" / ".." / "root") == [
        "root: A.java",
        "root: sub/B.java",
        "root: sub/C.java",
    ]
    assert places(root, sub) == ["root: A.java", "sub: B.java", "sub: C.java"]
    assert places(root, sub / "B.java") == ["root: A.java", "root: sub/C.java", "sub: B.java"]
    assert places(sub / "B.java", sub / "C.java") == ["sub: B.java", "sub: C.java"]


def test_a_submodule_and_a_worktree_are_repositories_of_their_own_and_read_once(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", {"L.java": ""})
    app = repository(tmp_path / "root" / "app", {"A.java": ""})
    git(app, "submodule", "--quiet", "add", str(library), "lib")
    git(app, "worktree", "add", "-q", str(tmp_path / "root" / "tree"), "-b", "other")
    assert (app / "lib" / ".git").is_file()
    assert places(tmp_path / "root") == ["app: A.java", "app/lib: L.java", "tree: A.java"]
    assert places(tmp_path / "root" / "tree") == ["tree: A.java"]


def test_the_ignore_file_of_a_git_directory_holds_in_its_worktrees_too(tmp_path: Path) -> None:
    app = repository(tmp_path / "app", {"A.java": "", "B.java": ""})
    git(app, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    (app / ".git" / "info" / "exclude").write_text("B.java\n")
    assert places(app) == ["app: A.java"]
    assert places(tmp_path / "tree") == ["tree: A.java"]


def test_links_are_counted_and_not_followed_so_loops_end(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"a/A.java": "", "outside.txt": ""})
    (root / "a" / "loop").symlink_to(root, target_is_directory=True)
    (root / "self").symlink_to("self")
    (root / "Again.java").symlink_to("a/A.java")
    (root / "Nowhere.java").symlink_to("missing.java")
    assert places(root) == ["root: a/A.java"]
    assert counts(root) == {"links": 2, "other language": 3}
    (tmp_path / "link").symlink_to(root, target_is_directory=True)
    assert places(tmp_path / "link") == ["root: a/A.java"]


def test_pipes_and_sockets_are_counted_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Pipe.java")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "S.java"))
        assert counts(tmp_path) == {"special files": 2}


def test_what_cannot_be_read_is_counted_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "root", {"A.java": "", "gone/B.java": "", "shut/C.java": ""})
    really, scandir = builtins.open, os.scandir

    def vanished(path: str, *arguments: object, **options: object) -> object:
        if str(path).endswith("B.java"):
            raise FileNotFoundError(2, "gone")
        return really(path, *arguments, **options)  # type: ignore[call-overload]

    def denied(path: str) -> object:
        if path.endswith("shut"):
            raise PermissionError(13, "denied")
        return scandir(path)

    monkeypatch.setattr(builtins, "open", vanished)  # root may read everything, so the refusal has to be made
    monkeypatch.setattr(os, "scandir", denied)
    skipped = Skipped()
    assert places(tmp_path / "root", skipped=skipped) == ["root: A.java"]
    assert skipped.counts == {"unreadable": 2}
    assert skipped.unreadable == ["gone/B.java", "shut/"]


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="users and modes of POSIX")
def test_folders_and_files_without_permission_do_not_stop_a_walk() -> None:
    script = (
        "import os, sys; from pathlib import Path; from ncs.sources import Skipped, walk\n"
        "os.getuid() or os.setuid(65534)\n"  # the superuser may read everything
        "s = Skipped(); f = [x.path for x in walk([Path(sys.argv[1])], wanted=lambda p: True, skipped=s)]\n"
        "print(f, s.unreadable)"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = write(Path(folder), {"A.java": "", "b/B.java": "", "c/C.java": "", "D.java": ""})
        for path in (root / "b", root / "D.java"):
            path.chmod(0)
        done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
        (root / "b").chmod(0o755)
    assert done.stdout.strip() == "['A.java', 'c/C.java'] ['D.java', 'b/']"


def test_names_that_are_no_utf_8_are_read_and_shown_with_escapes(tmp_path: Path) -> None:
    for name in (b"caf\xe9.java", b"z.java", b"\xff\xfe.java"):
        (tmp_path / os.fsdecode(name)).write_text("class A {}")
    paths = [file.path for file in read(tmp_path)]
    assert paths == [r"caf\xe9.java", "z.java", r"\xff\xfe.java"]
    assert "".join(paths).encode().decode() == "".join(paths)


@pytest.mark.parametrize(
    ("files", "left_out"),
    [
        ({"node_modules/x/A.java": "", "a/third_party/B.java": "", "a/Pods/C.java": ""}, {"vendored folders": 3}),
        ({"env/pyvenv.cfg": "", "env/lib/A.java": ""}, {"vendored folders": 1}),
        ({"__pycache__/A.java": "", ".gradle/B.java": ""}, {"cache folders": 2}),
        ({"app/build/generated/source/A.java": "", "app/build/Build.java": ""}, {"generated folders": 1}),
        ({"index/manifest.json": "{}", "index/data-1/A.java": ""}, {"index folders": 1}),
        ({".git2/A.java": "", ".ncs/B.java": "", ".hg/C.java": "", ".svn/D.java": ""}, {}),
        ({"R.java": "", "BuildConfig.java": "", "XR.java": "", "DaggerAppComponent.java": ""}, {"generated": 3}),
        ({"A.java": b"\x00\x01class A {}", "B.java": b"class B {} \x00"}, {"binary": 2}),
        ({"A.java": "x" * (1 << 20), "B.java": "x" * ((1 << 20) + 1)}, {"minified": 1, "too large": 1}),
    ],
)
def test_what_is_not_written_by_the_owner_is_counted_by_reason(
    tmp_path: Path, files: dict[str, str], left_out: dict[str, int]
) -> None:
    assert counts(write(tmp_path / "root", files)) == left_out


def test_only_folders_below_the_root_make_a_file_vendored(tmp_path: Path) -> None:
    write(tmp_path / "site-packages", {"a/A.java": "", "vendor/B.java": ""})
    assert places(tmp_path / "site-packages") == ["site-packages: a/A.java"]
    write(tmp_path / "src", {"main/java/com/acme/vendor/Seller.java": "", "vendor/com/acme/Copy.java": ""})
    assert places(tmp_path / "src") == ["src: main/java/com/acme/vendor/Seller.java"]


def test_the_size_limit_is_the_callers(tmp_path: Path) -> None:
    write(tmp_path, {"A.java": "1234567", "B.java": "12345678"})
    assert [file.path for file in read(tmp_path, limits=Limits(file_bytes=7))] == ["A.java"]
    assert counts(tmp_path, limits=Limits(file_bytes=7)) == {"too large": 1}


def test_a_byte_order_mark_is_taken_off_and_utf_16_becomes_utf_8(tmp_path: Path) -> None:
    write(tmp_path, {"A.java": b"\xef\xbb\xbfclass A {}", "B.java": "class Ä {}\r\n".encode("utf-16")})
    assert [file.data for file in read(tmp_path)] == [b"class A {}", "class Ä {}\r\n".encode()]


def test_a_single_file_is_read_whatever_it_looks_like(tmp_path: Path) -> None:
    write(tmp_path / "src", {"R.java": "// Code generated by aapt; DO NOT EDIT.", "notes.txt": ""})
    assert read(tmp_path / "src" / "R.java") == [
        SourceFile("src", "R.java", b"// Code generated by aapt; DO NOT EDIT.")
    ]
    with pytest.raises(SourceError, match=r"notes\.txt is no source file of a known language; name a folder"):
        read(tmp_path / "src" / "notes.txt")


def test_a_missing_root_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no .*nowhere; name a folder"):
        walk([tmp_path, tmp_path / "nowhere"], wanted=is_java)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SourceError, match=r"there is no .*loop; name a folder"):
        walk([tmp_path / "loop"], wanted=is_java)


def test_a_home_folder_and_all_above_it_are_refused_without_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write(tmp_path / "home" / "me", {"A.java": "", "project/B.java": ""})
    monkeypatch.setenv("HOME", str(home))
    for root in (home, home.parent, Path("/")):
        with pytest.raises(SourceError, match="use --force"):
            walk([root], wanted=is_java)
        with pytest.raises(SourceError, match="use --force"):
            count([root], wanted=is_java)
    assert [file.path for file in walk([home], wanted=is_java, force=True)] == ["A.java", "project/B.java"]
    assert [file.path for file in walk([home / "project"], wanted=is_java)] == ["B.java"]
    monkeypatch.chdir(home)
    with pytest.raises(SourceError, match="use --force"):
        walk([Path()], wanted=is_java)


def test_the_count_is_what_a_walk_reads_before_it_looks_into_the_files(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"A.java": "12345", "B.java": "// @generated", "b.txt": "", "vendor/C.java": ""})
    repository(root / "one", {"D.java": "123"})
    bare(root / "two.git", {"E.java": "1234567"})
    assert count([root], wanted=is_java) == (4, 5 + 13 + 3 + 7)
    assert sum(len(file.data) for file in read(root)) == 5 + 3 + 7


def test_two_walks_over_a_shuffled_copy_are_the_same(tmp_path: Path) -> None:
    random_ = random.Random(1)
    names = sorted({f"{random_.choice('abc')}/{random_.choice('a-.b')}{n % 7}/F{n}.java" for n in range(60)})
    for copy in ("one", "two"):
        random_.shuffle(names)
        write(tmp_path / copy / "root", {name: name for name in names})
    one, two = (read(tmp_path / copy / "root") for copy in ("one", "two"))
    assert one == two
    assert len(one) == 60


def test_a_walk_can_be_left_early(tmp_path: Path) -> None:
    bare(tmp_path / "big.git", {f"F{n}.java": "x;\n" * 3000 for n in range(200)})
    assert next(walk([tmp_path], wanted=is_java)).path == "F0.java"


def _paths(files: Sequence[SourceFile]) -> list[str]:
    return [file.path for file in files]


def test_the_rules_of_a_repository_hold_in_a_folder_of_it_that_is_the_root(tmp_path: Path) -> None:
    app = repository(tmp_path / "app", {"src/A.java": "", "src/gen/B.java": "", "src/own/C.java": "", "src/D.java": ""})
    write(app, {".gitignore": "/src/gen/\nD.java\n", "src/.gitignore": "!D.java\n", ".ncsignore": "own/\n"})
    (app / ".git" / "info" / "exclude").write_text("A.java\n")
    assert _paths(read(app / "src")) == ["D.java"]
    assert _paths(read(app / "src" / "gen")) == ["B.java"]  # asked for by name
    commit(app)
    assert _paths(list(walk([app / "src"], wanted=is_java, revision="HEAD"))) == ["A.java", "D.java", "gen/B.java"]
