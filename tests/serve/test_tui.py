"""The interactive search shows what it should while one types, selects, explains and opens: read from its screen."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from rich.cells import cell_len
from textual import events
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input

from ncs.answer import Answer
from ncs.index import Index
from ncs.serve.tui.app import SearchApp, Searcher
from tests import gitrepo
from tests.command import invoke, program
from tests.terminal import Terminal
from tests.waiting import LONG

pytestmark = pytest.mark.anyio
OPEN = '''def open_file(path):
    """Open a file for reading."""
    handle = reader(path)
    return handle
'''
HOSTILE = "def steer_terminal(x):\n    return '\x1b[2J [red]bold[/red] \u202e \u2028 [/]' + x\n"
WIDE = f"def parse_table(x):\n    # {'wide ' * 150}\n    return '日本語', x\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    close = "\n\ndef close_file(handle):\n    return handle.close()\n"
    files = {"files.py": OPEN + close, "hostile.py": HOSTILE, "wide.py": WIDE}
    root = gitrepo.write(tmp_path_factory.mktemp("tui") / "zoo", files)
    Index.build(root, root / ".ncs").close()
    return root


@pytest.fixture(autouse=True)
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is that of the project."""
    monkeypatch.chdir(project)


def strips(pilot: Pilot[Any]) -> list[Strip]:
    """The rows of the screen as they are drawn."""
    return pilot.app.screen._compositor.render_strips()


def screen(pilot: Pilot[Any]) -> list[str]:
    return [strip.text.rstrip() for strip in strips(pilot)]


@asynccontextmanager
async def searching(
    folder: Path, size: tuple[int, int] = (80, 24), make: Callable[[Path], Searcher] = Searcher
) -> AsyncIterator[Pilot[str]]:
    searcher = make(folder)
    try:
        async with SearchApp(searcher).run_test(size=size) as pilot:
            await pilot.pause()
            yield pilot
    finally:
        searcher.close()


async def wait_for(pilot: Pilot[Any], true: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, "\n".join(screen(pilot))
        await pilot.pause(0.02)


async def until(pilot: Pilot[Any], *texts: str, gone: str = "\0") -> list[str]:
    """Wait until the screen stands still with these texts, and not another; its rows."""
    rows: list[str] = []

    def shown() -> bool:
        before, rows[:] = rows[:], screen(pilot)
        return rows == before and all(text in "\n".join(rows) for text in texts) and gone not in "\n".join(rows)

    await wait_for(pilot, shown)
    return rows


async def search(pilot: Pilot[Any], text: str) -> None:
    """Paste a query, and wait for its answer."""
    app = pilot.app
    assert isinstance(app, SearchApp)
    app.query_one("#prompt", Input).value = text
    await wait_for(pilot, lambda: all(each.is_finished for each in app.workers) and app._answer["query"] == text)


async def test_keys_search_select_explain_copy_and_clear(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        assert "4 documents; hits appear as you type" in "\n".join(screen(pilot))
        await pilot.press(*"open file")
        rows = await until(pilot, "def open_file", "hits: likelihood, name, place", "matched: open, file", "quit")
        assert rows[0].strip() == "open file"
        assert "open_file  files.py:1" in rows[2]
        assert [row.split() for row in rows if "def open_file" in row] == [["1", "def", "open_file(path):"]]
        assert any("files.py:1  matched: open, file" in row for row in rows[3:])
        assert all(key in rows[-1] for key in ("open", "explain", "copy path:line", "clear", "quit"))
        await search(pilot, "open file handle")
        await pilot.press("up", "down")
        await until(pilot, "def close_file", gone="def open_file")
        await pilot.press("tab")
        rows = await until(pilot, "words: open, file, handle", gone="def close_file")
        assert any(re.match(r" *file +file .*name", row) for row in rows)
        await pilot.press("tab")
        await until(pilot, "def close_file")
        await pilot.press("ctrl+y")
        await until(pilot, "copied: files.py:7")
        assert pilot.app.clipboard == "files.py:7"
        await pilot.press(*["up"] * 3)
        await until(pilot, "def open_file")
        await search(pilot, "zzqqxx")
        await until(pilot, "no match for 'zzqqxx'; nothing found")
        await pilot.press("enter", "tab", "ctrl+y", "down", "pagedown", "escape")
        await until(pilot, "hits appear as you type", gone="zzqqxx")


async def test_ctrl_n_and_p_select_and_so_do_j_and_k_where_the_hits_have_the_focus(project: Path) -> None:
    async with searching(project / ".ncs") as pilot:
        prompt = pilot.app.query_one("#prompt", Input)
        await search(pilot, "open file handle")
        for key, shown in (
            ("ctrl+n", "close"),
            ("ctrl+p", "open"),
            ("ctrl+j", "close"),
            ("ctrl+k", "open"),
            ("shift+tab", "open"),
            ("j", "close"),
            ("k", "open"),
        ):
            await pilot.press(key)
            await until(pilot, f"def {shown}_file", gone=f"def {'open' if shown == 'close' else 'close'}_file")
        assert prompt.value == "open file handle"
        await pilot.press("/", "j", "k")
        assert prompt.value == "open file handlejk"
        await pilot.press("shift+tab", "s", "o")  # what is typed there goes to the prompt
        assert prompt.value == "open file handlejkso"


async def test_in_a_narrow_terminal_every_hit_ends_with_its_file_and_line(tmp_path: Path) -> None:
    root = gitrepo.write(
        tmp_path / "zoo", {f"{'folder/' * 9}files.py": "class AnOpenerOfFilesWithALongName:\n" + indent(OPEN, "    ")}
    )
    Index.build(root, root / ".ncs").close()
    async with searching(root / ".ncs", (60, 16)) as pilot:
        await search(pilot, "open file reading")
        for columns in (60, 44, 100, 130):
            await pilot.resize_terminal(columns, 16)
            rows = await until(pilot, "def open_file")
            assert re.match(r"\w* *\S*open_file  …\S*/?files\.py:2( |$)", rows[2]), rows[2]
            assert max(map(cell_len, rows)) <= columns


async def test_all_lines_of_a_pasted_stack_trace_are_searched_for_however_many(project: Path) -> None:
    trace = "Error: gone\n" + "    at run (main.js:1)\n" * 100 + "    at open_file (files.py:3)"
    async with searching(project / ".ncs") as pilot:
        pilot.app.post_message(events.Paste(f"{trace}\r\n"))
        rows = await until(pilot, "def open_file")
        assert isinstance(pilot.app, SearchApp)
        assert pilot.app._answer["query"] == trace
        assert rows[0].startswith(" Error: gone␊    at run (main.js:1)␊")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
async def test_a_copied_place_has_no_newline_that_would_run_a_command_where_it_is_pasted(tmp_path: Path) -> None:
    gitrepo.write(tmp_path / "src", {"a\nreboot\n.py": "def open_file(path):\n    return open(path)\n"})
    Index.build(tmp_path / "src", tmp_path / ".ncs").close()
    async with searching(tmp_path / ".ncs") as pilot:
        await search(pilot, "open file")
        await until(pilot, "def open_file")
        await pilot.press("ctrl+y")
        await until(pilot, "copied:")
        assert pilot.app.clipboard.endswith("src/a␊reboot␊.py:1")


async def test_hostile_code_is_text_and_words_of_the_query_stand_out_at_every_width(project: Path) -> None:
    async with searching(project / ".ncs", (140, 20)) as pilot:
        await search(pilot, "steer terminal")
        await until(pilot, "def steer_terminal", "'␛[2J [red]bold[/red] \ufffd \ufffd [/]' + x")
        await search(pilot, "parse table")
        await until(pilot, "def parse_table", "日本語")
        await search(pilot, "reading")
        rows = await until(pilot, "def open_file", "open_file  files.py:1", "reading")
        assert sum("open_file  files.py:1" in row and "│" in row for row in rows) == 1  # code beside the hits

        def stands_out() -> bool:
            styles = [segment.style for strip in strips(pilot) for segment in strip if segment.text == "reading"]
            return any(style is not None and style.underline for style in styles)

        await wait_for(pilot, stands_out)
        await pilot.resize_terminal(50, 10)
        await until(pilot, "1 def open_file(path):")


async def test_the_answer_to_a_query_that_was_changed_meanwhile_is_never_shown(project: Path) -> None:
    release = threading.Event()
    queued: list[str] = []
    started: list[str] = []

    class Slow(Searcher):
        """Answers its first query on release."""

        def _search(self, text: str, explain: bool) -> Answer:
            started.append(text)
            if len(started) == 1:
                release.wait(LONG)
            return super()._search(text, explain)

        async def search(self, text: str, *, explain: bool = False) -> Answer:
            queued.append(text)
            return await super().search(text, explain=explain)

    async with searching(project / ".ncs", make=Slow) as pilot:
        prompt = pilot.app.query_one("#prompt", Input)
        for text in ("open file", "steer", "steer terminal"):  # at once each, as pasted; keys may take any time
            prompt.value = text
            await wait_for(pilot, lambda text=text: text in queued)  # type: ignore[misc]
        release.set()
        rows = await until(pilot, "steer_terminal  hostile.py:1")
        assert "open_file" not in rows[2]
        assert queued == ["open file", "steer", "steer terminal"]
        assert started == ["open file", "steer terminal"]


@pytest.mark.slow
async def test_an_updated_index_answers_the_next_query(tmp_path: Path) -> None:
    (tmp_path / "files.py").write_text(OPEN)
    Index.build(tmp_path, tmp_path / ".ncs").close()
    async with searching(tmp_path / ".ncs") as pilot:
        await search(pilot, "feed cat")
        await until(pilot, "no match for 'feed'")
        (tmp_path / "cats.py").write_text("def feed_cat(cat):\n    return cat.eat()\n")
        updated, _ = Index.update(tmp_path / ".ncs")
        updated.close()
        await pilot.press("space")
        await until(pilot, "def feed_cat")


ENTERED = b"\x1b[?1049h"
"""What a program writes before it draws on the whole terminal."""


@pytest.mark.slow
def test_ncs_alone_in_a_terminal_searches_opens_an_editor_at_the_line_and_leaves(project: Path, tmp_path: Path) -> None:
    editor = program(tmp_path, "vim", f'echo "$@" > {tmp_path}/opened')
    terminal = Terminal(cwd=project, EDITOR=str(editor), VISUAL="")
    terminal.until(lambda: b"hits appear as you type" in terminal.written)
    terminal.type(b"close handle")
    terminal.until(lambda: b"matched: close, handle" in terminal.written)  # by both words: all is typed and answered
    terminal.type(b"\r")
    terminal.until(lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text() != "")
    assert (tmp_path / "opened").read_text().split() == ["+7", str(project / "files.py")]
    terminal.until(lambda: b"close_file" in terminal.written.partition(ENTERED)[2].partition(ENTERED)[2])
    terminal.type(b"\x03")  # it draws again: before, the key would be the editor's
    assert terminal.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("key", "status", "printed"), [(b"\r", 0, "files.py:7\n"), (b"\x03", 130, "")])
def test_print_draws_on_the_terminal_and_prints_the_place_of_the_chosen_hit_alone(
    project: Path, tmp_path: Path, key: bytes, status: int, printed: str
) -> None:
    with (tmp_path / "stdout").open("wb") as stdout:
        terminal = Terminal("--print", cwd=project, columns=130, stdout=stdout)
    terminal.until(lambda: b"hits appear as you type" in terminal.written)
    terminal.type(b"close handle")
    terminal.until(lambda: b"matched: close, handle" in terminal.written)
    terminal.type(key)
    assert terminal.wait() == status
    assert (tmp_path / "stdout").read_text() == printed
    assert "│" in terminal.written.decode("utf-8", "replace")  # code beside the hits: it knows the terminal's width


@pytest.mark.slow
def test_ncs_alone_in_a_terminal_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    terminal = Terminal(cwd=tmp_path)
    assert terminal.wait() == 2
    assert b"make one with: ncs build" in b" ".join(terminal.written.split())


@pytest.mark.parametrize("arguments", [("--print",), ("tui",)])
def test_without_a_terminal_there_is_no_interactive_search(project: Path, arguments: tuple[str, ...]) -> None:
    run = invoke(*arguments, cwd=project)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "ncs: ncs tui needs a terminal; without one: ncs query 'what the function does'\n"


def test_ncs_alone_without_a_terminal_shows_its_help(project: Path) -> None:
    run = invoke(cwd=project)
    assert run.returncode == 2
    assert "Usage:" in run.stdout + run.stderr
