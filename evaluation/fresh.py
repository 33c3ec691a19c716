"""Measuring from a fresh start: a process of its own, files that the system was told to forget, what is held then."""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from evaluation.machine import peak_memory

HEAD = re.compile(r"[0-9a-f]+-[0-9a-f]+ ")
KEYS = {"all": "VmRSS", "own": "RssAnon", "files": "RssFile"}


def apart(function: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """What a function gives in a process of its own, which starts with nothing imported."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def forget(folder: Path) -> None:
    """Tell the system to drop an index's files from its cache: the next reader finds them on the disk only."""
    for path in folder.rglob("*"):
        if path.is_file() and hasattr(os, "posix_fadvise"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def memory() -> dict[str, int]:
    """Resident bytes of this process: its own (anonymous), and those of files that others can use too."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux
        return {"all": peak_memory()}
    kilobytes = dict(re.findall(r"(\w+):\s*(\d+) kB", status))
    return {name: int(kilobytes[key]) * 1024 for name, key in KEYS.items()}


def mapped(data: Path) -> dict[str, int]:
    """Resident bytes of each file of an index's data folder, by its name there; nothing where the system does not tell.

    Pages of files that are read and not mapped (SQLite's) are the system's cache and not in it.
    """
    try:
        lines = Path("/proc/self/smaps").read_text().splitlines()
    except OSError:  # not Linux
        return {}
    found: dict[str, int] = {}
    name, root = "", f"{data.resolve()}/"
    for line in lines:
        if HEAD.match(line):
            path = line.split(maxsplit=5)[5:]
            name = path[0].removeprefix(root) if path and path[0].startswith(root) else ""
        elif name and line.startswith("Rss:"):
            found[name] = found.get(name, 0) + int(line.split()[1]) * 1024
    return {name: size for name, size in sorted(found.items()) if size}
