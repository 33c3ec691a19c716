"""The interactive search: a prompt, hits while you type, and the code of the selected one."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.highlight import highlight
from textual.message import Message
from textual.widgets import Footer, Input, OptionList, Static

from ncs.answer import Answer, ask
from ncs.console import count, one_line, visible
from ncs.errors import NcsError
from ncs.messages import NO_CODE
from ncs.search.explain import query_lines, reasons_lines
from ncs.search.locate_source import SourceLocator, line_offset
from ncs.search.question import MAX_QUERY
from ncs.search.rankers import DEFAULT_RANKER
from ncs.serve.editors import open_in_editor
from ncs.serve.live_index import LiveIndex
from ncs.serve.terminal import (
    NAME_MARK,
    TAB,
    Excerpt,
    copies_line,
    from_here,
    heading,
    light_background,
    place,
    with_files,
)

HITS = 20
DEBOUNCE = 0.12
"""Seconds without a key before a search."""
NEWLINE = "␊"
"""Stands for a newline in the prompt, which is one line."""
WIDE = 120
"""Fewest columns for code to be shown beside the hits."""
HINT = "what the function does, or its name"
MARK = "bold underline $text-warning"
MIN_NAME = 12
"""Columns of a name before the end of its place is cut."""
MAX_LINES, MAX_COLUMNS = 400, 400
"""Of code that is shown: a megabyte in one line must not block the keys."""
_SPACES = re.compile(r"[^\S\n ]")


class Searcher:
    """One index, one query at a time; an update of the index counts from the next query on."""

    def __init__(self, folder: Path) -> None:
        """Raises what Index.load raises."""
        self._live = LiveIndex(folder.name, folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ncs-search")

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self._live.documents

    async def search(self, text: str, *, explain: bool = False) -> Answer:
        """The answer; a query that is canceled before its turn never runs. Raises what `ask` raises."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._search, text, explain)

    def _search(self, text: str, explain: bool) -> Answer:
        self._live.refresh()
        with self._live.acquire() as index:
            answer = ask(index, text, HITS, ranker=DEFAULT_RANKER, explain=explain)
            return with_files(answer, index.snapshot, "hits")

    def locator(self) -> SourceLocator:
        """The files of the snapshot that answers."""
        with self._live.acquire() as index:
            return SourceLocator(index.snapshot)

    def place(self, hit: Mapping[str, Any]) -> str:
        """path:line of a hit, to paste: of its file where there is one, else repository/path."""
        current = self.locator().locate(hit)
        return f"{from_here(current.path)}:{current.line + line_offset(hit)}" if current else place(hit)

    def close(self) -> None:
        """Wait for the query that runs, and close the index."""
        self._thread.shutdown(cancel_futures=True)
        self._live.close()


class Prompt(Input):
    """The query."""

    def on_paste(self, event: events.Paste) -> None:
        """All lines of what is pasted, as of a stack trace; textual's takes the first."""
        event.prevent_default()
        self.replace(NEWLINE.join(event.text.splitlines()), *self.selection)


class Hits(OptionList):
    """The hits, one per line."""

    class Resized(Message):
        """There is another number of columns or lines for them."""

    def on_resize(self) -> None:
        """Say so."""
        self.post_message(self.Resized())


class SearchApp(App[str]):
    """Keys go to the prompt, except for those that select a hit and do something with it."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012  (its type is textual's)
    BINDINGS: ClassVar[list[Binding | tuple[str, str] | tuple[str, str, str]]] = [
        Binding("enter", "open", "open", priority=True),
        Binding("tab", "explain", "explain", priority=True),
        Binding("ctrl+y", "copy", "copy path:line", priority=True),
        Binding("escape", "clear", "clear", priority=True),
        Binding("ctrl+c", "quit", "quit", priority=True),
        Binding("up,ctrl+p,ctrl+k", "select(-1)", "up", priority=True, show=False),
        Binding("down,ctrl+n,ctrl+j", "select(1)", "down", priority=True, show=False),
        Binding("shift+tab", "switch", "hits or prompt", priority=True, show=False),
        Binding("pageup", "scroll(-1)", "page up", priority=True, show=False),
        Binding("pagedown", "scroll(1)", "page down", priority=True, show=False),
    ]

    def __init__(self, searcher: Searcher) -> None:
        super().__init__()
        self.theme = "textual-light" if light_background() else "textual-dark"
        self._searcher = searcher
        self._answer: Mapping[str, Any] = {"query": "", "hits": []}
        self._explaining = False

    def compose(self) -> ComposeResult:
        """Prompt, status, hits and code, keys."""
        yield Prompt(placeholder=HINT, max_length=MAX_QUERY, compact=True, select_on_focus=False, id="prompt")
        yield Static(id="status", markup=False)
        with Container(id="results"):
            yield Hits(id="hits", markup=False, compact=True)
            with Container(id="selected"):
                yield Static(id="about", markup=False)
                with VerticalScroll(id="preview", can_focus=False):
                    yield Static(id="code", markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Show how many documents there are."""
        self.query_one("#prompt", Input).focus()
        self._say(self._welcome())

    def _welcome(self) -> str:
        return f"{count(self._searcher.documents, 'document')}; hits appear as you type"

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Another query cancels the one before."""
        self.search(event.value.replace(NEWLINE, "\n"))

    @work(exclusive=True)
    async def search(self, text: str, selected: str | None = None) -> None:
        """Search after a pause in typing; a newer query cancels this one, and its answer is not shown."""
        if not text.strip():
            self._show({"query": "", "hits": []}, None)
            self._say(self._welcome())
            return
        await asyncio.sleep(DEBOUNCE)
        try:
            answer = await self._searcher.search(text, explain=self._explaining)
        except NcsError as error:
            self._show({"query": text, "hits": []}, None)
            self._say(str(error))
            return
        self._show(answer, selected)
        hits = f"{count(len(answer['hits']), 'hit')}: likelihood, name, place" if answer["hits"] else ""
        self._say("; ".join(filter(None, (hits, *answer["notes"]))))

    def _show(self, answer: Mapping[str, Any], selected: str | None) -> None:
        """These hits, with this one selected, or else the first."""
        self._answer = answer
        hits = self.query_one("#hits", OptionList)
        hits.set_options([_row(hit, hits.scrollable_content_region.width) for hit in answer["hits"]])
        ids = [hit["id"] for hit in answer["hits"]]
        hits.highlighted = (ids.index(selected) if selected in ids else 0) if ids else None
        self._preview()

    @on(Hits.Resized)
    def lay_out(self) -> None:
        """Hits and explanation for another width."""
        if (hit := self._selected) is not None:
            self._show(self._answer, hit["id"])

    @on(OptionList.OptionHighlighted)
    def _preview(self) -> None:
        """The selected hit: its place, and its code or its explanation."""
        hit, about, code = self._selected, self.query_one("#about", Static), self.query_one("#code", Static)
        if hit is None:
            about.update("")
            code.update("")
            return
        about.update(_about(hit))
        preview = self.query_one("#preview", VerticalScroll)
        if self._explaining and "explanation" in hit:
            code.update(_explanation(self._answer, hit, preview.scrollable_content_region.width or 80))
        else:
            code.update(_code(hit))
        preview.scroll_home(animate=False)

    @property
    def _selected(self) -> Mapping[str, Any] | None:
        at, hits = self.query_one("#hits", OptionList).highlighted, self._answer["hits"]
        return hits[at] if at is not None and at < len(hits) else None

    def action_select(self, by: int) -> None:
        """The next hit, or the previous one."""
        hits = self.query_one("#hits", OptionList)
        if hits.option_count and hits.highlighted is not None:
            hits.highlighted = min(max(hits.highlighted + by, 0), hits.option_count - 1)

    def action_switch(self) -> None:
        """From the prompt to the hits, where j and k select; and back."""
        self.query_one("#hits" if self.query_one("#prompt").has_focus else "#prompt").focus()

    def on_key(self, event: events.Key) -> None:
        """Keys for the hits: j and k select one, a slash goes back to the prompt, and so does what is typed."""
        prompt = self.query_one("#prompt", Input)
        if prompt.has_focus or not event.is_printable:
            return
        if event.character in ("j", "k"):
            self.action_select(1 if event.character == "j" else -1)
            return
        prompt.focus()
        if event.character != "/":
            prompt.insert_text_at_cursor(event.character or "")

    def action_scroll(self, by: int) -> None:
        """A page of the code."""
        preview = self.query_one("#preview", VerticalScroll)
        preview.scroll_relative(y=by * max(1, preview.size.height - 1), animate=False)

    def action_explain(self) -> None:
        """Explain the selected hit instead of showing its code; and back."""
        self._explaining = not self._explaining
        hit = self._selected
        if hit is None or not self._explaining or "explanation" in hit:
            self._preview()
        else:
            self.search(self._answer["query"], hit["id"])

    def action_open(self) -> None:
        """The selected hit in the editor, at its line; waits until the editor exits."""
        if (hit := self._selected) is None:
            return
        try:
            with self.suspend():
                note = open_in_editor(hit, self._searcher.locator(), os.environ)
        except SuspendNotSupported:
            note = "this terminal cannot run an editor; ctrl-y copies path:line"
        except NcsError as error:
            note = str(error)
        if note:
            self._say(note)

    def action_copy(self) -> None:
        """path:line of the selected hit to the clipboard, by the terminal (OSC 52)."""
        if (hit := self._selected) is not None:
            place = one_line(self._searcher.place(hit))  # a newline would run what follows it in a shell
            self.copy_to_clipboard(place)
            self._say(f"copied: {place}")

    def action_clear(self) -> None:
        """Start over."""
        self._explaining = False
        self.query_one("#prompt", Input).value = ""
        self.query_one("#prompt").focus()

    def _say(self, line: str) -> None:
        self.query_one("#status", Static).update(Content(visible(" ".join(line.split()))))


class ChooseApp(SearchApp):
    """Enter ends it with path:line of the selected hit."""

    BINDINGS: ClassVar[list[Binding | tuple[str, str] | tuple[str, str, str]]] = [
        Binding("enter", "choose", "print", priority=True)
    ]

    def action_choose(self) -> None:
        """End with the place of the selected hit."""
        if (hit := self._selected) is not None:
            self.exit(one_line(self._searcher.place(hit)))


def _row(hit: Mapping[str, Any], width: int) -> Content:
    """One hit in one line: likelihood, name, place; of what does not fit the end, of the place at least file:line."""
    room, at = width - 9, place(hit)
    name = _end(heading(hit), max(room - len(at.rpartition("/")[2]) - 1, MIN_NAME))
    at = _end(at, room - len(name))
    return Content.assemble((f"{hit['likelihood']:6} ", "$text-muted"), (name, "bold"), (f"  {at}", "$text-muted"))


def _end(text: str, room: int) -> str:
    """The text, or its end where it is longer.

    >>> _end("app/Keyboards.java:12", 30), _end("app/Keyboards.java:12", 10)
    ('app/Keyboards.java:12', '…s.java:12')
    """
    return text if len(text) <= room else "…" + text[len(text) - max(room, 1) + 1 :]


def _about(hit: Mapping[str, Any]) -> Content:
    """The lines above the code: its place, the words matched, its copies."""
    matched = f"matched: {', '.join(hit['matched'])}" if hit["matched"] else ""
    more = "; ".join(filter(None, (matched, copies_line(hit))))
    return Content.assemble((place(hit), "$text-success"), ("  " + visible(more) if more else "", "$text-muted"))


def _code(hit: Mapping[str, Any]) -> Content:
    """The code with line numbers and highlighting, the words of the query marked."""
    if not hit["code"]:
        return Content(NO_CODE)
    text, n_hidden = _truncate(visible(hit["code"].rstrip("\n")).expandtabs(TAB))
    excerpt = Excerpt(hit, text, all_lines=True)
    highlighted = highlight(text, language=hit["language"], tab_size=TAB)
    for style, places in ((NAME_MARK, excerpt.names), (MARK, excerpt.words)):
        for start, end in places:
            highlighted = highlighted.stylize(style, start, end)
    lines = highlighted.split("\n", allow_blank=True)
    width = len(str(hit["start_line"] + len(lines)))
    rows = [
        Content.assemble((f"{number:>{width}} ", "$text-muted"), lines[at])
        for numbered in excerpt.runs
        for number, at in numbered
    ]
    if n_hidden:
        rows.append(Content.styled(f"... {n_hidden} more lines", "$text-muted"))
    return Content("\n").join(rows)


def _truncate(text: str) -> tuple[str, int]:
    """The first lines, each cut where it is far wider than a terminal; and how many lines are left out.

    Only newlines end lines: other white space becomes spaces, one for one.
    """
    lines = text.split("\n")
    excerpt = [line if len(line) <= MAX_COLUMNS else line[: MAX_COLUMNS - 1] + "…" for line in lines[:MAX_LINES]]
    return _SPACES.sub(" ", "\n".join(excerpt)), len(lines) - len(excerpt)


def _explanation(answer: Mapping[str, Any], hit: Mapping[str, Any], width: int) -> Content:
    lines = [*query_lines(answer, width), "", *reasons_lines(hit["explanation"], width, 0)]
    return Content(visible("\n".join(lines)))


def run(folder: Path, kind: type[SearchApp]) -> str | None:
    """Search the index in `folder` until the user quits, or of ChooseApp to path:line of the hit that the user chooses.

    Raises what Index.load raises.
    """
    with closing(Searcher(folder)) as searcher:
        return kind(searcher).run()
