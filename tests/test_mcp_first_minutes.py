"""The README's first ten minutes, followed on a small tree: build, ask, print the configuration, an agent asks."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

from ncs.serve.mcp.install import CLIENTS, command, instructions
from tests import corpus
from tests.agents import ask
from tests.waiting import LONG

NCS = Path(sys.executable).with_name("ncs")


def typed(*words: str, cwd: Path) -> str:
    found = subprocess.run([str(NCS), *words], cwd=cwd, capture_output=True, text=True, check=True)
    return found.stdout


def block(printed: str, client: str) -> str:
    """What is printed for a client, without its heading."""
    found = re.search(rf"^# {client}.*\n([\s\S]*?)(?=^# |\Z)", printed, re.MULTILINE)
    assert found, client
    return found[1].strip()


def steps() -> list[list[str]]:
    """What README.md says to type in the first ten minutes, a line each, without the comments."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    part = text.partition("## Your own code: the first ten minutes\n\n")[2]
    lines = list(takewhile(lambda line: line.startswith("    "), part.splitlines()))
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.slow
@pytest.mark.skipif(not NCS.is_file(), reason="the command is not installed beside this Python")
def test_from_a_clone_to_an_agent_that_is_answered_in_the_steps_of_the_readme(tmp_path: Path) -> None:
    clone, path, folder, build, query, update, serve, install = steps()
    assert clone[-2:] == ["install", ".[server,mcp]"]
    assert (path[0], folder[0]) == ("export", "cd")
    assert [step[0] for step in (build, query, update, serve, install)] == ["ncs"] * 5
    tree = corpus.write(tmp_path / "repos")
    typed(*build[1:], cwd=tree)
    assert query[1] == "query"  # README's question is about other code
    assert "Keyboards.hideSoftKeyboard" in typed("query", "hide soft keyboard", cwd=tree).split("\n")[0]
    typed(*update[1:], cwd=tree)
    with subprocess.Popen([NCS, *serve[1:], "--port", "0"], cwd=tree, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        url = server.stderr.readline().rpartition(" at ")[2].strip()
        assert "ncs: search code" in httpx.get(url, timeout=LONG).text
        found = httpx.get(f"{url}/api/search", params={"query": "hide soft keyboard"}, timeout=LONG).json()
        server.terminate()
        server.stderr.read()
    assert found["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert asyncio.run(answered(typed(*install[1:], cwd=tree), tree)) == found["hits"][0]["code"]


async def answered(printed: str, tree: Path) -> str:
    """What an agent that is told what is printed for Cursor reads of the first hit."""
    entry = json.loads(block(printed, "Cursor"))["mcpServers"]["ncs"]
    async with Client(StdioServerParameters(command=entry["command"], args=entry["args"], cwd=tree)) as client:
        found = await ask(client, "search_code", query="hide soft keyboard", k=1)
        whole = await ask(client, "get_function", place=found.places[0])
        return str(whole.json["code"])


def test_the_configuration_of_every_client_starts_this_installation(tmp_path: Path) -> None:
    printed = instructions(["--root", str(tmp_path)])
    program, *arguments = command(["--root", str(tmp_path)])
    assert Path(program).is_absolute()
    assert Path(program).exists()
    for client in CLIENTS:
        assert block(printed, client)
    desktop = json.loads(block(printed, "Claude Desktop"))["mcpServers"]["ncs"]
    code = json.loads(block(printed, "VS Code"))["servers"]["ncs"]
    zed = json.loads(block(printed, "Zed"))["context_servers"]["ncs"]
    for entry in (desktop, code, zed):
        assert (entry["command"], entry["args"]) == (program, arguments)
    assert block(printed, "Claude Code").endswith(f"mcp --root {tmp_path}")


def test_the_configuration_of_codex_is_toml(tmp_path: Path) -> None:
    found = pytest.importorskip("tomllib").loads(block(instructions(), "Codex"))["mcp_servers"]["ncs"]
    assert [found["command"], *found["args"]] == command([])


def test_printing_the_configuration_writes_nothing(tmp_path: Path) -> None:
    subprocess.run(command(["--install"]), cwd=tmp_path, check=True, capture_output=True)
    assert list(tmp_path.iterdir()) == []
