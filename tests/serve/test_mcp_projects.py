"""`ncs mcp` keeps indexes: built where there is none, updated where files changed, and no process left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ncs.build.pipeline import PENDING_EMBEDDINGS
from ncs.index import Index
from ncs.serve.mcp.projects import BUILDING, Project
from ncs.serve.mcp.settings import Settings
from tests import corpus
from tests.agents import Said, agent, ask, command, until
from tests.waiting import LONG, processes
from tests.waiting import until as wait_until

pytestmark = pytest.mark.anyio
KEYBOARD = "app/src/Keyboards.java"
NEW = '\n\ndef defrost_freezer(hours):\n    """Melt the ice."""\n    return hours * 2\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return corpus.write(tmp_path / "repos")


@pytest.mark.slow
async def test_a_project_without_an_index_answers_at_once_by_words_and_is_indexed_meanwhile(tree: Path) -> None:
    for name in ("typing", "json", "signal", "multiprocessing"):  # what a project calls so is not imported
        (tree / f"{name}.py").write_text(f"open({str(tree / 'ran')!r}, 'w')\n")
    async with agent("--wait", "0", cwd=tree) as client:
        first = await ask(client, "search_code", query="hide the soft keyboard")
        assert BUILDING in first.json["notes"]
        assert BUILDING in first.text
        assert first.json["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
        assert first.places[0].startswith(f"{KEYBOARD}:")
        assert first.json["hits"][0]["confidence"] is None
        named = await ask(client, "find_definition", name="hideSoftKeyboard")
        assert named.places[0] == first.places[0]
        whole = await ask(client, "get_function", place=first.places[0])
        assert "hideSoftInputFromWindow" in whole.json["code"]
        await until(lambda: ask(client, "index_status"), lambda said: said.json["projects"][0]["documents"] > 0)
        later = await ask(client, "search_code", query="hide the soft keyboard")
        assert later.json["notes"] == []
        assert later.json["hits"][0]["confidence"] > 0.3
        assert later.places[0] == first.places[0]
    with Index.load(tree / ".ncs") as index:
        assert len(index) > 5
    wait_until(lambda: not processes(str(tree)))
    assert not (tree / "ran").exists()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Takes a while to index."""
    root = tmp_path / "large"
    root.mkdir()
    for number in range(300):
        body = "".join(f"def do_{number}_{i}(value):\n    return value + {i}\n\n\n" for i in range(20))
        (root / f"module_{number}.py").write_text(body)
    return root


@pytest.mark.slow
async def test_a_first_build_answers_from_files_then_by_words_then_whole_and_says_which(large: Path) -> None:
    async with agent("--wait", "0", cwd=large) as client:
        said: list[str] = []
        while not said or said[-1] != "":
            found = await ask(client, "search_code", query="do value")
            assert found.json["hits"]
            note = "; ".join(found.json["notes"])
            said += [note] * (note not in said[-1:])
    assert said == [note for note in (BUILDING, PENDING_EMBEDDINGS, "") if note in said]  # in this order, nothing else
    assert said[0] == BUILDING


@pytest.mark.slow
async def test_a_build_that_ended_before_its_time_is_finished_by_the_next_server(large: Path) -> None:
    async def search(enough: Callable[[Said], bool]) -> None:
        async with agent("--wait", "0", cwd=large) as client:
            await until(lambda: ask(client, "search_code", query="do value"), enough)

    await search(lambda said: BUILDING not in said.json["notes"])
    with Index.load(large / ".ncs") as index:
        if "pending" not in index.description.counts:
            pytest.skip("the build was quicker than the end of its server")
    await search(lambda said: said.json["notes"] == [])
    with Index.load(large / ".ncs") as index:
        assert "pending" not in index.description.counts


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow
@pytest.mark.parametrize("end", ["closed", "killed"])
async def test_a_build_ends_with_its_server_however_that_ends(large: Path, end: str) -> None:
    async with agent("--wait", "0", "--root", large, cwd=large) as client:
        await ask(client, "search_code", query="do 7")
        status = await ask(client, "index_status")
        assert status.json["projects"][0]["running"] == "build"
        if end == "killed":
            for process in processes("import sys; sys.path.pop(0)"):
                if process in processes(str(large)):
                    os.kill(process, signal.SIGKILL)
            await asyncio.sleep(0.2)
    wait_until(lambda: not processes(str(large)))
    if (large / ".ncs" / "snapshot.json").exists():  # what was read before answers by words
        with Index.load(large / ".ncs") as index:
            assert "pending" in index.description.counts


@pytest.mark.slow
async def test_a_stale_index_is_updated_before_it_answers_and_says_so(tree: Path) -> None:
    Index.build(tree, tree / ".ncs").close()
    async with agent("--wait", "60", cwd=tree) as client:
        before = await ask(client, "search_code", query="defrost the freezer")
        assert not any("defrost" in place for place in before.text.split("\n") if "note:" not in place)
        file = tree / "tools" / "files.py"
        file.write_text(file.read_text() + NEW)
        after = await until(
            lambda: ask(client, "search_code", query="defrost the freezer"),
            lambda said: "defrost_freezer" in said.text,
        )
        assert after.json["notes"][0] == "1 file changed; the index was updated first"
        line = file.read_text().split("\n").index("def defrost_freezer(hours):") + 1
        assert after.places[0] == f"tools/files.py:{line}"


@pytest.mark.slow
async def test_an_update_that_takes_longer_goes_on_while_answers_say_that_they_are_from_before(tree: Path) -> None:
    Index.build(tree, tree / ".ncs").close()
    file = tree / "tools" / "files.py"
    file.write_text(file.read_text() + NEW)
    async with agent("--wait", "0", cwd=tree) as client:
        before = await ask(client, "search_code", query="hide soft keyboard")
        assert before.json["hits"]
        assert any("tools/files.py" in note and "from before" in note for note in before.json["notes"])
        await until(
            lambda: ask(client, "search_code", query="defrost the freezer"),
            lambda said: "defrost_freezer" in said.text,
        )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_two_roots_of_the_client_are_two_projects(tmp_path: Path, mode: str) -> None:
    roots = [tmp_path / "kitchen", tmp_path / "garden"]
    for root, verb in zip(roots, ("boil", "water"), strict=True):
        root.mkdir()
        (root / "work.py").write_text(
            f"def {verb}_things(pot):\n    return pot\n\n\ndef clean_{verb}er(pot):\n    pass\n"
        )
        Index.build(root, root / ".ncs").close()
    async with agent(cwd=tmp_path, roots=roots, mode=mode) as client:
        status = await ask(client, "index_status")
        assert [state["project"] for state in status.json["projects"]] == ["kitchen", "garden"]
        both = await ask(client, "search_code", query="things")
        assert {(hit["project"], hit["name"]) for hit in both.json["hits"]} >= {
            ("kitchen", "boil_things"), ("garden", "water_things"),
        }  # fmt: skip
        assert "[garden] work.py:1-2 water_things" in both.text
        one = await ask(client, "search_code", query="things", project="garden")
        assert {hit["project"] for hit in one.json["hits"]} == {"garden"}
        shown = await ask(client, "get_function", place="work.py:1", project="garden")
        assert "water_things" in shown.text
        outside = await ask(client, "get_function", place="../kitchen/work.py:1", project="garden")
        assert outside.error


def test_an_index_that_came_with_a_project_does_not_make_us_read_other_folders(tree: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    Index.build(tree, hostile / ".ncs").close()
    (tree / "tools" / "secret.py").write_text("def secret_key():\n    return 42\n")
    project = Project.at("hostile", hostile, Settings(wait=60, check=0))
    try:
        with project.open_index() as (index, notes):
            assert index is not None
            assert "outside this project" in notes[0]
            assert not [hit for hit in index.search("secret key") if hit.document.name == "secret_key"]
    finally:
        project.close()


def test_a_link_out_of_the_project_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".ncs").symlink_to(tmp_path)
    with pytest.raises(Exception, match="points outside its project"):
        Project.at("a", tmp_path / "a", Settings())


def test_a_build_that_fails_says_why_and_is_not_tried_at_once_again(tmp_path: Path) -> None:
    project = Project.at("empty", tmp_path, Settings(wait=60))
    try:
        with project.open_index() as (index, notes):
            assert index is None
            assert "no function found" in " ".join(notes)
        with project.open_index() as (_, notes):
            assert project.job is None
            assert "no function found" in " ".join(notes)
    finally:
        project.close()


@pytest.fixture
def raw(tree: Path) -> Iterator[subprocess.Popen[str]]:
    Index.build(tree, tree / ".ncs").close()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(), cwd=tree, text=True, **pipes) as process:  # type: ignore[call-overload]
        yield process
        process.kill()


def initialize(process: subprocess.Popen[str]) -> str:
    assert process.stdin
    assert process.stdout
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    return process.stdout.readline()


@pytest.mark.slow
def test_stdout_carries_the_protocol_only_and_the_end_of_stdin_ends_the_server(raw: subprocess.Popen[str]) -> None:
    assert json.loads(initialize(raw))["result"]["serverInfo"]["name"] == "ncs"
    call = {"name": "search_code", "arguments": {"query": "keyboard"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), "this is no protocol", "{}",
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ]  # fmt: skip
    assert raw.stdin
    assert raw.stdout
    raw.stdin.write("\n".join(lines) + "\n")
    raw.stdin.flush()
    answers: list[dict[str, Any]] = []
    while not any(answer.get("id") == 2 for answer in answers):
        answers.append(json.loads(raw.stdout.readline()))
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert "Keyboards" in answers[-1]["result"]["content"][0]["text"]
    rest, _ = raw.communicate(timeout=LONG)
    assert rest == ""
    assert raw.returncode == 0


@pytest.mark.slow
def test_ctrl_c_ends_the_server_while_it_waits_for_its_client(raw: subprocess.Popen[str]) -> None:
    initialize(raw)
    raw.send_signal(signal.SIGINT)
    assert raw.wait(LONG) == 130
