"""Progress bars on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ncs.cli.output.console import rich_console
from ncs.progress import Track, silent

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")


def tracker(quiet: bool) -> Track:
    """Bars with rate and remaining time for stages over a second; nothing where stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        return silent

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        bar: Progress | None = None
        start, done, shown = time.monotonic(), 0, 0.0
        try:
            for item in items:
                yield item
                done += 1
                now = time.monotonic()
                if bar is None and now - start > 1:
                    bar = _bar(unit)
                    task = bar.add_task(stage, total=total, completed=done)
                    bar.start()
                if bar is not None and now - shown > 0.1:
                    bar.update(task, completed=done)
                    shown = now
            if bar is not None:
                bar.update(task, completed=done, total=done)
        finally:
            if bar is not None:
                bar.stop()

    return track


def _bar(unit: str) -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.{1 if speed < 10 else 0}f} {unit}/s" if speed else "", "dim")

    return Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *([Rate()] if unit else []),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=rich_console(stderr=True),
    )
