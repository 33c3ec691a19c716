"""The interactive search shows what it should while one types, chooses, asks why and opens: looked at as drawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from ncs.answer import Answer
from ncs.config import BuildConfig, FastTextConfig
from ncs.index import Index
from ncs.serve.tui.app import SearchApp
from ncs.serve.tui.search import Searcher
from tests.waiting import LONG
from tests.waiting import until as wait_until

pytestmark = pytest.mark.anyio
QUICK = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1, least_words=1, min_count=1))
SVG = "{http://www.w3.org/2000/svg}"
WIDTH, HEIGHT = 12.2, 24.4
"""Of a cell of the picture."""
OPEN = '''def open_file(path):
    """Open a file for reading."""
    handle = reader(path)
    return handle
'''
HOSTILE = "def steer_terminal(x):\n    return '\x1b[2J [red]bold[/red] \u202e \u2028 [/]' + x\n"
WIDE = f"def parse_table(x):\n    # {'wide ' * 150}\n    return '日本語', x\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tui") / "zoo"
    root.mkdir()
    (root / "files.py").write_text(OPEN + "\n\ndef close_file(handle):\n    return handle.close()\n")
    (root / "hostile.py").write_text(HOSTILE)
    (root / "wide.py").write_text(WIDE)
    Index.build(root, root / ".ncs", config=QUICK).close()
    return root


def drawn(app: SearchApp) -> list[str]:
    """The rows of the screen, from the picture that is drawn."""
    rows: dict[int, str] = {}
    picture = ElementTree.fromstring(app.export_screenshot(title=""))
    found = [text for text in picture.iter(f"{SVG}text") if "-line-" in text.get("clip-path", "")]
    for text in sorted(found, key=lambda text: float(text.get("x", "0"))):
        row = round(float(text.get("y", "0")) / HEIGHT - 0.75)
        rows[row] = rows.get(row, "").ljust(round(float(text.get("x", "0")) / WIDTH)) + (text.text or "")
    return [rows.get(row, "").replace("\xa0", " ").rstrip() for row in range(max(rows) + 1)]


@asynccontextmanager
async def searching(
    folder: Path, size: tuple[int, int] = (80, 24), make: Callable[[Path], Searcher] = Searcher
) -> AsyncIterator[Pilot[None]]:
    searcher = make(folder)
    app = SearchApp(searcher)
    try:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield pilot
    finally:
        searcher.close()


async def until(pilot: Pilot[None], *texts: str, gone: str = "\0") -> list[str]:
    """Wait until these texts are to be seen, and another is not; the rows."""
    end = time.monotonic() + LONG
    while not (all(text in (seen := "\n".join(screen(pilot))) for text in texts) and gone not in seen):
        assert time.monotonic() < end, seen
        await pilot.pause(0.02)
    return seen.split("\n")


async def ask(pilot: Pilot[None], text: str) -> None:
    """Type, and wait for the answer to all of it: a slow machine may have asked for the first letters before."""
    await pilot.press(*text)
    await so(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers) and answered(pilot) == text)


async def so(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, "\n".join(screen(pilot))
        await pilot.pause(0.02)


def answered(pilot: Pilot[None]) -> str:
    """The question that the hits on the screen answer."""
    assert isinstance(pilot.app, SearchApp)
    return str(pilot.app._answer["query"])


def screen(pilot: Pilot[None]) -> list[str]:
    assert isinstance(pilot.app, SearchApp)
    return drawn(pilot.app)


async def test_hits_and_the_code_of_the_first_are_shown_while_one_types(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        assert "4 documents; hits appear as you type" in "\n".join(screen(pilot))
        await ask(pilot, "open file")
        rows = await until(pilot, "def open_file", "hits: confidence", "matched: open, file", "quit")
        assert "hits: confidence, name, place" in rows[1]
        assert rows[0].strip() == "open file"
        assert "open_file  zoo/files.py:1" in rows[2]
        assert [row.split() for row in rows if "def open_file" in row] == [["1", "def", "open_file(path):"]]
        assert any("zoo/files.py:1  matched: open, file" in row for row in rows[3:])
        assert all(key in rows[-1] for key in ("open", "explain", "copy path:line", "clear", "quit"))


async def test_words_of_the_question_stand_out_in_the_code(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        await ask(pilot, "reading")
        await until(pilot, "def open_file")
        picture = ElementTree.fromstring(pilot.app.export_screenshot())
        texts = picture.iter(f"{SVG}text")
        marked = {text.get("class") for text in texts if text.text == "reading"}
        styles = "".join(picture.itertext())
        found = re.findall(rf"\.({'|'.join(str(name) for name in marked)}) {{([^}}]*)}}", styles)
        assert any("underline" in style for _, style in found)


async def test_arrows_choose_another_hit_and_stop_at_the_ends(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        await ask(pilot, "open file handle")
        await until(pilot, "def open_file")
        await pilot.press("up", "down")
        await until(pilot, "def close_file", gone="def open_file")
        await pilot.press(*["up"] * 9)
        await until(pilot, "def open_file")


async def test_tab_shows_why_and_the_code_again(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        await ask(pilot, "open file handle")
        await until(pilot, "def open_file")
        await pilot.press("down")
        await until(pilot, "def close_file")
        await pilot.press("tab")
        rows = await until(pilot, "words: open, file, handle", gone="def close_file")
        assert any(re.match(r" *file +file .*name", row) for row in rows)
        await pilot.press("tab")
        await until(pilot, "def close_file")


async def test_the_answer_to_a_question_that_was_changed_meanwhile_is_never_shown(project: Path) -> None:
    release = threading.Event()
    queued: list[str] = []
    asked: list[str] = []

    class Slow(Searcher):
        """Answers its first question when it is told to."""

        def _search(self, text: str, explain: bool) -> Answer:
            asked.append(text)
            if len(asked) == 1:
                release.wait(LONG)
            return super()._search(text, explain)

        async def search(self, text: str, *, explain: bool = False) -> Answer:
            queued.append(text)
            return await super().search(text, explain=explain)

    async with searching(project / ".ncs", make=Slow) as pilot:
        prompt = pilot.app.query_one("#prompt", Input)
        for text in ("open file", "steer", "steer terminal"):  # at once each, as pasted; keys may take any time
            prompt.value = text
            await so(pilot, lambda text=text: text in queued)  # type: ignore[misc]
        release.set()
        rows = await until(pilot, "steer_terminal  zoo/hostile.py:1")
        assert "open_file  zoo" not in rows[2]
        assert queued == ["open file", "steer", "steer terminal"]
        assert asked == ["open file", "steer terminal"]


async def test_escape_clears_and_nothing_found_is_said(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        await ask(pilot, "zzqqxx")
        await until(pilot, "no match for 'zzqqxx'; no results")
        await pilot.press("enter", "tab", "ctrl+y", "down", "pagedown", "escape")
        await until(pilot, "hits appear as you type", gone="zzqqxx")


async def test_the_place_is_copied_as_editors_and_people_read_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.parent)
    async with searching(project / ".ncs") as pilot:
        await ask(pilot, "close handle")
        await until(pilot, "def close_file")
        await pilot.press("ctrl+y")
        await until(pilot, "copied: zoo/files.py:7")
        assert pilot.app.clipboard == "zoo/files.py:7"


async def test_hostile_code_is_to_be_seen_and_obeyed_by_nothing(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        await ask(pilot, "steer terminal")
        rows = await until(pilot, "def steer_terminal")
        assert any("'␛[2J [red]bold[/red] \ufffd   [/]' + x" in row for row in rows)
        await pilot.press("escape")
        await ask(pilot, "parse table")
        rows = await until(pilot, "def parse_table")
        assert any("日本語" in row for row in rows)


async def test_on_a_wide_terminal_code_stands_beside_the_hits_and_on_a_small_one_there_is_some(project: Path) -> None:
    async with searching(project / ".ncs", (140, 20)) as pilot:
        await ask(pilot, "open file")
        rows = await until(pilot, "def open_file", "open_file  zoo/files.py:1")
        assert sum("open_file  zoo/files.py:1" in row and "│" in row for row in rows) == 1
        await pilot.resize_terminal(50, 10)
        await pilot.pause()
        await until(pilot, "1 def open_file(path):")


async def test_an_updated_index_answers_the_next_question(tmp_path: Path) -> None:
    (tmp_path / "files.py").write_text(OPEN)
    Index.build(tmp_path, tmp_path / ".ncs", config=QUICK).close()
    async with searching(tmp_path / ".ncs") as pilot:
        await ask(pilot, "feed cat")
        await until(pilot, "no match for 'feed'")
        (tmp_path / "cats.py").write_text("def feed_cat(cat):\n    return cat.eat()\n")
        updated, _ = Index.update(tmp_path / ".ncs")
        updated.close()
        await pilot.press("space")
        await until(pilot, "def feed_cat")


ENTERED = b"\x1b[?1049h"
"""What a program writes before it draws on the whole terminal."""


class Terminal:
    """A command in a terminal of its own, 80 x 24."""

    def __init__(self, folder: Path, **environment: str) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        settings = {**os.environ, "TERM": "xterm-256color", **environment}
        settings.pop("NCS_INDEX", None)
        command = [sys.executable, "-m", "ncs.cli"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=settings, start_new_session=True
        )
        os.close(theirs)
        self._ours, self.written = ours, b""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._ours, 65536):
                self.written += data
        except OSError:  # the other end is closed
            pass

    def until(self, true: Callable[[], bool]) -> None:
        wait_until(true, lambda: self.written[-2000:])

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def ended(self) -> int:
        status = self.process.wait(LONG)
        self._reading.join(LONG)
        os.close(self._ours)
        return status


@pytest.mark.slow
def test_ncs_alone_in_a_terminal_searches_opens_an_editor_at_the_line_and_leaves(project: Path, tmp_path: Path) -> None:
    (tmp_path / "vim").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/opened\n')
    (tmp_path / "vim").chmod(0o755)
    terminal = Terminal(project, EDITOR=str(tmp_path / "vim"), VISUAL="")
    terminal.until(lambda: b"hits appear as you type" in terminal.written)
    terminal.type(b"close handle")
    terminal.until(lambda: b"matched: close, handle" in terminal.written)  # by both words: all is typed and answered
    terminal.type(b"\r")
    terminal.until(lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text() != "")
    assert (tmp_path / "opened").read_text().split() == ["+7", str(project / "files.py")]
    terminal.until(lambda: b"close_file" in terminal.written.partition(ENTERED)[2].partition(ENTERED)[2])
    terminal.type(b"\x03")  # it draws again: before, the key would be the editor's
    assert terminal.ended() == 0


@pytest.mark.slow
def test_ncs_alone_in_a_terminal_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    assert terminal.ended() == 2
    assert b"make one with: ncs build" in b" ".join(terminal.written.split())


def test_ncs_alone_without_a_terminal_shows_its_help(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ncs.cli"], cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Usage:" in done.stdout + done.stderr
