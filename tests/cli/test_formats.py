"""The formats of an answer, byte by byte, as pipes, editors and terminals get them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import TypeAlias

import pytest
from rich.cells import cell_len

from ncs.index import Index
from ncs.serve.terminal import from_here
from tests import corpus, gitrepo
from tests.command import invoke
from tests.terminal import Terminal

KEYBOARDS = "repos/app/src/Keyboards.java"
HIDE = f"{KEYBOARDS}:11:24:    public static void hideSoftKeyboard(Activity activity) {{"
LONG_FUNCTION = "def press_many_keys(keyboard, soft):\n" + "\n".join(f"    press_{i}(keyboard)" for i in range(40))
LONG_FUNCTION += "\n    soft.hide(keyboard)\n" + "\n".join(f"    wait_{i}()" for i in range(20)) + "\n    return soft\n"
HOSTILE = 'def clear_evil_screen():\n    return "\x1b[2J\x07"  # \u202e reversed\r\n'
WIDE = 'def 读取文件(path):\n    """' + "读取文件并返回文本内容" * 8 + '"""\n    return read_wide(path)\n'
WIDE_LINE = "const 宽 = 1; function countPlanks(x) { return x; }\n"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
"""Colors, and links."""
Query: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    repos = corpus.write(folder / "repos")
    files = {"long.py": LONG_FUNCTION, "hostile.py": HOSTILE, "wide.py": WIDE, "wide.js": WIDE_LINE}
    gitrepo.write(repos / "tools", files)
    packed = gitrepo.zipped({"packed/dock.py": "def unique_archived_dock():\n    return 1\n"})
    gitrepo.write(repos, {"packed.zip": packed})
    Index.build(repos, folder / ".ncs").close()
    return folder


@pytest.fixture
def query(home: Path, monkeypatch: pytest.MonkeyPatch) -> Query:
    """`ncs query -k 1` on a terminal of 80 columns."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORFGBG", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return partial(invoke, "query", "-k", "1", cwd=home, COLUMNS="80", TERM="xterm-256color")


@pytest.mark.parametrize(
    ("folder", "shown"),
    [(".", KEYBOARDS), ("repos/app", "src/Keyboards.java"), ("repos/tools", "../app/src/Keyboards.java")],
)
@pytest.mark.parametrize("form", ["plain", "table", "vimgrep", "json"])
def test_every_format_shows_a_path_that_opens_from_here(home: Path, folder: str, shown: str, form: str) -> None:
    run = invoke("query", "hide soft keyboard", "-n", "1", "--format", form, cwd=home / folder)
    assert run.returncode == 0
    if form == "json":
        (hit,) = json.loads(run.stdout)["hits"]
        assert (hit["repository"], hit["path"], hit["file"]) == ("app", "src/Keyboards.java", shown)
        (copy,) = hit["copies"]
        assert (home / folder / copy["file"]).samefile(home / "repos/copy/src/Keyboards.java")
    else:
        assert f"{'' if form == 'vimgrep' else ' '}{shown}:11" in run.stdout
    if form in ("plain", "table"):
        assert f"also at {shown.replace('app', 'copy') if 'app' in shown else '../copy/' + shown}:11" in run.stdout


def test_a_terminal_without_a_width_has_that_of_most(query: Query) -> None:
    shown = query("hide soft keyboard", "--format", "table").stdout
    assert (query("hide soft keyboard", "--format", "table", COLUMNS="0").stdout, bool(shown)) == (shown, True)


def test_a_file_to_edit_has_reasons_and_no_score(home: Path) -> None:
    first, reasons, *_ = invoke("locate", "hide soft keyboard", "-n", "1", cwd=home).stdout.splitlines()
    assert first == "1. Keyboards.hideSoftKeyboard  repos/app/src/Keyboards.java:11"
    assert reasons.startswith("   words of the title: ")


def test_what_is_not_on_disk_keeps_the_path_of_its_repository(home: Path, tmp_path: Path) -> None:
    run = invoke("query", "unique archived dock", "-n", "1", "--no-code", cwd=home)
    assert run.stdout.split()[2] == "packed/dock.py:1"
    (hit,) = json.loads(invoke("query", "unique archived dock", "-n", "1", "--json", cwd=home).stdout)["hits"]
    assert hit["file"] is None
    shutil.copytree(home / ".ncs", tmp_path / ".ncs")  # without its sources
    run = invoke("query", "hide soft keyboard", "-n", "1", "--no-code", cwd=tmp_path)
    assert " app/src/Keyboards.java:11 " in run.stdout


def test_a_path_that_has_only_the_root_in_common_stays_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr/lib")
    assert from_here(Path("/usr/share/x.py")) == "../share/x.py"
    assert from_here(Path("/home/me/x.py")) == "/home/me/x.py"


def test_vimgrep_is_the_line_and_column_in_bytes_of_the_name_with_a_path_that_opens_from_here(
    query: Query, home: Path
) -> None:
    run = query("hide soft keyboard", "--format", "vimgrep")
    assert (run.returncode, run.stdout) == (0, HIDE + "\n")
    line = (home / KEYBOARDS).read_text(encoding="utf-8").split("\n")[10]
    assert line[23:].startswith("hideSoftKeyboard")
    assert query("count planks", "--format", "vimgrep").stdout == f"repos/tools/wide.js:1:25:{WIDE_LINE}"


def test_what_lies_in_an_archive_cannot_be_opened_which_is_said_once(query: Query) -> None:
    run = query("unique archived dock", "--format", "vimgrep")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == (
        "ncs: 1 hit is not in a file here (moved, or in an archive or bare repository); use --format plain\n"
    )
    assert query("unique archived dock", "--format", "vimgrep", "-q").stderr == ""


def test_vimgrep_has_a_match_of_a_function_inside_another_once(tmp_path: Path) -> None:
    gitrepo.write(tmp_path, {"a.py": "def outer():\n    def inner():\n        knock(1)\n    return inner\n"})
    Index.build(tmp_path, tmp_path / ".ncs", config=corpus.QUICK).close()
    run = invoke("query", "-e", "knock", "--format", "vimgrep", cwd=tmp_path)
    assert run.stdout == "a.py:3:9:        knock(1)\n"


def test_vimgrep_follows_a_function_that_has_moved_in_its_file(tmp_path: Path) -> None:
    code = '@cached("open_dock")\ndef open_dock():\n    return 1\n'
    Index.build(gitrepo.write(tmp_path / "src", {"a.py": code}), tmp_path / ".ncs").close()
    (tmp_path / "src" / "a.py").write_text("\n\n" + code)
    run = invoke("query", "open dock", "-k", "1", "--format", "vimgrep", "--functions-only", cwd=tmp_path)
    assert run.stdout == "src/a.py:4:5:def open_dock():\n"


def test_a_frame_is_at_its_line_in_every_format_and_follows_its_function(tmp_path: Path) -> None:
    code = "def open_dock(key):\n    turn(key)\n    return key\n"
    Index.build(gitrepo.write(tmp_path / "src", {"a.py": code}), tmp_path / ".ncs").close()
    ask = partial(invoke, "query", 'File "/x/src/a.py", line 2, in open_dock', "-n", "1", cwd=tmp_path)
    assert ask().stdout.startswith("1. open_dock  src/a.py:2  frame, ")
    assert "    src/a.py:2\n" in ask("--format", "table").stdout
    assert json.loads(ask("--json").stdout)["hits"][0]["line"] == 2
    assert "line" not in json.loads(invoke("query", "open_dock", "--json", cwd=tmp_path).stdout)["hits"][0]
    (tmp_path / "src" / "a.py").write_text("\n\n" + code)
    assert ask("--format", "vimgrep", "--no-update").stdout == "src/a.py:4:5:    turn(key)\n"


def test_a_table_into_a_pipe_has_no_escapes_and_80_columns(query: Query) -> None:
    lines = query("hide soft keyboard", "--format", "table").stdout.splitlines()
    assert re.fullmatch(r" 1  Keyboards\.hideSoftKeyboard  (strong|likely)", lines[0])
    assert lines[1:] == [
        "    repos/app/src/Keyboards.java:11",
        "    matched: hide, soft, keyboard",
        "    also at repos/copy/src/Keyboards.java:11",
        "    11 public static void hideSoftKeyboard(Activity activity) {",
        "    12     InputMethodManager manager = (InputMethodManager) activity.getSystem…",
        "    13     manager.hideSoftInputFromWindow(activity.getCurrentFocus().getWindow…",
        "    14 }",
        "",
    ]
    wide = query("read wide", "--path", "wide.py", "--format", "table").stdout.splitlines()
    assert max(map(cell_len, wide)) in (79, 80)  # a wide character does not fit the last column
    assert wide[4].endswith("…")


def test_forced_colors_come_with_a_link_to_the_line(query: Query, home: Path) -> None:
    output = query("hide soft keyboard", FORCE_COLOR="1").stdout
    address = f"file://{gethostname()}{home}/repos/app/src/Keyboards.java#11"
    assert re.search(rf"\x1b\]8;id=\d+;{re.escape(address)}\x1b\\\x1b\[32mrepos/app/src/Keyboards\.java:11", output)
    archived = query("unique archived dock", FORCE_COLOR="1").stdout
    assert "\x1b[32mpacked/dock.py:1" in archived
    assert "\x1b]8" not in archived


def test_of_a_long_function_the_line_with_most_words_of_the_query_is_shown_or_every_line(query: Query) -> None:
    lines = query("press many keys hide soft keyboard", "--path", "long.py").stdout.splitlines()
    assert lines[1] == "     1  def press_many_keys(keyboard, soft):"
    assert "    42      soft.hide(keyboard)" in lines
    assert len(lines) < 22
    assert re.fullmatch(r"      \.\.\. \d+ more lines", lines[-2])
    every = query("press many keys", "--path", "long.py", "-a").stdout.splitlines()
    assert [line[8:] for line in every[1:-1]] == LONG_FUNCTION.rstrip("\n").split("\n")
    table = query("press many keys", "--path", "long.py", "--all", "--format", "table").stdout
    assert table.count("\n    63     return soft\n") == 1


@pytest.mark.parametrize("form", ["plain", "table"])
def test_controls_in_code_are_shown_and_not_obeyed(query: Query, form: str) -> None:
    output = query("clear evil screen", "--format", form).stdout
    assert '    return "␛[2J␇"  # � reversed' in output
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", output)


def in_terminal(*arguments: str, cwd: Path, columns: int = 80, **environment: str) -> str:
    """The output of `ncs` in a terminal of this width."""
    terminal = Terminal(*arguments, cwd=cwd, columns=columns, stdout=None, **environment)
    terminal.wait()
    return terminal.written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 160])
def test_hits_are_colored_and_no_line_is_wider_than_the_terminal(demo: Path, columns: int) -> None:
    output = in_terminal("query", "hide soft keyboard", "-k", "2", cwd=demo, columns=columns)
    marked = re.findall(r"\x1b\[[0-9;]*4(?:;[0-9;]*)?m([A-Za-z]+)", output)
    assert {"hide", "Soft", "Keyboard"} <= set(marked)  # words inside identifiers
    plain = ESCAPES.sub("", output)
    assert max(len(line) for line in plain.split("\n")) <= columns
    assert " 1  Keyboards.hideSoftKeyboard  strong" in plain
    assert re.search(r"\x1b\]8;id=\d+;file://[^/]*/.*/repos/app/src/Keyboards\.java#11\x1b\\", output)
    assert "matched: hide, soft, keyboard" in plain
    assert ("…" in plain) == (columns == 80)  # the long lines of the code are cut, not wrapped


def test_an_explanation_fits_the_terminal_and_does_without_colors(demo: Path) -> None:
    arguments = ["query", "how to hide the soft keyboard internationalization", "-k", "3", "--explain"]
    output = in_terminal(*arguments, cwd=demo, columns=50, NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:[0-9;]*;)?[349][0-7](?:;|m)", output)
    plain = ESCAPES.sub("", output)
    assert max(len(line) for line in plain.split("\n")) <= 50
    assert " = lexical " in plain
    assert "how-to query; words: hide, soft," in plain


def test_info_and_words_are_tables_in_a_terminal(demo: Path, tmp_path: Path) -> None:
    assert "6 functions, 4 classes and top-level blocks, and" in ESCAPES.sub("", in_terminal("info", cwd=demo))
    Index.build(corpus.write_pairs(tmp_path / "src"), tmp_path / ".ncs").close()
    table = ESCAPES.sub("", in_terminal("words", "baba", cwd=tmp_path))
    assert "words used like 'baba'\n" in table
    assert re.findall(r"^ *│? *([a-z]+) +│? *\d\.\d{3}", table, re.MULTILINE) == ["bori"]
