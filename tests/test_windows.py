"""What Windows has otherwise, as far as Linux can tell: drives, backslashes, shares, and its errors."""

from __future__ import annotations

import io
import json
import ntpath
import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path, PureWindowsPath
from socket import gethostname
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

import ncs.build.watch
import ncs.cli.main
import ncs.search.locate_source
import ncs.serve.http.app
import ncs.serve.mcp.places
import ncs.serve.mcp.projects
import ncs.serve.terminal
import ncs.sources.files
import ncs.sources.filters
import ncs.sources.roots
import ncs.storage.files
import ncs.storage.filters
from ncs.build.watch import Follower
from ncs.cli.hits import uri_of
from ncs.index import Index
from ncs.search.locate_source import SourceLocator
from ncs.serve.editors import editor_command
from ncs.serve.http.app import listen
from ncs.serve.mcp.places import filters
from ncs.serve.mcp.projects import Project, Settings
from ncs.serve.terminal import from_here
from ncs.sources.files import Origin
from ncs.sources.filters import Scope
from ncs.sources.repositories import is_address
from ncs.sources.roots import repository_names
from ncs.storage.documents import database_uri
from ncs.storage.files import FileEntry, FileTable, full_place, stored_place
from ncs.storage.filters import Filters
from ncs.storage.freshness import _stamp, _stamp_above
from tests import gitrepo
from tests.command import invoke
from tests.sources.walked import walked


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The separator and the paths of Windows in the modules that handle paths as strings."""
    modules: list[ModuleType] = [
        *(ncs.serve.terminal, ncs.sources.files, ncs.sources.filters, ncs.sources.roots, ncs.storage.files),
        *(ncs.build.watch, ncs.search.locate_source, ncs.serve.http.app, ncs.serve.mcp.places, ncs.storage.filters),
    ]
    for module in modules:
        monkeypatch.setattr(module, "os", SimpleNamespace(**{**vars(os), "name": "nt", "sep": "\\", "path": ntpath}))


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("place", "home", "stored"),
    [
        (r"C:\code\app\src\a.py", r"C:\code\app", r"src\a.py"),
        (r"C:\code\app2\a.py", r"C:\code\app", r"C:\code\app2\a.py"),
        (r"D:\code\app\a.py", r"C:\code\app", r"D:\code\app\a.py"),
        (r"\\server\share\app\a.py", r"\\server\share\app", "a.py"),
        (r"\\server\share\b\a.py", r"C:\code\app", r"\\server\share\b\a.py"),
        ("C:\\a.py", "C:\\", "C:\\a.py"),
        ("s3://bucket/a.py", r"C:\code", "s3://bucket/a.py"),
    ],
)
def test_a_place_is_stored_relative_to_the_project_and_comes_back_whole(place: str, home: str, stored: str) -> None:
    assert stored_place(place, home) == stored
    assert full_place(stored, home) == place


class EntryOfWindows:
    """An entry of a folder; `loop` is a junction."""

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry = entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def is_junction(self) -> bool:
        return self._entry.name == "loop"


def test_a_junction_is_no_more_followed_than_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def scandir(folder: str) -> Iterator[Iterator[EntryOfWindows]]:
        with os.scandir(folder) as entries:
            yield map(EntryOfWindows, entries)

    gitrepo.write(tmp_path, {"A.java": "class A {}", "below/B.java": "class B {}", "loop/A.java": "class A {}"})
    monkeypatch.setattr(ncs.sources.roots, "os", SimpleNamespace(**{**vars(os), "scandir": scandir}))
    assert [file.path for file in walked(tmp_path).files] == ["A.java", "below/B.java"]


@pytest.mark.usefixtures("windows")
def test_the_folder_of_a_repository_is_known_by_its_files() -> None:
    files = [
        ("app", "src/A.java", r"C:\code\app\src\A.java"),
        ("b", "B.java", r"\\server\share\b\B.java"),
        ("lib", "src/B.java", r"C:\code\lib.zip/src/B.java"),  # in an archive
    ]
    assert repository_names(files) == {
        r"C:\code\app": "app", r"\\server\share\b": "b", r"C:\code\lib.zip": "lib",
    }  # fmt: skip


@pytest.mark.usefixtures("windows")
def test_a_scope_covers_what_lies_below_its_folders_on_its_drive() -> None:
    scope = Scope(frozenset({r"C:\code\app"}), frozenset({r"C:\code", "C:\\"}))
    places = [r"C:\code\app", r"C:\code\app\src\a.py", r"C:\code\app2\a.py", r"D:\code\app\a.py", r"C:\code"]
    assert [scope.covers(place) for place in places] == [True, True, False, False, False]
    assert [scope.reaches(place) for place in places] == [True, True, False, False, True]


@pytest.mark.usefixtures("windows")
def test_a_file_of_an_archive_lies_below_the_archive() -> None:
    origin = Origin.within(PureWindowsPath(r"C:\code\a.zip"), "src/a.py", "1")
    assert origin == (r"C:\code\a.zip\src\a.py", "1")
    assert Scope(frozenset({r"C:\code\a.zip"}), frozenset()).covers(origin.place)


@pytest.mark.usefixtures("windows")
def test_a_question_is_put_to_one_folder(demo_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, locator, folder = ("src/a.py", "tools/b.py"), SourceLocator(demo_index.snapshot), PureWindowsPath(r"C:\app")
    files = [FileEntry("app", path, str(folder / path), "1:2:3", b"0" * 16, 1) for path in paths]
    locator.__dict__["_tables"] = [(FileTable.of(files, np.zeros((2, 2), np.int64)), np.zeros(0, np.int64))]
    monkeypatch.setattr(ncs.search.locate_source, "Path", PureWindowsPath)
    below: list[Any] = [folder / "src", folder, folder / "doc"]
    assert [locator.within(path) for path in below] == [[("app", "src")], [("app", "")], []]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("filters", [Filters(path=r"src\main"), Filters(glob=(r"src\*.java", r"src\main\**"))])
def test_globs_are_written_with_backslashes(filters: Filters) -> None:
    passes = filters.locations(several=False)
    assert passes
    assert [passes("app", path) for path in ("src/main/A.java", "lib/main/A.java")] == [True, False]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("path", "glob"),
    [(r"C:\app\src", "src"), (r"c:\App\src", "src"), (r"src\b", "src/b"), ("C:\\app", None), (None, None)],
)
def test_an_agent_names_a_folder_with_backslashes(
    demo_index: Index, tmp_path: Path, path: str | None, glob: str | None
) -> None:
    root: Any = PureWindowsPath(r"C:\app")
    assert filters(Project("app", root, Settings(), tmp_path), demo_index, path) == (None, glob)


@pytest.mark.filterwarnings("ignore:.*nturl2path:DeprecationWarning")
@pytest.mark.parametrize("uri", ["file:///c%3A/my%20app", "file:///c:/my%20app"])  # VS Code's, and others'
def test_a_root_of_an_agent_is_a_folder_on_its_drive(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncs.serve.mcp.projects, "Path", PureWindowsPath)
    monkeypatch.setattr(ncs.serve.mcp.projects, "url2pathname", import_module("nturl2path").url2pathname)
    assert str(ncs.serve.mcp.projects.path_of(uri)) == r"C:\my app"


@pytest.mark.usefixtures("windows")
def test_edits_of_the_index_and_of_git_are_not_watched(demo: Path) -> None:
    follower = Follower(demo / ".ncs", print)
    edited = [str(demo / path).replace("/", "\\") for path in (".ncs/seen.json", ".git/HEAD", "repos/a.py")]
    assert [follower._is_relevant(path) for path in edited] == [False, False, True]


@pytest.mark.usefixtures("windows")
def test_the_port_of_a_server_that_runs_is_not_shared() -> None:
    with closing(listen("127.0.0.1", 0)) as listening:
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 0


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (r"C:\Users\me\app\src\a.py", r"src\a.py"),
        (r"c:\Users\me\lib\a.py", r"..\lib\a.py"),
        (r"C:\Windows\a.py", r"C:\Windows\a.py"),
        (r"D:\Users\me\a.py", r"D:\Users\me\a.py"),
        (r"\\server\share\Users\a.py", r"\\server\share\Users\a.py"),
    ],
)
def test_a_path_is_shown_from_here_or_whole_on_another_drive(path: str, shown: str) -> None:
    assert from_here(PureWindowsPath(path), PureWindowsPath(r"C:\Users\me\app")) == shown


@pytest.mark.filterwarnings("ignore:pathlib.PurePath.as_uri:DeprecationWarning")  # of 3.14; real paths are no pure ones
def test_a_link_names_this_host_or_the_server_of_a_share() -> None:
    assert uri_of(PureWindowsPath(r"C:\my code\a.py")) == f"file://{gethostname()}/C:/my%20code/a.py"
    assert uri_of(PureWindowsPath(r"\\server\share\a.py")) == "file://server/share/a.py"


@pytest.mark.filterwarnings("ignore:pathlib.PurePath.as_uri:DeprecationWarning")  # of 3.14; real paths are no pure ones
def test_a_database_on_a_share_is_opened_by_an_address_without_a_host(tmp_path: Path) -> None:
    drive, share = (
        database_uri(PureWindowsPath(path)) for path in (r"C:\my code\d.sqlite", r"\\server\share\d.sqlite")
    )
    assert drive == "file:///C:/my%20code/d.sqlite?mode=ro&immutable=1"
    assert share == "file:////server/share/d.sqlite?mode=ro&immutable=1"
    path = tmp_path / "d.sqlite"
    sqlite3.connect(path).close()
    sqlite3.connect(database_uri(path).replace("file:///", "file:////"), uri=True).close()
    with pytest.raises(sqlite3.OperationalError, match="invalid uri authority"):
        sqlite3.connect("file://server/share/d.sqlite?mode=ro", uri=True)


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        (r"C:\Windows\notepad.exe", [r"C:\Windows\notepad.exe", r"C:\a b.py"]),
        (
            r'"C:\Program Files\Code\Code.exe" --wait',
            [r"C:\Program Files\Code\Code.exe", "--wait", "-g", r"C:\a b.py:7"],
        ),
        ("'C:/Program Files/Vim/vim.exe'", ["C:/Program Files/Vim/vim.exe", "+7", r"C:\a b.py"]),
    ],
)
def test_an_editor_is_named_by_a_path_with_backslashes(editor: str, command: list[str]) -> None:
    assert editor_command(editor, PureWindowsPath(r"C:\a b.py"), 7, windows=True) == command


def test_typer_replaces_nothing_in_globs_and_questions(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typer.core, "os", SimpleNamespace(**{**vars(os), "name": "nt"}))
    (tmp_path / "a.java").touch()
    (tmp_path / "b.java").touch()
    options = ("--json", "-k", "1", "-g", "*.java", "-i", str(demo / ".ncs"))
    found = invoke("query", *options, "hide $HOME keyboard", cwd=tmp_path)
    assert "hideSoftKeyboard" in found.stdout
    assert json.loads(found.stdout)["query"] == "hide $HOME keyboard"


class TerminalText(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


def test_ncs_alone_searches_as_you_type_in_a_terminal_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ncs.cli.main, "os", SimpleNamespace(**{**vars(os), "name": "nt"}))
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.setattr(sys, "argv", ["ncs"])
    monkeypatch.chdir(tmp_path)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, TerminalText())
    with pytest.raises(SystemExit):
        ncs.cli.main.main()
    assert sys.argv == ["ncs", "tui"]


def test_a_drive_is_no_address() -> None:
    assert [is_address(Path(root)) for root in ("C:/code", r"C:\code", "c:/code", "s3://bucket")] == [False] * 3 + [
        True
    ]


def test_a_file_in_an_archive_has_the_stamp_of_the_archive_whatever_error_the_system_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"1234")
    lstat = os.lstat

    def windows_lstat(path: str) -> os.stat_result:
        try:
            return lstat(path)
        except NotADirectoryError as error:
            raise FileNotFoundError(*error.args) from error

    monkeypatch.setattr(os, "lstat", windows_lstat)
    assert (_stamp(f"{archive}/src/a.py"), _stamp(str(tmp_path / "gone/a.py"))) == (None, "")
    assert _stamp_above(f"{archive}/src").startswith("4:")
