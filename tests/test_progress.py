"""Progress: the time left of work of several stages, with times set by hand, and its line on a terminal."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pytest

from ncs import progress
from ncs.console import say, tracker
from ncs.progress import Part, Whole

T = TypeVar("T")


def test_the_time_left_is_that_of_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    whole, estimates = Whole(), list[tuple[float | None, ...]]()

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        assert isinstance(items, Part)
        for item in items:
            yield item
            estimates.append(tuple(each and round(each, 1) for each in (items.whole.seconds(), items.whole.left())))

    for size in track(Part([8, 24, 8], whole, 0.8, 32, float, waiting=8), "reading"):
        now += size  # 40 seconds of 50
    for _ in whole.stage(track, 1)(range(2), "learning", total=2):
        now += 5
    assert estimates == [(None, None), (53.3, 21.3), (50, 10), (50, 5), (50, 0)]


def test_files_that_are_not_read_do_not_count() -> None:
    whole = Whole()
    assert list(Part([0, 0, 10], whole, 0.5, 40, float)) == [0, 0, 10]
    assert whole.done == 0.5 * 10 / 40
    assert list(whole.stage(progress.silent, 1.0)([1], "learning", total=1)) == [1]
    assert whole.done == 1


Terminal = Callable[[int], Callable[[], list[str]]]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Makes stderr a terminal of so many columns; what was written there up to the end of a line, split at returns."""
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
    ours, theirs = pty.openpty()

    def written() -> list[str]:
        data = b""
        while b"\n" not in data:
            data += os.read(ours, 10_000)
        return data.decode().split("\r")

    def of_width(columns: int) -> Callable[[], list[str]]:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        monkeypatch.setattr(sys, "stderr", stream)  # here: pytest sets its own between a fixture and the test
        return written

    with os.fdopen(theirs, "w") as stream:
        yield of_width
    os.close(ours)


@pytest.mark.parametrize(
    ("columns", "early", "late"),
    [
        (80, "reading functions 2,000/10,000 files", "reading functions 9,000/10,000 files, 4 s left"),
        (40, "reading functions 2,000/10,000 files", "reading functions 90%, 4 s left"),
        (20, "reading functions", "reading functions"),
    ],
)
def test_progress_is_a_line_that_fits_the_terminal_with_an_estimate_after_half_a_minute(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int, early: str, late: str
) -> None:
    now, written = 100.0, terminal(columns)
    monkeypatch.setattr("time.monotonic", lambda: now)
    for i in tracker(False)(range(10_000), "reading functions", total=10_000, unit="files"):
        now += 4 if i % 1_000 == 999 else 0
    *lines, end = written()
    assert (len(lines), end, {len(line) for line in lines}) == (11, "\n", {columns - 1})
    assert (lines[1].rstrip(), lines[8].rstrip()) == (early, late)
    assert lines[10].startswith("reading functions 10,000 files" if columns > 40 else "reading functions")
    assert ["left" in line for line in lines[:10]] == [False] * 7 + [columns > 20] * 3


def test_a_message_replaces_the_progress_that_it_ends(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now, written = 100.0, terminal(40)
    monkeypatch.setattr("time.monotonic", lambda: now)
    stage = iter(tracker(False)(range(9), "reading functions", total=9))
    next(stage)
    now += 4
    next(stage)
    say("ncs: interrupted")
    del stage  # ctrl-c: its frame ends after the message
    assert written() == ["reading functions 1/9".ljust(39), "", "ncs: interrupted".ljust(39), "\n"]
