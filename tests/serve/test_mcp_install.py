"""The configuration that `ncs mcp --install` prints starts this installation in every client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ncs.serve.mcp.install import CLIENTS, START, command, instructions


def block(printed: str, client: str) -> str:
    """What is printed for a client, without its heading."""
    match = re.search(rf"^# {client}.*\n([\s\S]*?)(?=^# |\Z)", printed, re.MULTILINE)
    assert match, client
    return match[1].strip()


def test_every_client_is_told_to_start_this_installation(tmp_path: Path) -> None:
    printed = instructions(["--root", str(tmp_path)])
    program, *arguments = command(["--root", str(tmp_path)])
    assert Path(program).is_absolute()
    assert Path(program).exists()
    assert all(block(printed, client) for client in CLIENTS)
    for client, key in (("Claude Desktop", "mcpServers"), ("Cursor", "mcpServers"), ("VS Code", "servers"),
                        ("Zed", "context_servers")):  # fmt: skip
        entry = json.loads(block(printed, client))[key]["ncs"]
        assert (entry["command"], entry["args"]) == (program, arguments)
    assert block(printed, "Claude Code").endswith(f"mcp --root {tmp_path}")


def test_the_configuration_of_codex_is_toml() -> None:
    entry = pytest.importorskip("tomllib").loads(block(instructions(), "Codex"))["mcp_servers"]["ncs"]
    assert [entry["command"], *entry["args"]] == command([])


def test_printing_the_configuration_writes_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", START, "mcp", "--install"], cwd=tmp_path, check=True, capture_output=True
    )
    assert b"claude mcp add ncs" in ran.stdout
    assert list(tmp_path.iterdir()) == []
