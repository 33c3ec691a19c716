"""File names with newlines, escapes and markup: every output shows them on one line, and no terminal obeys them."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from ncs.index import Index
from tests.command import invoke
from tests.gitrepo import write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
NAMES: tuple[str, ...] = (
    "a\nb.py",
    "\x1b[31mred.py",
    "\x9b31mcsi.py",
    "[red]bold[-red].py",
    "[link=http:evil]x.py",
    "\u202egnp.py",
)
NAMES += ("n\rn.py", "d\n1. forged  x.py:1  9.0000/x.py", "li\u2028ne.py", "t\tb.py", os.fsdecode(b"bad\xff.py"))
CODE = "def hide_keyboard_{0}(view):\n    return view.hide('soft keyboard', {0})\n"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;id=\d+;file://[^\x1b\s]*\x1b\\|\x1b\]8;;\x1b\\")
"""Colors and links to files."""
MESSAGES = ("ncs: ", "note: ", "nothing changed", "1", "skipped: ", "seconds: ", "broken: ", "new: ", "search it")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    files = {name: CODE.format(number) for number, name in enumerate(NAMES)}
    try:
        write(folder / "src", {**files, "brok\nen.py": "def f(:\n  x = = 3\n" * 3})
    except OSError:
        pytest.skip("this file system has no such names")
    Index.build(folder / "src", folder / ".ncs").close()
    return folder


def test_plain_hits_are_one_line_each_and_names_cannot_forge_another(home: Path) -> None:
    lines = invoke("query", "hide soft keyboard", "-k", "50", "--no-code", cwd=home).stdout.splitlines()
    assert len(lines) == len(NAMES)
    for rank, line in enumerate(lines, 1):
        assert re.fullmatch(rf"{rank}\. hide_keyboard_\d+  .*  (strong|likely|weak)", line)


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "hide soft keyboard", "-k", "50"),
        ("query", "hide soft keyboard", "-k", "50", "--explain"),
        ("query", "hide soft keyboard", "-k", "50", "--format", "vimgrep"),
        ("query", "hide soft keyboard", "-k", "50", "--jsonl"),
        ("query", "\x1b[31mhide \u2028 keyboard", "-k", "50"),
        ("similar", f"src/{NAMES[0]}:1", "-k", "50"),
        ("info",),
        ("doctor",),
        ("doctor", "--json"),
        ("eval", "queries.tsv"),
        ("words", "keyb\x1b[31moard"),
        ("build", "src", "-v", "-i", "other"),
        ("update", "-v", "-i", "other"),
        ("query", "x", "-i", "no\n\x1b[31mindex"),
    ],
    ids=lambda arguments: ascii(" ".join(arguments)),
)
@pytest.mark.parametrize("colors", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "colors"])
def test_no_output_has_a_character_that_a_terminal_obeys(
    home: Path, arguments: tuple[str, ...], colors: dict[str, str]
) -> None:
    misses = [f"show the \x1b[31mdock {name}\tsrc/{name}:1\n" for name in NAMES if name.isprintable()]
    (home / "queries.tsv").write_text("".join(misses), "utf-8")
    (home / "src" / f"new\n{len(colors)}.py").write_text("x = 1\n")
    run = invoke(*arguments, cwd=home, **colors)
    assert run.returncode in (0, 1, 2)
    assert OBEYED.findall(OURS.sub("", run.stdout + run.stderr)) == []
    for line in run.stderr.splitlines():
        assert line.startswith(MESSAGES)


def test_json_keeps_every_name(home: Path) -> None:
    hits = json.loads(invoke("query", "hide soft keyboard", "-k", "50", "--json", cwd=home).stdout)["hits"]
    assert {hit["path"] for hit in hits} == {*NAMES[:-1], "bad\\xff.py"}


def test_vimgrep_leaves_out_names_that_an_editor_could_not_read_back(home: Path) -> None:
    run = invoke("query", "hide soft keyboard", "-k", "50", "--format", "vimgrep", cwd=home)
    paths = {line.split(":1:5:")[0] for line in run.stdout.splitlines()}
    assert paths == {"src/[red]bold[-red].py", "src/[link=http:evil]x.py", "src/t\tb.py"}
