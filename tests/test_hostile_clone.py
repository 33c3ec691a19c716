"""A stranger's repository that ships its own `.ncs`: whatever that says, nothing outside the clone is read or told."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncs.build.map import make_map
from ncs.build.pipeline import add_rankers
from ncs.build.tune import tune
from ncs.build.watch import Follower
from ncs.errors import NcsError
from ncs.index import Index
from ncs.learn.confidence import TUNED
from ncs.search.baselines.endpoint import KEY_VARIABLE
from ncs.serve.http.api import IndexRequest, SearchRequest, indexes, info, search
from ncs.serve.live_index import LiveIndex
from ncs.serve.mcp.places import full_code
from ncs.serve.mcp.projects import Project, Settings
from ncs.sources import SourceFile
from ncs.storage.files import DIGEST_BYTES, FileEntry
from ncs.storage.snapshot import checksum, read_description
from tests.command import invoke
from tests.corpus import QUICK
from tests.gitrepo import contents
from tests.search.embeddings_server import Server, serving
from tests.serve.agents import agent, call
from tests.snapshots import alter
from tests.waiting import LONG

pytest.importorskip("openai", reason="needs the extra endpoint")

CANARY = "canary-7141"
HERE = "def open_door(key):\n    return key.turn()\n"
SECRET = "def secret_password(vault):\n    return '...........'\n"
NOTE = "the index is not trusted (another user or machine made it, or it was altered)"
SOME = ("query secret password --format vimgrep", "info", "doctor", "update", "watch")
COMMANDS = (
    "query secret password", "query secret password --ranker endpoint", "query secret password --format vimgrep",
    "query secret password --format json -a", "query secret password --open 1", "similar secret.py:1",
    "words secret", "info", "info --json", "doctor", "update", "update --compact", "update --retrain", "watch",
    "map", "tune --from-feedback feedback.tsv", "build --add two_field",
    "build --add endpoint:url=http://127.0.0.1:9/v1",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The stranger's server."""
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """`clone` with an index that the stranger built of `secret`, which has a canary now, and with their ranker."""
    room = tmp_path_factory.mktemp("room")
    for folder in ("clone", "secret"):
        (room / folder).mkdir()
    (room / "clone" / "door.py").write_text(HERE)
    (room / "clone" / "feedback.tsv").write_text("secret password\tsecret.py:1\n")
    (room / "secret" / "secret.py").write_text(SECRET)
    with pytest.MonkeyPatch.context() as stranger:
        stranger.setenv("XDG_STATE_HOME", str(room / "stranger"))
        Index.build([room / "clone", room / "secret"], room / "clone" / ".ncs", config=QUICK).close()
        add_rankers(room / "clone" / ".ncs", [f"endpoint:url={server.url}"])
    (room / "secret" / "secret.py").write_text(SECRET.replace("...........", CANARY))
    server.requests.clear()
    return room


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, room: Path, server: Server) -> Iterator[None]:
    """Nothing of a canary goes to the server, and none is in the index afterwards."""
    for name in ("AWS_SECRET_ACCESS_KEY", KEY_VARIABLE):
        monkeypatch.setenv(name, CANARY)
    yield
    assert server.requests == []
    assert not _hold_canary(room / "clone")


def _hold_canary(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def roots(*texts: str) -> Callable[[dict[str, Any]], object]:
    """A change of the sources."""
    return lambda content: content["counts"]["sources"].update(roots=list(texts))


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "as it came": lambda content: None,
    "roots above": roots("../secret"),
    "roots through a link": roots("link"),
    "a root that is an address": roots("file:///etc"),
    "a key variable": lambda content: content["config"].update(
        rankers=[f"{text},key_variable=AWS_SECRET_ACCESS_KEY" for text in content["config"]["rankers"]]
    ),
    "no signature": lambda content: content.update(signature=None),
    "the folder": lambda content: content.update(folder="."),
    "no roots": lambda content: content["counts"].update(sources=[3]),
}


@pytest.fixture
def clone(request: pytest.FixtureRequest, room: Path, tmp_path: Path) -> Path:
    """A fresh clone whose snapshot.json the stranger changed."""
    clone = shutil.copytree(room / "clone", tmp_path / "clone")
    (tmp_path / "secret").symlink_to(room / "secret")
    (clone / "link").symlink_to(room / "secret")
    alter(clone / ".ncs", CHANGES[getattr(request, "param", "as it came")])
    return clone


@pytest.mark.parametrize("clone", CHANGES, indirect=True)
def test_no_command_reads_sends_or_writes_anything(clone: Path, request: pytest.FixtureRequest) -> None:
    before = contents(clone / ".ncs")
    for command in COMMANDS if "as it came" in request.node.name else SOME:
        said = invoke(*command.split(), cwd=clone, EDITOR="cat", **{KEY_VARIABLE: CANARY})
        assert CANARY not in said.stdout + said.stderr, command
        assert "Traceback" not in said.stderr, command
        writes = command.split()[0] in ("update", "watch", "map", "tune", "build")
        if writes or "endpoint" in command:
            assert (said.returncode, said.stdout) == (2, ""), (command, said)
            assert "the index is not trusted (" in said.stderr, (command, said.stderr)
            assert "build the index again: ncs build SOURCES -i " in said.stderr, said.stderr
            assert said.stderr.count("\n") == 1, said.stderr
    assert contents(clone / ".ncs") == before
    assert not _hold_canary(clone)


def test_a_query_answers_from_the_index_with_one_line_about_it(room: Path) -> None:
    said = invoke("query", "open door", cwd=room / "clone")
    assert "open_door" in said.stdout
    assert said.stderr.count(NOTE) == 1
    answer = json.loads(invoke("query", "open door", "--json", cwd=room / "clone").stdout)
    assert [NOTE in note for note in answer["notes"]].count(True) == 1
    information = json.loads(invoke("info", "--json", cwd=room / "clone").stdout)
    assert information["trusted"] is False
    assert str(room / "secret") not in json.dumps(information["sources"])
    said = invoke("doctor", cwd=room / "clone")
    assert said.returncode == 1
    assert f"todo  only built-in rankers search: {NOTE}: ncs build SOURCES -i " in said.stdout


def test_the_library_refuses_what_commands_refuse(room: Path) -> None:
    folder = room / "clone" / ".ncs"
    with Index.load(folder) as index:
        for work in (
            lambda: Index.update(folder), lambda: add_rankers(folder, ["two_field"]), lambda: make_map(folder),
            lambda: tune(index.snapshot, []), lambda: Follower(folder, print), lambda: index.ranker("endpoint"),
        ):  # fmt: skip
            with pytest.raises(NcsError, match="the index is not trusted"):
                work()
        assert index.snapshot.roots == ()
        assert not index.has_ranker("endpoint")


def test_a_server_answers_and_says_so(room: Path) -> None:
    with closing(LiveIndex("clone", room / "clone" / ".ncs")) as live:
        answer = json.loads(search(live, SearchRequest.model_validate({"query": "secret password", "explain": True})))
        assert NOTE in answer["notes"][0]
        assert json.loads(info(live, IndexRequest.model_validate({})))["trusted"] is False
        (state,) = json.loads(indexes([live], {}))["indexes"]
        assert state["trusted"] is False
        with pytest.raises(NcsError, match="'endpoint' is not used"):
            search(live, SearchRequest.model_validate({"query": "secret password", "ranker": "endpoint"}))
        assert CANARY not in json.dumps(answer)


@pytest.mark.anyio
async def test_an_agent_gets_no_line_from_outside_and_nothing_is_built_or_sent(clone: Path) -> None:
    pytest.importorskip("mcp", reason="needs the extra mcp")
    before = contents(clone / ".ncs")
    async with agent(cwd=clone) as client:
        replies = [
            await call(client, "search_code", query="secret password"),
            await call(client, "search_code", query="open door"),
            await call(client, "find_definition", name="secret_password"),
            await call(client, "get_function", place="secret.py:1"),
            await call(client, "get_function", place="secret/secret.py:1"),
            await call(client, "get_function", place="../secret/secret.py:1"),
            await call(client, "get_function", place="link/secret.py:1"),
            await call(client, "find_similar", place="secret/secret.py:1"),
            await call(client, "index_status"),
        ]
    assert CANARY not in "".join(reply.text + json.dumps(reply.json) for reply in replies)
    assert "the index is not trusted" in replies[1].text
    assert "open_door" in replies[1].text
    assert "ncs build SOURCES -i FOLDER" in replies[-1].text
    assert contents(clone / ".ncs") == before


def test_code_is_that_of_the_index_where_its_file_is_not_in_the_clone(room: Path) -> None:
    project = Project("clone", room / "clone", Settings(wait=LONG, check=0))
    with closing(project), project.open_index() as (index, _):
        assert index is not None
        hit = next(hit for hit in index.search("secret password") if hit.document.name == "secret_password")
        assert full_code(project, index, hit.document) == SECRET.rstrip()
    elsewhere = Project("clone", room, Settings(wait=LONG, check=0), room / "clone" / ".ncs")
    with closing(elsewhere), elsewhere.open_index() as (index, _):
        assert index is not None
        assert full_code(elsewhere, index, hit.document) == SECRET.rstrip()


def test_a_build_over_it_uses_nothing_of_it(room: Path, tmp_path: Path, server: Server) -> None:
    clone = shutil.copytree(room / "clone", tmp_path / "clone")
    folder = clone / ".ncs"
    (clone / "door.py").write_text(HERE.replace("turn", "push"))
    (folder / TUNED).write_text('{"weights": {"meaning": 0}}')
    table = next(folder.glob("segments/*/files/digest.npy"))
    file = SourceFile("clone", "door.py", (clone / "door.py").read_bytes())
    digests = np.load(table)
    digests[0] = np.frombuffer(FileEntry.of(file).digest, np.uint8)  # as if the cached documents were of this content
    assert digests.shape[1] == DIGEST_BYTES
    np.save(table, digests)
    alter(folder, lambda content: content["files"].update({table.relative_to(folder).as_posix(): checksum(table)}))
    before = {path.name for path in (folder / "segments").iterdir()}
    said = invoke("build", ".", cwd=clone)
    assert said.returncode == 0, said.stderr
    description = read_description(folder)
    assert description.config["rankers"] == []
    assert description.counts["sources"]["roots"] == ["."]
    assert not (folder / TUNED).exists()
    assert not before & {path.name for path in (folder / "segments").iterdir()}
    with Index.load(folder, verify=True) as index:
        assert index.snapshot.distrust == ""
        assert [hit.document.code for hit in index.search("open door", 1)] == [HERE.replace("turn", "push").rstrip()]
        assert not index.has_ranker("endpoint")
    assert invoke("update", cwd=clone).returncode == 0
    assert os.environ[KEY_VARIABLE] == CANARY
