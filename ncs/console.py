"""Console output of every program here: messages, tables and progress, with control characters shown.

rich is imported on a terminal only.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ncs.progress import Part, Track, Whole, silent

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_REPLACED = [*range(0x80, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_REPLACED += range(0xD800, 0xE000)
_VISIBLE = {**_PICTURES, **dict.fromkeys(_REPLACED, 0xFFFD)}
"""Control and bidi characters and separators of lines: indexed code must not steer a terminal or hide in it."""
_ESCAPES = {code: f"\\u{code:04x}" for code in (0x7F, *_REPLACED)}
"""What JSON must escape beside the characters that it always escapes."""


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


_shown = 0
"""Columns of the progress that stands in the last line of the terminal; a message replaces it."""


def say(message: str) -> None:
    """A message on stderr, in one line."""
    _print("\r" * bool(_shown) + one_line(message).ljust(_shown))  # also over the ^C of a terminal


def show_text(text: str) -> None:
    """Lines on stdout."""
    print(visible(text.rstrip("\n")))


def show_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout, in UTF-8."""
    print(json.dumps(value, ensure_ascii=False, indent=indent).translate(_ESCAPES))


def is_fancy(color: str = "auto") -> bool:
    """Whether stdout takes colors: a terminal, or with FORCE_COLOR, or color "always"."""
    return color == "always" or bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def rich_console(color: str = "auto") -> Console:
    """A console for colored text, as wide as the terminal; color: auto, always or never.

    With "auto" rich itself heeds NO_COLOR, FORCE_COLOR and TERM=dumb.
    """
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to `main_program` that the reader of stdout has exited; rich itself would exit with status 1."""
            raise BrokenPipeError

    forced: dict[str, dict[str, Any]] = {
        "always": {"force_terminal": True, "color_system": "standard", "no_color": False},
        "never": {"color_system": None},
    }
    console = Terminal(highlight=False, soft_wrap=False, emoji=False, **forced.get(color, {}))
    console.width = console.width or 80  # COLUMNS=0
    return console


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
    """Lines that count the items of stages over a second; nothing where stderr is not a terminal.

    In a stage of longer work, the time left is that of the whole work.
    """
    if quiet or not sys.stderr.isatty():
        return silent

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        part = items if isinstance(items, Part) else Part(items, Whole(), 1, total or math.inf)
        due, done = time.monotonic() + 1, 0
        try:
            for done, item in enumerate(part, 1):
                yield item
                if time.monotonic() > due:
                    columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
                    line = progress_line(columns, stage, done, total, unit, part.whole.left())
                    _print(line.ljust(columns - 1), end="\r")
                    due = time.monotonic() + 0.1
            total = None
        finally:
            if _shown:
                _print(progress_line(_shown + 1, stage, done, total, unit).ljust(_shown))

    return track


def progress_line(
    columns: int, stage: str, done: int, total: int | None, unit: str, seconds: float | None = None
) -> str:
    """The progress of a stage and the time left, in fewer than `columns` columns.

    >>> [progress_line(columns, "reading functions", 24_900, 28_600, "files", 140) for columns in (60, 40)]
    ['reading functions 24,900/28,600 files, 2 min left', 'reading functions 87%, 2 min left']
    """
    left = "" if seconds is None else f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"
    counts = [f"{done:,}/{total:,}", f"{done / total:.0%}"] if total else [f"{done:,}"]
    lines = [f"{stage} {text}{left}" for text in (f"{counts[0]} {unit}".strip(), *counts)]
    return next((line for line in lines if len(line) < columns), stage[: columns - 1])


def _print(line: str, end: str = "\n") -> None:
    global _shown
    _shown = len(line) if end == "\r" else 0
    print(line, end=end, file=sys.stderr, flush=True)
