"""Waiting in tests: for something to be so, however slow or busy the machine is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil

LONG = 600
"""Seconds after which a wait is given up: against hanging only, no test asserts it and a busy machine may need them."""


def until(true: Callable[[], object], said: Callable[[], object] = lambda: "") -> None:
    """Wait until a function says so; said: what to tell where it never does."""
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, said()
        time.sleep(0.05)


def put(path: Path, content: str | bytes, room: Path) -> None:
    """Write a file that others look at: at no moment it is there and half written. room: a folder nobody looks at."""
    part = room / f"{path.name}.whole"
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    part.replace(path)


def processes(said: str) -> list[int]:
    """Other processes whose command line, or working folder, holds a text."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        texts = (*(process.info["cmdline"] or ()), process.info["cwd"] or "")
        if any(said in text for text in texts) and process.pid != os.getpid():
            found.append(process.pid)
    return found
