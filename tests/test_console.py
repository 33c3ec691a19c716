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

from ncs.index import Index
from tests import corpus

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(arguments: list[str], cwd: Path, columns: int) -> str:
    """The output of `ncs` in a terminal of this width."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:  # a container without /dev/pts
        pytest.skip(f"no terminal to be had: {error}")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    environment.pop("COLUMNS", None)
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
        process.wait(timeout=60)
    os.close(ours)
    return output.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console")
    Index.build(corpus.write(folder / "repos"), folder / ".ncs").close()
    return folder


@pytest.mark.parametrize("columns", [80, 160])
def test_hits_are_coloured_and_no_line_is_wider_than_the_terminal(home: Path, columns: int) -> None:
    shown = in_terminal(["query", "hide soft keyboard", "-k", "2"], home, columns)
    assert "\x1b[" in shown
    plain = ESCAPES.sub("", shown)
    assert max(len(line) for line in plain.split("\n")) <= columns
    assert " 1  Keyboards.hideSoftKeyboard" in plain
    assert "matched: hide, soft, keyboard" in plain
    assert ("…" in plain) == (columns == 80)  # the long lines of the code are cut, not wrapped


def test_matching_words_are_marked_inside_identifiers(home: Path) -> None:
    shown = in_terminal(["query", "hide soft keyboard", "-k", "1"], home, 160)
    marked = re.findall(r"\x1b\[[0-9;]*4(?:;[0-9;]*)?m([A-Za-z]+)", shown)
    assert {"hide", "Soft", "Keyboard"} <= set(marked)


def test_tables_are_drawn(home: Path) -> None:
    assert "6 functions, 4 classes and top-level blocks, and" in ESCAPES.sub("", in_terminal(["info"], home, 80))
    assert "words used like 'keyboard'\n" in ESCAPES.sub("", in_terminal(["words", "keyboard"], home, 80))


def test_a_build_of_seconds_leaves_only_its_summary(home: Path) -> None:
    plain = ESCAPES.sub("", in_terminal(["build", "repos", "-i", "other"], home, 80))
    assert "6 functions, 4 classes and top-level blocks (3 exact copies folded)" in plain
