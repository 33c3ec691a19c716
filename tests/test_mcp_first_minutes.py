"""The README's first ten minutes, followed on a small tree: build, ask, print the configuration, an agent asks."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from ncs.mcp.install import CLIENTS, command, instructions
from tests import corpus
from tests.agents import ask

NCS = Path(sys.executable).with_name("ncs")


def typed(*words: str, cwd: Path) -> str:
    found = subprocess.run([str(NCS), *words], cwd=cwd, capture_output=True, text=True, check=True)
    return found.stdout


def block(printed: str, client: str) -> str:
    """What is printed for a client, without its heading."""
    found = re.search(rf"^# {client}.*\n([\s\S]*?)(?=^# |\Z)", printed, re.MULTILINE)
    assert found, client
    return found[1].strip()


@pytest.mark.slow
@pytest.mark.skipif(not NCS.is_file(), reason="the command is not installed beside this Python")
def test_from_a_clone_to_an_agent_that_is_answered(tmp_path: Path) -> None:
    tree = corpus.write(tmp_path / "repos")
    typed("build", ".", "-q", cwd=tree)
    assert "Keyboards.hideSoftKeyboard" in typed("query", "hide soft keyboard", "-k", "1", cwd=tree).split("\n")[0]
    entry = json.loads(block(typed("mcp", "--install", cwd=tree), "Cursor"))["mcpServers"]["ncs"]
    server = StdioServerParameters(command=entry["command"], args=entry["args"], cwd=tree)

    async def run() -> str:
        async with Client(server) as client:
            found = await ask(client, "search_code", query="hide soft keyboard", k=1)
            whole = await ask(client, "get_function", place=found.places[0])
            return str(whole.json["code"])

    assert "hideSoftInputFromWindow" in asyncio.run(run())


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
