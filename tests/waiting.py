"""Waiting in tests: for something to be so, however slow or busy the machine is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

LONG = 600
"""Seconds after which a wait is given up: against hanging only, no test asserts it and a busy machine may need them."""


def until(true: Callable[[], object], said: Callable[[], object] = lambda: "") -> None:
    """Wait until a function says so; said: what to tell where it never does."""
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, said()
        time.sleep(0.02)


def put(path: Path, content: str | bytes, room: Path) -> None:
    """Write a file that others look at: at no moment it is there and half written. room: a folder nobody looks at."""
    part = room / f"{path.name}.whole"
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    part.replace(path)


def processes(said: str) -> list[int]:
    """Other processes whose command line, or working folder, holds a text (Linux)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line, room = (entry / "cmdline").read_bytes(), os.readlink(entry / "cwd")  # noqa: PTH115
        except OSError:
            continue
        if (said.encode() in line or said in room) and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found
