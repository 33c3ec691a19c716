"""The formats of an answer, byte by byte, as pipes, editors and terminals get them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from socket import gethostname

import pytest
from typer.testing import CliRunner, Result

from ncs.cli.main import app
from ncs.cli.output.hits import choose_format
from ncs.errors import BadInput
from ncs.index import Index
from tests import corpus

HIDE = "repos/app/src/Keyboards.java:11:24:    public static void hideSoftKeyboard(Activity activity) {"
LONG = "def press_many_keys(keyboard, soft):\n" + "\n".join(f"    press_{i}(keyboard)" for i in range(40))
LONG += "\n    soft.hide(keyboard)\n" + "\n".join(f"    wait_{i}()" for i in range(20)) + "\n    return soft\n"
HOSTILE = 'def clear_evil_screen():\n    return "\x1b[2J\x07"  # \u202e reversed\r\n'
WIDE = 'def 读取文件(path):\n    """' + "读取文件并返回文本内容" * 8 + '"""\n    return read_wide(path)\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    repos = corpus.write(folder / "repos")
    (repos / "tools" / "long.py").write_text(LONG, encoding="utf-8")
    (repos / "tools" / "hostile.py").write_text(HOSTILE, encoding="utf-8", newline="")
    (repos / "tools" / "wide.py").write_text(WIDE, encoding="utf-8")
    with zipfile.ZipFile(repos / "packed.zip", "w") as archive:
        archive.writestr("packed/dock.py", "def unique_archived_dock():\n    return 1\n")
    Index.build(repos, folder / ".ncs").close()
    return folder


@pytest.fixture
def ncs(home: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(home)
    for name in ("NCS_INDEX", "NO_COLOR", "FORCE_COLOR", "COLORFGBG", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    return CliRunner()


def asked(ncs: CliRunner, *arguments: str) -> Result:
    found = ncs.invoke(app, ["query", *arguments])
    if found.exception and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def test_vimgrep_is_the_line_and_column_of_the_name_with_a_path_that_opens_from_here(ncs: CliRunner) -> None:
    found = asked(ncs, "hide soft keyboard", "-k", "1", "--format", "vimgrep")
    assert (found.exit_code, found.stdout) == (0, HIDE + "\n")
    path = HIDE.partition(":")[0]
    line = Path(path).read_text(encoding="utf-8").split("\n")[10]
    assert line[23:].startswith("hideSoftKeyboard")


def test_the_column_of_vimgrep_counts_bytes(ncs: CliRunner) -> None:
    found = asked(ncs, "read wide", "-k", "1", "--format", "vimgrep")
    assert found.stdout == "repos/tools/wide.py:1:5:def 读取文件(path):\n"


def test_what_lies_in_an_archive_cannot_be_opened_and_that_is_said_once(ncs: CliRunner) -> None:
    found = asked(ncs, "unique archived dock", "-k", "1", "--format", "vimgrep")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr == (
        "ncs: 1 hit is not in a file here (moved, or in an archive or bare repository); use --format plain\n"
    )
    assert asked(ncs, "unique archived dock", "-k", "1", "--format", "vimgrep", "-q").stderr == ""


def test_vimgrep_follows_a_function_that_has_moved_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "src" / "a.py"
    source.parent.mkdir()
    source.write_text('@cached("open_dock")\ndef open_dock():\n    return 1\n')
    Index.build(source.parent, tmp_path / ".ncs").close()
    source.write_text('\n\n@cached("open_dock")\ndef open_dock():\n    return 1\n')
    monkeypatch.chdir(tmp_path)
    found = asked(CliRunner(), "open dock", "-k", "1", "--format", "vimgrep", "--functions-only")
    assert found.stdout == "src/a.py:4:5:def open_dock():\n"


def test_no_format_is_plain_in_a_pipe_and_two_are_refused() -> None:
    assert choose_format("vimgrep") == "vimgrep"
    assert choose_format(None, as_json=True) == "json"
    assert choose_format("jsonl", jsonl=True) == "jsonl"
    with pytest.raises(BadInput, match=r"^--json and --jsonl cannot be used together$"):
        choose_format(None, as_json=True, jsonl=True)
    with pytest.raises(BadInput, match=r"^--format plain and --json cannot be used together$"):
        choose_format("plain", as_json=True)
    with pytest.raises(BadInput, match="unknown format 'grep'; choose from table, plain, json, jsonl, vimgrep"):
        choose_format("grep")


def test_a_table_into_a_pipe_has_no_escapes_and_80_columns(ncs: CliRunner) -> None:
    found = asked(ncs, "hide soft keyboard", "-k", "1", "--format", "table")
    lines = found.stdout.splitlines()
    assert re.fullmatch(r" 1  Keyboards\.hideSoftKeyboard  confidence 0\.\d\d", lines[0])
    assert lines[1:] == [
        "    app/src/Keyboards.java:11",
        "    matched: hide, soft, keyboard",
        "    also at copy/src/Keyboards.java:11",
        "    11 public static void hideSoftKeyboard(Activity activity) {",
        "    12     InputMethodManager manager = (InputMethodManager) activity.getSystem…",
        "    13     manager.hideSoftInputFromWindow(activity.getCurrentFocus().getWindow…",
        "    14 }",
        "",
    ]


def test_colours_where_they_are_forced_come_with_a_link_to_the_line(
    ncs: CliRunner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    found = asked(ncs, "hide soft keyboard", "-k", "1").stdout
    address = f"file://{gethostname()}{home}/repos/app/src/Keyboards.java#11"
    assert re.search(rf"\x1b\]8;id=\d+;{re.escape(address)}\x1b\\\x1b\[32mapp/src/Keyboards\.java:11", found)
    archived = asked(ncs, "unique archived dock", "-k", "1").stdout
    assert "\x1b[32mpacked/dock.py:1" in archived
    assert "\x1b]8" not in archived


def test_of_a_long_function_the_line_with_most_words_of_the_question_is_shown(ncs: CliRunner) -> None:
    shown = asked(ncs, "press many keys hide soft keyboard", "-k", "1", "--path", "long.py").stdout.splitlines()
    assert shown[1] == "     1  def press_many_keys(keyboard, soft):"
    assert "    42      soft.hide(keyboard)" in shown
    assert len(shown) < 22
    assert re.fullmatch(r"      \.\.\. \d+ more lines", shown[-2])


def test_all_shows_every_line(ncs: CliRunner) -> None:
    question = ["press many keys", "-k", "1", "--path", "long.py"]
    shown = asked(ncs, *question, "-A").stdout.splitlines()
    assert [line[8:] for line in shown[1:-1]] == LONG.rstrip("\n").split("\n")
    assert asked(ncs, *question, "--all", "--format", "table").stdout.count("\n    63     return soft\n") == 1


@pytest.mark.parametrize("form", ["plain", "table"])
def test_controls_in_code_are_shown_and_not_obeyed(ncs: CliRunner, form: str) -> None:
    found = asked(ncs, "clear evil screen", "-k", "1", "--format", form).stdout
    assert '    return "␛[2J␇"  # � reversed' in found
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", found)


def test_wide_characters_are_cut_at_the_width_of_the_terminal(ncs: CliRunner) -> None:
    from rich.cells import cell_len

    lines = asked(ncs, "read wide", "-k", "1", "--format", "table").stdout.splitlines()
    assert max(map(cell_len, lines)) in (79, 80)  # a wide one does not fit the last column
    assert lines[4].endswith("…")
