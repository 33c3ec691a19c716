"""Which indexes are trusted: those that this user signed, where they are; and what becomes of the others."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncs.build.pipeline import add_rankers
from ncs.build.request import request_of
from ncs.errors import BadInput, IndexFolderError, NcsError
from ncs.extract import extract
from ncs.index import Index
from ncs.storage.commit import open_writer
from ncs.storage.snapshot import SNAPSHOT, find_index, read_description
from ncs.storage.trust import KEY_BYTES, UNSIGNED, distrust, is_own, key_file, stored_root
from tests import gitrepo
from tests.command import invoke
from tests.corpus import QUICK
from tests.rights import make_pipe
from tests.snapshots import alter, change
from tests.storage import small_index
from tests.waiting import LONG

CODE = "def open_door(key):\n    return key.turn()\n\n\ndef close_door(key):\n    key.turn_back()\n"
ALTERED = "another user or machine made it, or it was altered"
posix = pytest.mark.skipif(os.name == "nt", reason="owners and rights of POSIX")
root_only = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with its index in `.ncs`, to be copied."""
    folder = gitrepo.write(tmp_path_factory.mktemp("original") / "project", {"door.py": CODE})
    Index.build(folder, folder / ".ncs", config=QUICK).close()
    return folder


@pytest.fixture
def project(original: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(original, tmp_path / "project")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder for state of a new user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def reason(folder: Path) -> str:
    """Why the index in a folder is not trusted."""
    return distrust(folder, read_description(folder))


def test_no_value_of_snapshot_json_can_be_changed(project: Path) -> None:
    content = json.loads((project / ".ncs" / SNAPSHOT).read_bytes())
    assert reason(project / ".ncs") == ""
    others = {int: 7, str: "x", dict: {"x": 1}, list: ["x"], type(None): "000009"}
    keys = [key for key in content if key not in ("format", "signature")]
    for key in keys:
        wrong = dict(content) | {key: others[type(content[key])]}
        if key == "segments":
            wrong[key] = [[name, documents + 1] for name, documents in content[key]]
        elif key == "statistics":
            wrong[key] = "000009"
        elif key == "files":
            wrong[key] = {**content[key], "segments/000001/x": {"bytes": 0, "blake2b": ""}}
        (project / ".ncs" / SNAPSHOT).write_text(json.dumps(wrong))
        assert reason(project / ".ncs") == ALTERED, key
    for signature in ("", None, "é", content["signature"][:-1], content["signature"].upper()):
        (project / ".ncs" / SNAPSHOT).write_text(json.dumps({**content, "signature": signature}))
        assert reason(project / ".ncs") == (ALTERED if signature else UNSIGNED)
    (project / ".ncs" / SNAPSHOT).write_text(json.dumps(content, indent=3))  # how it is written is no matter
    assert reason(project / ".ncs") == ""


def test_a_moved_index_reads_no_sources_and_no_models_from_elsewhere(project: Path, tmp_path: Path) -> None:
    def check(edit: Callable[[dict[str, Any]], object], expected: str) -> None:
        for folder, at in ((project, ""), (shutil.copytree(project, tmp_path / "there", dirs_exist_ok=True), expected)):
            change(folder / ".ncs", lambda content: (edit(content), content.update(folder=str(project / ".ncs"))))
            assert reason(folder / ".ncs") == at
        if expected:
            with pytest.raises(NcsError, match=expected):
                Index.update(tmp_path / "there" / ".ncs")

    (tmp_path / "secret").mkdir()
    outside = "it was moved, and has sources elsewhere"
    check(lambda content: content["config"].update(rankers=["two_field"]), "")
    for root in (str(tmp_path / "secret"), str(project)):
        check(lambda content, root=root: content["counts"]["sources"].update(roots=[".", root]), outside)  # type: ignore[misc]
    model = "it was moved, and uses a model from elsewhere"
    check(lambda content: content["config"].update(rankers=["endpoint:url=http://127.0.0.1:9/"]), model)
    check(lambda content: content["config"].update(rankers=["transformers:model=a/b"]), model)
    check(lambda content: content["config"].update(rankers=[], fasttext={"pretrained": "a.bin"}), model)


def test_a_source_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    gitrepo.write(tmp_path / "source", {"a.py": CODE})
    (tmp_path / "secret").mkdir()
    Index.build(tmp_path / "source", tmp_path / ".ncs", config=QUICK).close()
    shutil.move(tmp_path / "source", tmp_path / "old")
    (tmp_path / "source").symlink_to(tmp_path / "secret")
    with pytest.raises(NcsError, match="a source of it is a link now"):
        Index.update(tmp_path / ".ncs")


def test_roots_are_the_same_in_every_working_directory(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    Index.build("door.py", "elsewhere/index", config=QUICK).close()
    Index.build(".", ".ncs", config=QUICK).close()
    monkeypatch.chdir("/")
    for index, root in ((project / "elsewhere/index", project / "door.py"), (project / ".ncs", project)):
        with Index.load(index) as opened:
            assert opened.snapshot.roots == (root,)
        assert request_of(read_description(index), index).roots == (root,)
    assert stored_root(tmp_path / "a" / ".ncs", tmp_path / "b") == str(tmp_path / "b")
    assert read_description(project / "elsewhere/index").counts["sources"]["roots"] == [str(project / "door.py")]


@posix
def test_the_key_is_readable_by_its_user_only_and_made_once(state: Path, tmp_path: Path) -> None:
    small_index.build(tmp_path / "a")
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file().parent.stat().st_mode) == 0o700
    key = key_file().read_bytes()
    assert len(key) == KEY_BYTES
    small_index.update(tmp_path / "a", "two")
    small_index.build(tmp_path / "b")
    assert reason(tmp_path / "a") == reason(tmp_path / "b") == ""
    assert key_file().read_bytes() == key
    assert [path.name for path in key_file().parent.iterdir()] == ["key"]


def test_first_builds_at_once_get_one_key(state: Path) -> None:
    code = "import sys; from ncs.storage import trust; sys.stdin.read(1); print(trust._make_key().hex())"
    several = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for process in several:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    keys = {process.communicate(timeout=LONG)[0].strip() for process in several}
    assert keys == {key_file().read_bytes().hex()}


def test_a_key_is_kept_where_there_are_no_hard_links(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")  # as FAT and others

    monkeypatch.setattr(os, "link", refuse)
    small_index.build(tmp_path / "a")
    assert reason(tmp_path / "a") == ""
    assert [path.name for path in key_file().parent.iterdir()] == ["key"]


def _make_link(path: Path) -> None:
    (path.parent / "real").write_bytes(bytes(KEY_BYTES))
    path.symlink_to(path.parent / "real")


@posix
@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir, _make_link, make_pipe, lambda path: path.write_bytes(bytes(KEY_BYTES - 1)),
        lambda path: path.write_bytes(b""), lambda path: path.write_bytes(bytes(1 << 20)),
    ],
)  # fmt: skip
def test_what_is_no_key_is_not_used_and_one_line_says_so(
    state: Path, tmp_path: Path, make: Callable[..., object]
) -> None:
    key_file().parent.mkdir(parents=True)
    make(key_file())
    _, note = small_index.build(tmp_path / "a").notes
    assert note.startswith(f"no key can be kept in {key_file()} (")
    remedy = "set XDG_STATE_HOME to a folder where you may write, and build it again"
    assert note.endswith(f"so this index can only be searched; {remedy}")
    assert reason(tmp_path / "a") == UNSIGNED


def test_a_build_without_a_place_for_the_key_goes_on_and_says_that_the_index_can_only_be_searched(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "file").touch()
    state = str(tmp_path / "file" / "state")
    said = invoke("build", ".", cwd=tmp_path, XDG_STATE_HOME=state)
    assert said.returncode == 0
    assert f"note: no key can be kept in {state}/ncs/key (Not a directory), so this index can only" in said.stderr
    said = invoke("query", "open the door", cwd=tmp_path, XDG_STATE_HOME=state)
    assert "open_door" in said.stdout
    assert said.stderr.count(f"the index is not trusted ({UNSIGNED})") == 1
    said = invoke("update", cwd=tmp_path, XDG_STATE_HOME=state)
    assert (said.returncode, said.stdout) == (2, "")


@root_only
def test_a_key_of_another_users_is_not_used(state: Path, tmp_path: Path) -> None:
    small_index.build(tmp_path / "a")
    os.chown(key_file(), 65534, 65534)
    assert reason(tmp_path / "a") == ALTERED


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "."}, {"XDG_STATE_HOME": "state"}])
def test_a_key_is_never_in_the_working_directory(tmp_path: Path, environment: dict[str, str]) -> None:
    code = "from ncs.storage import trust; print(trust.key_file().is_absolute() and trust.key_file())"
    path = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=path | environment, text=True, timeout=LONG, check=True,
        stdout=subprocess.PIPE,
    ).stdout.strip()  # fmt: skip
    assert not said.startswith(str(tmp_path))
    assert said == "False" or Path(said).is_absolute()


@root_only
def test_the_nearest_index_of_another_user_is_refused_and_one_that_is_named_only_searched(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(project / ".ncs", 65534, 65534)
    (project / "deep").mkdir()
    with pytest.raises(IndexFolderError, match=f"belongs to another user; .* name it: -i {project}/.ncs"):
        find_index(project / "deep")
    said = invoke("query", "open the door", cwd=project / "deep")
    assert (said.returncode, said.stdout) == (2, "")
    said = invoke("query", "open the door", "-i", "../.ncs", cwd=project / "deep")
    assert "open_door" in said.stdout
    assert "the index is not trusted (another user owns it)" in said.stderr
    said = invoke("build", ".", cwd=project)
    assert said.returncode == 2
    assert "belongs to another user" in said.stderr
    monkeypatch.setenv("SUDO_UID", "65534")  # they became root themselves
    assert find_index(project / "deep") == project / ".ncs"
    assert reason(project / ".ncs") == ""
    os.chown(project / ".ncs" / SNAPSHOT, 1234, 1234)
    assert reason(project / ".ncs") == "another user owns it"
    assert not is_own((project / ".ncs" / SNAPSHOT).stat())


def test_an_index_that_leads_out_of_the_project_is_refused(project: Path, tmp_path: Path) -> None:
    clone = gitrepo.write(tmp_path / "clone", {"a.py": "def steal():\n    return 1\n"})
    (clone / ".ncs").symlink_to(project / ".ncs")
    number = read_description(project / ".ncs").number
    for command in (("query", "steal"), ("update",), ("build", ".")):
        said = invoke(*command, cwd=clone)
        assert said.returncode == 2
        assert "points outside its project; remove that link, or name an index with -i" in said.stderr
    assert read_description(project / ".ncs").number == number


def test_nothing_is_written_on_an_index_that_is_not_trusted(project: Path) -> None:
    alter(project / ".ncs", lambda content: content["counts"].update(documents=3))
    before = {path: path.stat().st_mtime_ns for path in (project / ".ncs").rglob("*")}
    refusal = "can only be searched, as the index is not trusted"
    with pytest.raises(NcsError, match=refusal), open_writer(project / ".ncs"):
        pytest.fail("it was opened")
    with pytest.raises(NcsError, match=f"build the index again: ncs build SOURCES -i {project}/.ncs"):
        add_rankers(project / ".ncs", ["two_field"])
    with Index.load(project / ".ncs") as index, pytest.raises(BadInput, match="'two_field' is not used, as the index"):
        index.ranker("two_field")
    assert {path: path.stat().st_mtime_ns for path in (project / ".ncs").rglob("*")} == before


def test_an_index_of_documents_without_files_is_searched_where_it_is_not_trusted(tmp_path: Path, state: Path) -> None:
    Index.of(extract(CODE.encode(), "python"), tmp_path / "index", config=QUICK).close()
    shutil.rmtree(state)
    with Index.load(tmp_path / "index") as index:
        assert index.snapshot.distrust
        assert index.search("open door", 1)


def test_a_ranker_that_was_put_into_an_index_later_is_not_there(project: Path) -> None:
    with Index.load(project / ".ncs") as index:
        folder = index.snapshot.statistics / "endpoint"
        folder.mkdir()
        (folder / "config.json").write_text('{"url": "http://127.0.0.1:9/v1"}')
        with pytest.raises(BadInput, match="built without 'endpoint'"):
            index.ranker("endpoint")
    assert reason(project / ".ncs") == ""


def test_a_build_over_an_index_with_endless_numbers_can_be_read(project: Path) -> None:
    alter(project / ".ncs", lambda content: content.update(number=10**30))
    (project / ".ncs" / "segments" / ("9" * 18)).mkdir()
    Index.build(project, project / ".ncs", config=QUICK).close()
    assert reason(project / ".ncs") == ""
    assert not (project / ".ncs" / "segments" / ("9" * 18)).exists()


@posix
def test_an_index_that_cannot_be_written_is_trusted_all_the_same(project: Path) -> None:
    for path in (project / ".ncs", project / ".ncs" / SNAPSHOT):
        path.chmod(0o555)
    assert reason(project / ".ncs") == ""
    (project / ".ncs").chmod(0o755)
