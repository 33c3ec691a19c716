"""The configuration of the usual clients, to paste: printed, never written."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

START = "import sys; sys.path.pop(0); from ncs.cli.main import main; main()"
"""Without the working directory on sys.path: a typing.py of the project would be imported."""


def command(options: Sequence[str]) -> list[str]:
    """The command that starts this installation: its own `ncs`, else its Python, by absolute paths."""
    script = Path(sys.executable).with_name("ncs.exe" if sys.platform == "win32" else "ncs")
    start = [str(script)] if script.is_file() else [sys.executable, "-c", START]
    return [*start, "mcp", *options]


def instructions(options: Sequence[str]) -> str:
    """The instructions of each client; options: those of `ncs mcp` (--root, -i)."""
    program, *arguments = command(options)
    entry = {"command": program, "args": arguments}
    desktop = {"command": program, "args": [*arguments, *([] if options else ["--root", "/path/to/your/project"])]}
    toml = f"[mcp_servers.ncs]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\ntool_timeout_sec = 60"
    parts = {
        "Claude Code: type, in the project": f"claude mcp add ncs -- {shlex.join([program, *arguments])}",
        "Claude Desktop: claude_desktop_config.json (Settings, Developer)": _json({"mcpServers": {"ncs": desktop}}),
        "Cursor: .cursor/mcp.json in the project": _json({"mcpServers": {"ncs": entry}}),
        "VS Code: .vscode/mcp.json in the project": _json({"servers": {"ncs": {"type": "stdio", **entry}}}),
        "Codex: ~/.codex/config.toml": toml,
        "Zed: settings.json": _json({"context_servers": {"ncs": {**entry, "env": {}}}}),
    }
    return "\n\n".join(f"# {name}\n{text}" for name, text in parts.items()) + "\n"


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
