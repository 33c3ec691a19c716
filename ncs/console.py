"""Console output of every program here: messages, tables and progress bars, with control characters shown.

rich is imported on a terminal only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ncs.progress import Part, Track, silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

T = TypeVar("T")
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_REPLACED = [*range(0x80, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_REPLACED += range(0xD800, 0xE000)
_VISIBLE = {**_PICTURES, **dict.fromkeys(_REPLACED, 0xFFFD)}
"""Control and bidi characters and separators of lines: indexed code must not steer a terminal or hide in it."""
_ESCAPES = {code: f"\\u{code:04x}" for code in (0x7F, *_REPLACED)}
"""In JSON, which itself escapes the others."""


def visible(text: str) -> str:
    r"""Text in which control characters are shown instead of obeyed, one for one; newlines and tabs stay.

    >>> visible("\x1b[2Jclear\r\n")
    '␛[2Jclear␍\n'
    """
    return text.translate(_VISIBLE)


def one_line(text: str) -> str:
    r"""`visible`, and newlines and tabs are shown, too: for names, which must not look like another line of ours.

    >>> one_line("a.py\n2. b.py")
    'a.py␊2. b.py'
    """
    return visible(text).replace("\n", "␊").replace("\t", "␉")


def say(message: str) -> None:
    """A message on stderr, in one line."""
    print(one_line(message), file=sys.stderr)


def show_text(text: str) -> None:
    """Lines on stdout."""
    print(visible(text.rstrip("\n")))


def show_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout, in UTF-8."""
    print(json.dumps(value, ensure_ascii=False, indent=indent).translate(_ESCAPES))


def is_fancy(color: str = "auto") -> bool:
    """Whether stdout takes colors: a terminal, or with FORCE_COLOR, or color "always"."""
    return color == "always" or bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def rich_console(*, stderr: bool = False, color: str = "auto") -> Console:
    """A console for colored text, as wide as the terminal; color: auto, always or never.

    With "auto" rich itself heeds NO_COLOR, FORCE_COLOR and TERM=dumb.
    """
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Let the command exit where the reader has."""
            raise BrokenPipeError

    forced: dict[str, dict[str, Any]] = {
        "always": {"force_terminal": True, "color_system": "standard", "no_color": False},
        "never": {"color_system": None},
    }
    return Terminal(highlight=False, soft_wrap=False, emoji=False, stderr=stderr, **forced.get(color, {}))


def columns_of(text: str) -> int:
    """The columns of a terminal that a text takes: wide characters (Chinese, Japanese, Korean ...) take two.

    >>> columns_of("read"), columns_of("\u8bfb\u53d6")
    (4, 4)
    """
    from rich.cells import cell_len

    return cell_len(text)


def fit_columns(text: str, columns: int) -> str:
    """A text padded with spaces or shortened with an ellipsis to take this many columns."""
    from rich.cells import set_cell_size

    return set_cell_size(text if columns_of(text) <= columns else f"{set_cell_size(text, columns - 1)}…", columns)


def count(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> count(1, "file"), count(2_000, "file"), count(2, "repository", "repositories")
    ('1 file', '2,000 files', '2 repositories')
    """
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def show_table(title: str, rows: Iterable[Sequence[str]], columns: Sequence[str] = ()) -> None:
    """A table on stdout: drawn on a terminal, tab-separated otherwise."""
    if not is_fancy():
        for row in rows:
            print("\t".join(map(one_line, row)))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = rich_console()
    if title:
        console.print(Text(title, "bold"))
    table = Table(box=box.SIMPLE, show_header=bool(columns), show_edge=False)
    for column in columns or ("", ""):
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console.print(table)


def tracker(quiet: bool) -> Track:
    """Bars with rate and remaining time for stages over a second; nothing where stderr is not a terminal.

    The remaining time of a stage of longer work is that of all of it.
    """
    if quiet or not sys.stderr.isatty():
        return silent

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        bar: Progress | None = None
        due, done = time.monotonic() + 1, 0
        whole = items.whole if isinstance(items, Part) else None
        try:
            for done, item in enumerate(items, 1):
                yield item
                if time.monotonic() > due:
                    if bar is None:
                        bar = _bar(unit)
                        task = bar.add_task(stage, total=total, left=None)
                        bar.start()
                    bar.update(task, completed=done, left=whole and whole.left())
                    due = time.monotonic() + 0.1
            if bar is not None:
                bar.update(task, completed=done, total=done)
        finally:
            if bar is not None:
                bar.stop()

    return track


def _bar(unit: str) -> Progress:
    from datetime import timedelta

    from rich import progress
    from rich.text import Text

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.{1 if speed < 10 else 0}f} {unit}/s" if speed else "", "dim")

    class Left(progress.TimeRemainingColumn):
        def render(self, task: progress.Task) -> Text:
            if task.fields["left"] is None:
                return super().render(task)
            return Text(str(timedelta(seconds=int(task.fields["left"]))), "progress.remaining")

    return progress.Progress(
        progress.TextColumn("{task.description:<22}"),
        progress.BarColumn(bar_width=24),
        progress.MofNCompleteColumn(),
        *([Rate()] if unit else []),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        Left(),
        console=rich_console(stderr=True),
    )
