"""`ncs mcp --install CLIENT`: what is in a client's settings stays, and nothing is written through a link."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ncs.serve.mcp.install import BACKUP, BEGIN, CLIENTS, END, FOLDERS, command
from ncs.serve.mcp.tools import TOOLS
from tests.command import invoke

JSON_CLIENTS = [name for name, client in CLIENTS.items() if client.file.endswith(".json")]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="HOME decides where the settings lie")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project; home is beside it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in FOLDERS:
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def run(project: Path, *arguments: str) -> Any:
    return invoke("mcp", *arguments, cwd=project)


def files(project: Path) -> dict[str, str]:
    """All files of the project and of home, with their content."""
    room = project.parent
    return {path.relative_to(room).as_posix(): path.read_text() for path in room.rglob("*") if path.is_file()}


def toml(text: str) -> Any:
    return pytest.importorskip("tomllib").loads(text)


@pytest.mark.parametrize("arguments", [["--install"], ["--install", "list"]])
def test_the_clients_are_listed_with_their_files_and_nothing_is_written(project: Path, arguments: list[str]) -> None:
    rows = [line.split("\t") for line in run(project, *arguments).stdout.splitlines()]
    assert [row[0] for row in rows] == list(CLIENTS)
    assert {row[0]: row[2] for row in rows}["claude-code"] == str(project / ".mcp.json")
    assert {row[0]: row[2] for row in rows}["codex"] == str(project.parent / "home/.codex/config.toml")
    assert files(project) == {}


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_json_settings_start_this_installation_and_lose_only_that_again(project: Path, name: str) -> None:
    client = CLIENTS[name]
    assert run(project, "--install", name, "--root", ".").returncode == 0
    ((path, text),) = files(project).items()
    entry = json.loads(text)[client.key]["ncs"]
    start = entry["command"] if client.joined else [entry["command"], *entry["args"]]
    assert start == command(["--root", str(project)])
    assert Path(start[0]).is_absolute()
    assert {key: entry[key] for key in client.more} == client.more
    mine = {"theme": "d\u00e4rk", client.key: {"other": {"command": "x"}, "ncs": {"env": {"A": "1"}}}}
    (project.parent / path).write_text(json.dumps(mine, indent="\t", ensure_ascii=False))
    before = files(project)[path]
    assert run(project, "--install", name).returncode == 0
    merged = json.loads(files(project)[path])
    assert merged[client.key]["ncs"] == {**client.more, **merged[client.key]["ncs"], "env": {"A": "1"}}
    assert files(project)[path + BACKUP] == before
    assert '\n\t"theme": "d\u00e4rk"' in files(project)[path]
    again = files(project)
    assert "has it already" in run(project, "--install", name).stderr
    assert files(project) == again
    assert run(project, "--uninstall", name).returncode == 0
    assert json.loads(files(project)[path]) == {**mine, client.key: {"other": {"command": "x"}}}


def test_the_backup_is_the_last_file_without_ncs(project: Path) -> None:
    path, first = project / ".mcp.json", '{"mcpServers": {"other": {"command": "x", "args": ["a"]}}}'
    path.write_text(first)
    said = []
    for arguments in (["--install"], ["--install", "--root", ".."], ["--uninstall"]):
        said.append(run(project, arguments[0], "claude-code", *arguments[1:]).stderr)
        assert path.with_name(path.name + BACKUP).read_text() == first
    assert [BACKUP in each for each in said] == [True, False, False]
    path.write_text(later := first.replace("other", "another"))
    run(project, "--install", "claude-code")
    assert path.with_name(path.name + BACKUP).read_text() == later


@pytest.mark.parametrize(
    ("name", "content"), [("claude-code", '{"mcpServers":{}}'), ("codex", 'model = "x"'), ("codex", "\n\na = 1\n\n\n")]
)
def test_what_the_settings_held_comes_back_to_the_byte(project: Path, name: str, content: str) -> None:
    path = project / ".mcp.json" if name == "claude-code" else project.parent / "home/.codex/config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    if run(project, "--install", name).returncode == 0:  # codex: from Python 3.11
        assert path.read_text() != content
        assert run(project, "--uninstall", name).returncode == 0
    assert path.read_text() == content


def test_codex_keeps_comments_and_other_tables(project: Path) -> None:
    path = project.parent / "home/.codex/config.toml"
    path.parent.mkdir()
    theirs = '[mcp_servers.other]  # theirs\ncommand = "x"\n\n[a.b]\nc = [\n[1],\n]\n'
    ours = '[mcp_servers.ncs]\ncommand = "/old/ncs"\nstartup_timeout_sec = 9\n\n# env\n[mcp_servers.ncs.env]\nA = "1"\n'
    mine = f'# mine\nmodel = "o"\n\n{theirs}'
    path.write_text(mine.replace(theirs, f"{ours}\n{theirs}"))
    if sys.version_info < (3, 11):
        assert run(project, "--install", "codex").returncode == 2
        return
    assert run(project, "--install", "codex").returncode == 0
    settings = toml(path.read_text())
    entry = settings["mcp_servers"]["ncs"]
    assert [entry["command"], *entry["args"]] == command([])
    assert (entry["env"], entry["startup_timeout_sec"]) == ({"A": "1"}, 9)
    assert {**settings, "mcp_servers": {"other": {"command": "x"}}} == toml(mine)
    for comment in ("# mine", "# theirs", "# env"):
        assert comment in path.read_text()
    again = path.read_text()
    run(project, "--install", "codex")
    assert path.read_text() == again
    run(project, "--uninstall", "codex")
    assert toml(path.read_text()) == toml(mine)


def test_what_was_only_ours_is_removed_with_its_file(project: Path) -> None:
    for name in CLIENTS:
        run(project, "--install", name)
        assert len(files(project)) == 1
        run(project, "--uninstall", name)
        assert files(project) == {}
        assert "does not name ncs" in run(project, "--uninstall", name).stderr


def test_a_section_for_agents_is_added_between_marks_and_taken_out(project: Path) -> None:
    mine = "# Rules\n\nBe kind.\n"
    (project / "AGENTS.md").write_text(mine)
    run(project, "--install", "agents-md")
    (project / "AGENTS.md").write_text((project / "AGENTS.md").read_text() + "\nMore rules.\n")
    run(project, "--install", "agents-md")
    text = (project / "AGENTS.md").read_text()
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert text.startswith(mine)
    assert [tool for tool in TOOLS if f"`{tool}`" not in text] == ["index_status"]
    run(project, "--uninstall", "agents-md")
    assert (project / "AGENTS.md").read_text() == f"{mine}\nMore rules.\n"
    (project / "AGENTS.md").write_text(f"{END}\n{BEGIN}\n")
    assert run(project, "--install", "agents-md").returncode == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vscode", '{"servers": {}'),
        ("vscode", '{"servers": {},,}'),
        ("vscode", '{"servers": {"ncs": {"command": "docker", "args": ["run", "ncs", "mcp"]}}}'),
        ("vscode", '{"servers": {"ncs": {"url": "http://127.0.0.1:8767/mcp"}}}'),
        ("vscode", '{"servers": {"ncs": "ncs"}}'),
        ("vscode", "[]"),
        ("vscode", '{"servers": []}'),
        ("vscode", "[" * 100_000),
        ("codex", "[mcp_servers\n"),
        ("codex", 'mcp_servers = { ncs = { command = "x" } }\n'),
        ("codex", 'a = """\n[mcp_servers.ncs]\n"""\n[mcp_servers]\nncs.command = "x"\n'),
        ("codex", "mcp_servers = 3\n"),
        ("codex", "[mcp_servers]\nncs = 3\n"),
        ("codex", '[mcp_servers.ncs]\ncommand = "x"\n'),
    ],
)
def test_settings_that_are_not_understood_stay_and_the_lines_to_add_are_shown(
    project: Path, name: str, content: str
) -> None:
    path = Path(next(line.split("\t")[2] for line in run(project, "--install").stdout.splitlines() if name in line))
    path.parent.mkdir(parents=True)
    path.write_text(content)
    result = run(project, "--install", name)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert f"{path} stays as it is" in result.stderr
    assert "add the lines above" in result.stderr
    assert command([])[0] in result.stdout
    assert list(files(project).values()) == [content]


@pytest.mark.parametrize(
    ("content", "merged"),
    [
        ('{\n\t// {\n\t"b": "//\\"{/*", /* , */\n\t"context_servers": {\n\t\t"x": {}, // mine\n\t},\n}\n',
         '{\n\t// {\n\t"b": "//\\"{/*", /* , */\n\t"context_servers": {\n\t\t"x": {}, // mine\n\t\tNCS,\n\t},\n}\n'),
        ('{\n  "context_servers": {\n    // first\n    "x": {"url": "a"} // mine\n  } /* last */\n}',
         '{\n  "context_servers": {\n    // first\n    "x": {"url": "a"}, // mine\n    NCS\n  } /* last */\n}'),
        ("// Zed\n{\n  // none yet\n}\n", '// Zed\n{\n  // none yet\n  "context_servers": {\n    NCS\n  }\n}\n'),
        ('{\n"a": "\\ud800", "b": [1,],\n}', '{\n"a": "\\ud800", "b": [1,],\n  "context_servers": {\n    NCS\n  },\n}'),
        ("// Zed\n{\n}", '// Zed\n{\n  "context_servers": {\n    NCS\n  }\n}'),
    ],
)  # fmt: skip
def test_comments_trailing_commas_and_layout_stay(project: Path, content: str, merged: str) -> None:
    path = project.parent / "home/.config/zed/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert run(project, "--install", "zed").returncode == 0
    assert re.sub(r'"ncs": \{[^}]*}', "NCS", path.read_text()) == merged
    assert path.with_name(path.name + BACKUP).read_text() == content
    assert run(project, "--install", "zed", "--root", ".").returncode == 0
    assert re.sub(r'"ncs": \{[^}]*"--root"[^}]*}', "NCS", path.read_text()) == merged
    assert run(project, "--uninstall", "zed").returncode == 0
    assert path.read_text() == content


@pytest.mark.parametrize("name", ["claude-code", "agents-md"])
@pytest.mark.parametrize("mark", [".git", ".ncs"])
def test_settings_of_a_project_are_written_where_it_begins(project: Path, name: str, mark: str) -> None:
    (project / mark).mkdir()
    (project / "src" / "deep").mkdir(parents=True)
    assert run(project / "src" / "deep", "--install", name).returncode == 0
    assert list(files(project)) == [f"project/{CLIENTS[name].file}"]
    (project.parent / "home" / ".git").mkdir()
    (project.parent / "home" / "plain").mkdir()
    assert run(project.parent / "home" / "plain", "--install", name).returncode == 0
    assert f"home/plain/{CLIENTS[name].file}" in files(project)


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("codex", "CODEX_HOME", "config.toml"),
        ("claude-code-user", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode-user", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
    ],
)
def test_variables_say_where_the_settings_of_a_client_lie(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, file: str
) -> None:
    monkeypatch.setenv(variable, str(project / "elsewhere"))
    assert run(project, "--install", name).returncode == 0
    assert list(files(project)) == [f"project/elsewhere/{file}"]


def test_opencode_that_has_settings_with_comments_gets_no_second_file(project: Path) -> None:
    (project / "opencode.jsonc").write_text('{\n  "model": "x" // mine\n}\n')
    assert run(project, "--install", "opencode").returncode == 0
    assert sorted(files(project)) == ["project/opencode.jsonc", f"project/opencode.jsonc{BACKUP}"]


@pytest.mark.parametrize("place", [".vscode", ".vscode/mcp.json", f".vscode/mcp.json{BACKUP}"])
def test_nothing_is_written_through_a_link(project: Path, place: str) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "mcp.json").write_text("{}")
    link = project / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if place == ".vscode" else outside / "mcp.json")
    result = run(project, "--install", "vscode")
    assert result.returncode == 2
    assert "is a link" in result.stderr
    assert (outside / "mcp.json").read_text() == "{}"
    assert [path.name for path in outside.iterdir()] == ["mcp.json"]


def test_private_settings_stay_private(project: Path) -> None:
    path = project.parent / "home/.claude.json"
    path.write_text('{"token": "secret"}')
    path.chmod(0o600)
    run(project, "--install", "claude-code-user")
    for each in (path, path.with_name(path.name + BACKUP)):
        assert each.stat().st_mode & 0o777 == 0o600
    assert "secret" not in run(project, "--install", "claude-code-user", "--print").stdout


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_the_place_of_settings_is_refused(project: Path) -> None:
    os.mkfifo(project / ".mcp.json")
    assert run(project, "--install", "claude-code").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--install", "vim"], "no client 'vim'; choose from claude-code, "),
        (["vim"], "goes with --install"),
        (["--print"], "goes with --install"),
        (["--uninstall", "codex", "--print"], "--uninstall goes with neither"),
    ],
)
def test_wrong_arguments_are_one_line_with_the_remedy(project: Path, arguments: list[str], message: str) -> None:
    result = run(project, *arguments)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr


def test_print_shows_what_is_added_and_writes_nothing(project: Path) -> None:
    shown = run(project, "--install", "cursor", "--print").stdout
    heading, _, text = shown.partition("\n")
    assert heading == f"# {project / '.cursor/mcp.json'}"
    assert json.loads(text)["mcpServers"]["ncs"]["command"] == command([])[0]
    assert files(project) == {}
