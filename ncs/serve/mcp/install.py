"""Settings of coding agents: adds this server to a client's settings, or takes it out; nothing else in them changes."""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ncs.console import say, show_text
from ncs.errors import BadInput, unknown
from ncs.files import JSON_BYTES, read_regular, replace_file
from ncs.serve.mcp import jsonc
from ncs.storage.snapshot import DEFAULT_NAME

START = "import sys; sys.path.pop(0); from ncs.cli.main import main; main()"
"""Without the working directory on sys.path: a typing.py of the project would be imported."""
SERVER = "ncs"
"""Our name among the servers of a client."""
BACKUP = ".before-ncs"
"""After the name of a file: what it held before its last change by us."""
BEGIN, END = "<!-- ncs: begin -->", "<!-- ncs: end -->"
GUIDE = f"""{BEGIN}
## Searching this code

The MCP server `ncs` finds functions by what they do; in a shell, `ncs query "validate uploads"` does.

- You know what code does, but not its name or place: `search_code` first, in a few plain words, before grep or reading
  files. Then `get_function` for the whole of one. Where all hits are weak, ask once more in other words of the domain.
- You know a name: `find_definition`, and `find_references` before you change or remove it.
- A bug report, a stack trace or a failing test: `locate` names the files to edit.
- Before you write a helper, or change code that may have copies: `find_similar`.
- Every place of an exact string, a regular expression, configuration, texts: grep.
{END}
"""


class Client(NamedTuple):
    """A program that starts MCP servers, and its settings: JSON, TOML or, of instructions for agents, Markdown.

    file: in the project, or below ~ (home), APP (the system's folder for settings), CONFIG (APP, but ~/.config on a
    Mac) or a variable of FOLDERS. key: under which servers stand; more: what our entry has beside the command;
    joined: whether its command is one list with the arguments.
    """

    title: str
    file: str
    key: str = "mcpServers"
    more: Mapping[str, object] = {}
    joined: bool = False


FOLDERS = {
    "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ".codex", "COPILOT_HOME": ".copilot", "GEMINI_CLI_HOME": "",
    "XDG_CONFIG_HOME": ".config",
}  # fmt: skip
"""Environment variables in which users name the folder of a client's settings, and that folder in home without them."""
_OPENCODE: dict[str, Any] = {"key": "mcp", "more": {"type": "local", "enabled": True}, "joined": True}
_VSCODE: dict[str, Any] = {"key": "servers", "more": {"type": "stdio"}}
_CLINE = "APP/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
CLIENTS: Mapping[str, Client] = {
    "claude-code": Client("Claude Code, this project", ".mcp.json"),
    "claude-code-user": Client("Claude Code, all projects", "CLAUDE_CONFIG_DIR/.claude.json"),
    "claude-desktop": Client("Claude Desktop", "APP/Claude/claude_desktop_config.json"),
    "codex": Client("Codex", "CODEX_HOME/config.toml", "mcp_servers", {"tool_timeout_sec": 60}),
    "cursor": Client("Cursor, this project", ".cursor/mcp.json"),
    "cursor-user": Client("Cursor, all projects", "~/.cursor/mcp.json"),
    "vscode": Client("VS Code, this project", ".vscode/mcp.json", **_VSCODE),
    "vscode-user": Client("VS Code, all projects", "APP/Code/User/mcp.json", **_VSCODE),
    "copilot-cli": Client("Copilot CLI", "COPILOT_HOME/mcp-config.json", more={"type": "local", "tools": ["*"]}),
    "gemini": Client("Gemini CLI", "GEMINI_CLI_HOME/.gemini/settings.json"),
    "opencode": Client("opencode, this project", "opencode.json", **_OPENCODE),
    "opencode-user": Client("opencode, all projects", "XDG_CONFIG_HOME/opencode/opencode.json", **_OPENCODE),
    "zed": Client("Zed", "CONFIG/zed/settings.json", "context_servers"),
    "windsurf": Client("Windsurf", "~/.codeium/windsurf/mcp_config.json"),
    "cline": Client("Cline in VS Code", _CLINE),
    "cline-cli": Client("Cline CLI", "~/.cline/data/settings/cline_mcp_settings.json"),
    "kilo": Client("Kilo Code, this project", ".kilocode/mcp.json"),
    "kiro": Client("Kiro, this project", ".kiro/settings/mcp.json"),
    "kiro-user": Client("Kiro, all projects", "~/.kiro/settings/mcp.json"),
    "agents-md": Client("when to search, for agents", "AGENTS.md"),
    "claude-md": Client("the same, for Claude Code", "CLAUDE.md"),
}


def command(options: Sequence[str]) -> list[str]:
    """The command that starts this installation: its own `ncs`, else its Python, by absolute paths."""
    script = Path(sys.executable).with_name("ncs.exe" if sys.platform == "win32" else "ncs")
    start = [str(script)] if script.is_file() else [sys.executable, "-c", START]
    return [*start, "mcp", *options]


def known_clients() -> list[tuple[str, str, str]]:
    """Of every client its name here, its title, and the file that is written."""
    return [(name, client.title, str(Path(*_place(client)))) for name, client in CLIENTS.items()]


def change_settings(name: str, options: Sequence[str], *, remove: bool, dry: bool) -> None:
    """Add ncs to the settings of a client, or remove it; dry: only show what is added.

    options: those of `ncs mcp` (--root, -i). Raises BadInput, and shows what to add by hand, for settings that are not
    JSON or TOML, have another server of our name, and for links.
    """
    if (client := CLIENTS.get(name)) is None:
        raise unknown("client", name, CLIENTS)
    entry, (base, file) = _entry(client, options), _place(client)
    path = base / file
    snippet = _merge("", client, entry)
    try:
        for each in (path, _backup(path)):
            _refuse_links(base, each)
        before, permissions = _read(path)
        after = _merge(before, client, None if remove else entry)
        kept = _read(_backup(path))[0] if remove else ""
        if kept and _merge(kept, client, entry) == before and _merge(kept, client, None) == kept:
            after = kept  # to the byte
        is_own = _merge(before, client, None) == before or not _backup(path).exists()
        keep = bool(before and after) and is_own  # a file with our entry must not replace a backup without it
        if not dry and after != before:
            _write(path, before if keep else "", after, permissions)
    except (OSError, ValueError, TypeError, ImportError, RecursionError) as error:
        if not remove:
            show_text(snippet)
        reason = getattr(error, "strerror", None) or str(error)
        by_hand = "remove ncs from it by hand" if remove else "add the lines above to it by hand"
        raise BadInput(f"{path} stays as it is ({reason}); {by_hand}") from None
    if dry:
        show_text(f"# {path}\n{snippet}")
    elif after == before:
        say(f"ncs: {path} {'does not name ncs' if remove else 'has it already'}; nothing is written")
    else:
        kept = f"; what it held is in {_backup(path).name}" if keep else ""
        say(f"ncs: {'taken out of' if remove else 'added to'} {path}{kept}")


def _entry(client: Client, options: Sequence[str]) -> dict[str, Any]:
    program, *arguments = command(options)
    if client.joined:
        return {**client.more, "command": [program, *arguments]}
    return {**client.more, "command": program, "args": arguments}


def _place(client: Client) -> tuple[Path, str]:
    """The folder that a file lies below, and its path there."""
    first, _, rest = client.file.partition("/")
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    if sys.platform == "win32":
        config = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    app = home / "Library" / "Application Support" if sys.platform == "darwin" else config
    bases = {"~": home, "APP": app, "CONFIG": config}
    bases |= {name: Path(os.environ.get(name) or home / folder) for name, folder in FOLDERS.items()}
    base, file = (bases[first], rest) if first in bases else (_project(), client.file)
    has_jsonc = client.joined and (base / f"{file}c").exists() and not (base / file).exists()
    return base, f"{file}c" if has_jsonc else file


def _project() -> Path:
    """The nearest folder with an index or a git work tree, but for home; else the working directory."""
    here = Path.cwd()
    tops = (top for top in (here, *here.parents) if (top / ".git").exists() or (top / DEFAULT_NAME).exists())
    return next((top for top in tops if top != Path.home()), here)


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _refuse_links(base: Path, path: Path) -> None:
    for each in (path, *path.parents):
        if each == base:
            return
        if each.is_symlink():
            raise ValueError(f"{each} is a link, which ncs does not write through")


def _read(path: Path) -> tuple[str, int]:
    """The text of a file, "" where there is none, and its permissions; raises OSError or ValueError."""
    try:
        data = read_regular(path, JSON_BYTES, follow=False)
    except FileNotFoundError:
        return "", 0o666
    return data.decode(), stat.S_IMODE(path.stat().st_mode)


def _write(path: Path, backup: str, after: str, permissions: int) -> None:
    """Write the settings, and what they held where there is a `backup`; a file without any is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if backup:
        replace_file(_backup(path), backup, permissions)
    if after:
        replace_file(path, after, permissions)
    else:
        path.unlink()


def _merge(text: str, client: Client, entry: Mapping[str, Any] | None) -> str:
    """Settings with our entry, without it for None; "" where nothing is left. ValueError for what is not understood."""
    kind = Path(client.file).suffix
    if kind == ".md":
        return _merge_guide(text, remove=entry is None)
    return (_merge_json if kind == ".json" else _merge_toml)(text, client.key, entry)


def _merge_guide(text: str, *, remove: bool) -> str:
    if remove and BEGIN not in text:
        return text
    if (text.count(BEGIN), text.count(END)) not in ((0, 0), (1, 1)) or text.find(BEGIN) > text.find(END):
        raise ValueError(f"{BEGIN} and {END} do not stand there once each")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2].lstrip("\n") if rest else ""
    parts = (before.rstrip("\n"), "" if remove else GUIDE.rstrip("\n"), after.rstrip("\n"))
    return "".join(f"{part}\n" for part in ("\n\n".join(filter(None, parts)),) if part)


def _merge_json(text: str, key: str, entry: Mapping[str, Any] | None) -> str:
    """Changed as text, so that comments and layout stay; what comes out is read again and compared."""
    source = text if text.strip() else "{}\n"
    try:
        settings = jsonc.parse(source)
    except ValueError:
        raise ValueError("it is not JSON") from None
    servers = settings.get(key, {}) if isinstance(settings, dict) else None
    if not isinstance(servers, dict):
        raise ValueError(f"its {key} is not an object")
    if not _change_entry(servers, entry):
        return text
    if entry is None:
        merged = jsonc.remove_member(source, key, SERVER)
    else:
        merged = jsonc.set_member(source, key, SERVER, servers[SERVER])
    if {key: {}, **jsonc.parse(merged or "{}")} != {**settings, key: servers}:
        raise ValueError(f"it names {SERVER} in a way that ncs does not change")
    return merged


def _merge_toml(text: str, key: str, entry: Mapping[str, Any] | None) -> str:
    """Tables are taken out and added as text, so that comments stay; what comes out is read again and compared."""
    servers, others = _toml(text, key)
    if not _change_entry(servers, entry):
        return text
    kept = []
    subtables = "" if entry else r"(\..*)?"
    header = re.compile(rf"\[{key}\.{SERVER}{subtables}\]")
    for table in re.split(r"(?m)^(?=\[)", text):
        lines = table.splitlines(keepends=True)
        ours = header.match(table) is not None
        kept.append("".join(line for line in lines if not ours or line.startswith("#")))
    values = {name: value for name, value in servers.get(SERVER, {}).items() if not isinstance(value, dict)}
    added = [
        f"[{key}.{SERVER}]",
        *(f"{name} = {json.dumps(each, ensure_ascii=False)}" for name, each in values.items()),
    ]
    parts = ("".join(kept).rstrip("\n"), "\n".join(added) if entry else "")
    merged = "\n\n".join(filter(None, parts))
    if _toml(merged, key) != (servers, others):
        raise ValueError(f"it names {key}.{SERVER} in a way that ncs does not change")
    return f"{merged}\n" if merged else ""


def _toml(text: str, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The servers of a TOML file, and the rest of it."""
    if not text.strip():
        return {}, {}
    settings = importlib.import_module("tomllib").loads(text)  # Python 3.11
    servers = settings.pop(key, {})
    if not isinstance(servers, dict):
        raise ValueError(f"its {key} is not a table")
    return servers, settings


def _change_entry(servers: dict[str, Any], entry: Mapping[str, Any] | None) -> bool:
    """Change our entry among servers; keys of it that are not ours stay. Returns whether anything changed.

    Raises ValueError where it is not ours: where it starts something else.
    """
    old = servers.get(SERVER)
    if old is not None and not _is_ours(old):
        raise ValueError(f"it has another server called {SERVER}")
    if entry is None:
        servers.pop(SERVER, None)
    else:
        servers[SERVER] = {**(old if isinstance(old, dict) else {}), **entry}
    return servers.get(SERVER) != old


def _is_ours(entry: Any) -> bool:
    """Whether an entry is of `ncs mcp`, whichever installation it starts."""
    if not isinstance(entry, dict) or "url" in entry:
        return False
    start = entry.get("command", SERVER)
    program, *arguments = start if isinstance(start, list) else [start]
    return Path(program).stem == SERVER or "ncs.cli.main" in " ".join([*arguments, *entry.get("args", ())])
