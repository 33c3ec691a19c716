"""What a terminal shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.waiting import LONG

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
"""Colours, and links."""


def in_terminal(arguments: list[str], cwd: Path, columns: int, **more: str) -> str:
    """The output of `ncs` in a terminal of this width."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:  # a container without /dev/pts
        pytest.skip(f"no terminal to be had: {error}")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    environment.pop("COLUMNS", None)
    environment.update(more)
    command = [sys.executable, "-m", "ncs.cli", *arguments]
    with subprocess.Popen(command, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            output += part
        process.wait(timeout=LONG)
    os.close(ours)
    return output.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 160])
def test_hits_are_coloured_and_no_line_is_wider_than_the_terminal(demo: Path, columns: int) -> None:
    shown = in_terminal(["query", "hide soft keyboard", "-k", "2"], demo, columns)
    assert "\x1b[" in shown
    plain = ESCAPES.sub("", shown)
    assert max(len(line) for line in plain.split("\n")) <= columns
    assert " 1  Keyboards.hideSoftKeyboard  confidence 0." in plain
    assert re.search(r"\x1b\]8;id=\d+;file://[^/]*/.*/repos/app/src/Keyboards\.java#11\x1b\\", shown)
    assert "matched: hide, soft, keyboard" in plain
    assert ("…" in plain) == (columns == 80)  # the long lines of the code are cut, not wrapped


def test_matching_words_are_marked_inside_identifiers(demo: Path) -> None:
    shown = in_terminal(["query", "hide soft keyboard", "-k", "1"], demo, 160)
    marked = re.findall(r"\x1b\[[0-9;]*4(?:;[0-9;]*)?m([A-Za-z]+)", shown)
    assert {"hide", "Soft", "Keyboard"} <= set(marked)


@pytest.mark.parametrize("columns", [50, 80])
def test_an_explanation_fits_the_terminal_and_does_without_colours(demo: Path, columns: int) -> None:
    question = ["query", "how to hide the soft keyboard internationalization", "-k", "3", "--explain"]
    shown = in_terminal(question, demo, columns, NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:[0-9;]*;)?[349][0-7](?:;|m)", shown)
    plain = ESCAPES.sub("", shown)
    assert max(len(line) for line in plain.split("\n")) <= columns
    assert " = lexical " in plain
    assert "how-to query; words: hide, soft," in plain


def test_info_and_words_are_tables_in_a_terminal(demo: Path) -> None:
    assert "6 functions, 4 classes and top-level blocks, and" in ESCAPES.sub("", in_terminal(["info"], demo, 80))
    assert "words used like 'keyboard'\n" in ESCAPES.sub("", in_terminal(["words", "keyboard"], demo, 80))
