"""`ncs mcp` keeps indexes: built where there is none, updated where files changed, and no process left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ncs.answer import cautions
from ncs.build.pipeline import PENDING_EMBEDDINGS
from ncs.errors import IndexFolderError
from ncs.index import Index
from ncs.messages import UNLIKELY
from ncs.serve.mcp.install import START
from ncs.serve.mcp.jobs import Job
from ncs.serve.mcp.places import document_at, shown_path
from ncs.serve.mcp.projects import BUILDING, BUILT, Project, Projects, Settings
from ncs.serve.mcp.tools import answer
from tests import corpus, gitrepo
from tests.serve.agents import INITIALIZE, agent, call, command, until
from tests.waiting import LONG, processes
from tests.waiting import until as wait_until

pytestmark = pytest.mark.anyio
KEYBOARD = "app/src/Keyboards.java"
NEW = '\n\ndef defrost_freezer(hours):\n    """Melt the ice."""\n    return hours * 2\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return corpus.write(tmp_path / "repos")


@pytest.fixture
def indexed(tree: Path) -> Path:
    Index.build(tree, tree / ".ncs").close()
    return tree


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Takes seconds to index, longer than any call."""
    files = {}
    for number in range(240):
        functions = (f"def do_{number}_{i}(value):\n    return value + {i}\n\n\n" for i in range(20))
        files[f"module_{number}.py"] = "".join(functions)
    return gitrepo.write(tmp_path / "large", files)


def is_pending(root: Path) -> bool:
    """Whether the build of an index has not ended."""
    with Index.load(root / ".ncs") as index:
        return "pending" in index.description.counts


@pytest.mark.slow
async def test_a_first_build_answers_from_files_then_by_words_then_whole_and_says_which(large: Path) -> None:
    tree = corpus.write(large)
    for name in ("typing", "json", "signal", "multiprocessing"):  # what a project calls so is not imported
        (tree / f"{name}.py").write_text(f"open({str(tree / 'ran')!r}, 'w')\n")
    async with agent("--wait", "0", cwd=tree) as client:
        first = await call(client, "search_code", query="hide the soft keyboard")
        assert first.json["notes"] == [BUILDING]
        assert BUILDING in first.text
        assert first.json["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
        assert first.places[0].startswith(f"{KEYBOARD}:")
        assert first.json["hits"][0]["confidence"] is None
        definition = await call(client, "find_definition", name="hideSoftKeyboard")
        assert definition.places[0] == first.places[0]
        whole = await call(client, "get_function", place=first.places[0])
        assert "hideSoftInputFromWindow" in whole.json["code"]
        notes = [BUILDING]
        while notes[-1] != "":
            later = await call(client, "search_code", query="hide the soft keyboard")
            assert later.json["hits"]
            note = "; ".join(later.json["notes"])
            notes += [note] * (note != notes[-1])
            await asyncio.sleep(0.1)
        assert notes == [note for note in (BUILDING, PENDING_EMBEDDINGS, BUILT, "") if note in notes]  # in this order
        assert later.json["hits"][0]["confidence"] > 0.3
        assert later.places[0] == first.places[0]
    assert not is_pending(tree)
    wait_until(lambda: not processes(str(tree)))
    assert not (tree / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["closed", "killed"])
async def test_a_build_ends_with_its_server_however_that_ends_and_the_next_one_finishes_it(
    large: Path, end: str
) -> None:
    async with agent("--wait", "0", "--root", large, cwd=large) as client:
        assert BUILDING in (await call(client, "search_code", query="do value")).json["notes"]
        if end == "killed":
            status = await call(client, "index_status")
            assert status.json["projects"][0]["running"] == "build"
            for process in set(processes(START[:30])) & set(processes(str(large))):
                os.kill(process, signal.SIGKILL)
            await asyncio.sleep(0.2)
    wait_until(lambda: not processes(str(large)))
    assert not (large / ".ncs" / "snapshot.json").exists()
    async with agent("--wait", "0", cwd=large) as client:
        await until(
            lambda: call(client, "search_code", query="do value"), lambda reply: set(reply.json["notes"]) <= {UNLIKELY}
        )
    assert not is_pending(large)


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["60", "0"])
async def test_an_outdated_index_is_updated_first_or_the_answer_says_that_it_is_from_before(
    indexed: Path, wait: str
) -> None:
    file = indexed / "tools" / "files.py"
    file.write_text(file.read_text() + NEW)
    async with agent("--wait", wait, cwd=indexed) as client:
        first = await call(client, "search_code", query="hide soft keyboard")
        assert first.json["hits"]
        if wait != "0":
            assert first.json["notes"][0] == "1 file changed; the index was updated first"
        else:
            assert any("tools/files.py" in note and "from before" in note for note in first.json["notes"])
        new = await until(
            lambda: call(client, "search_code", query="defrost the freezer"),
            lambda reply: "defrost_freezer" in reply.text,
        )
    line = file.read_text().split("\n").index("def defrost_freezer(hours):") + 1
    assert new.places[0] == f"tools/files.py:{line}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_two_roots_of_the_client_are_two_projects(tmp_path: Path, mode: str) -> None:
    roots = [tmp_path / "kitchen", tmp_path / "garden"]
    for root, verb in zip(roots, ("boil", "water"), strict=True):
        code = f"def {verb}_things(pot):\n    return pot\n\n\ndef clean_{verb}er(pot):\n    pass\n"
        gitrepo.write(root, {"work.py": code})
        Index.build(root, root / ".ncs").close()
    async with agent(cwd=tmp_path, roots=roots, mode=mode) as client:
        status = await call(client, "index_status")
        assert [state["project"] for state in status.json["projects"]] == ["kitchen", "garden"]
        both = await call(client, "search_code", query="things")
        names = {(hit["project"], hit["name"]) for hit in both.json["hits"]}
        assert names >= {("kitchen", "boil_things"), ("garden", "water_things")}
        assert "[garden] work.py:1-2 water_things" in both.text
        one = await call(client, "search_code", query="things", project="garden")
        assert {hit["project"] for hit in one.json["hits"]} == {"garden"}
        assert "water_things" in (await call(client, "get_function", place="work.py:1", project="garden")).text
        assert (await call(client, "get_function", place="../kitchen/work.py:1", project="garden")).error


def test_an_index_that_came_with_a_project_does_not_make_us_read_other_folders(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    with monkeypatch.context() as stranger:
        stranger.setenv("XDG_STATE_HOME", str(tmp_path / "stranger"))
        Index.build(tree, hostile / ".ncs").close()
    (tree / "tools" / "secret.py").write_text("def secret_key():\n    return 42\n")
    project = Project("hostile", hostile, Settings(wait=LONG, check=0))
    with closing(project), project.open_index() as (index, notes):
        assert index is not None
        assert notes == []
        assert cautions(index) == [
            "never updated, and searched by built-in rankers only, as the index is not trusted (another user or"
            " machine made it, or it was altered); build the index again: ncs build SOURCES -i FOLDER"
        ]
        place = index.search("hide soft keyboard")[0].document.location
        assert shown_path(project, index, place.repository, place.path) == f"{place.repository}/{place.path}"
        assert not [hit for hit in index.search("secret key") if hit.document.name == "secret_key"]


def test_files_edited_right_after_an_answer_count_in_the_next(indexed: Path) -> None:
    file = indexed / "tools" / "files.py"
    with closing(Projects(Settings(roots=(indexed,), wait=LONG))) as projects:
        answer(projects, None, "find_definition", {"name": "count_lines"})
        file.write_text(file.read_text() + NEW)
        found = answer(projects, None, "find_definition", {"name": "defrost_freezer"}).structured
    assert found["notes"] == ["1 file changed; the index was updated first"]
    assert [hit["name"] for hit in found["hits"]] == ["defrost_freezer"]


def test_a_line_inside_a_function_is_answered_from_the_file_as_it_is_now(indexed: Path) -> None:
    file = indexed / KEYBOARD
    lines = file.read_text().split("\n")
    at = next(number for number, line in enumerate(lines) if "hideSoftInputFromWindow" in line)
    file.write_text("\n".join([*lines[:at], "        edited();", *lines[at:]]))
    with Index.load(indexed / ".ncs") as index:
        project = Project("repos", indexed, Settings())
        assert "edited();" in document_at(project, index, f"{KEYBOARD}:{at + 1}").code


def roots_in(folder: Path, *named: Path) -> list[Path]:
    """The projects of a server that starts in a folder, of a client that names these."""
    with pytest.MonkeyPatch.context() as patch, closing(Projects(Settings())) as projects:
        patch.chdir(folder)
        return [project.root for project in projects.of([each.as_uri() for each in named])]


def test_in_a_subfolder_the_index_above_is_used_that_holds_it(indexed: Path, tmp_path: Path) -> None:
    assert roots_in(indexed / "app" / "src") == [indexed]
    assert roots_in(tmp_path, indexed / "app" / "src", indexed / "tools") == [indexed]
    gitrepo.write(indexed / "later", {"new.py": NEW})
    assert roots_in(indexed / "later") == [indexed]
    elsewhere = gitrepo.write(tmp_path / "elsewhere" / "inner", {"new.py": NEW})
    Index.build(indexed, tmp_path / "elsewhere" / ".ncs").close()  # of other folders
    assert roots_in(elsewhere) == [elsewhere]


def test_without_an_index_the_git_work_tree_is_the_project_unless_it_is_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = gitrepo.repository(tmp_path / "home" / "project", {"src/deep/new.py": NEW})
    assert roots_in(top / "src" / "deep") == [top]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    plain = gitrepo.repository(tmp_path / "home", {"plain/new.py": NEW}) / "plain"
    assert roots_in(plain) == [plain]


def test_a_link_out_of_the_project_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".ncs").symlink_to(tmp_path)
    with pytest.raises(IndexFolderError, match="points outside its project"):
        Project("a", tmp_path / "a", Settings())


def test_a_build_that_fails_says_why_and_is_not_tried_at_once_again(tmp_path: Path) -> None:
    with closing(Project("empty", tmp_path, Settings(wait=LONG))) as project:
        for _ in range(2):
            with project.open_index() as (index, notes):
                assert index is None
                assert "no function found" in " ".join(notes)
                assert project.job is None


@pytest.fixture
def stdio(indexed: Path) -> Iterator[subprocess.Popen[str]]:
    """A server that has answered the first message."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(), cwd=indexed, text=True, **pipes) as process:  # type: ignore[call-overload]
        write(process, INITIALIZE)
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "ncs"
        try:
            yield process
        finally:
            process.kill()


def write(process: subprocess.Popen[str], *messages: object) -> None:
    assert process.stdin
    process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
    process.stdin.flush()


@pytest.mark.slow
def test_stdout_carries_the_protocol_only_and_the_end_of_stdin_ends_the_server(stdio: subprocess.Popen[str]) -> None:
    search = {"name": "search_code", "arguments": {"query": "keyboard"}}
    write(
        stdio, {"jsonrpc": "2.0", "method": "notifications/initialized"}, "this is no protocol", {},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search},
    )  # fmt: skip
    assert stdio.stdout
    answers: list[dict[str, Any]] = []
    while not any(answer.get("id") == 2 for answer in answers):
        answers.append(json.loads(stdio.stdout.readline()))
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert "Keyboards" in answers[-1]["result"]["content"][0]["text"]
    rest, _ = stdio.communicate(timeout=LONG)
    assert (rest, stdio.returncode) == ("", 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it shows the files of a process")
def test_processes_of_the_server_and_of_its_jobs_do_not_have_the_pipe_of_its_client(
    stdio: subprocess.Popen[str], large: Path
) -> None:
    job = Job("build", large / ".ncs", large)
    pids = stdio.pid, job._process.pid
    wait_until(lambda: [Path(f"/proc/{pid}/fd/0").readlink() for pid in pids] == [Path(os.devnull)] * 2)
    job.stop()


@pytest.mark.slow
def test_ctrl_c_ends_the_server_while_it_waits_for_its_client(stdio: subprocess.Popen[str]) -> None:
    stdio.send_signal(signal.SIGINT)
    assert stdio.wait(LONG) == 130
