"""A command under a hard limit of memory: a control group of Linux that kills what asks for more, and what it held."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ncs.errors import BadInput

ROOM = Path("/sys/fs/cgroup/memory")
EVERY = 0.2
"""Seconds between two looks at what is held."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did under its limit, in bytes and seconds.

    held: (seconds since the start, anonymous bytes of all its processes). most: all that was charged at most, pages of
    files included, which the system takes back where they are in the way. kills: processes killed for want of memory.
    """

    status: int
    seconds: float
    held: tuple[tuple[float, int], ...]
    most: int
    kills: int
    output: str

    @property
    def peak(self) -> int:
        """The most anonymous bytes that were seen."""
        return max((size for _, size in self.held), default=0)


def run(command: Sequence[str], limit: int, log: Path) -> Ran:
    """Run a command in a group of its own, its output in a file; BadInput where the system has no such groups for us.

    Nothing is swapped: the limit is of memory and swap together where the system counts these.
    """
    with _group(limit) as group, log.open("wb") as output:
        start = time.perf_counter()

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            preexec_fn=enter,
        )  # fmt: skip
        held = []
        try:
            while process.poll() is None:
                held.append((round(time.perf_counter() - start, 2), _number(group / "memory.stat", "total_rss")))
                time.sleep(EVERY)
        finally:
            process.kill()
            process.wait()
        return Ran(
            process.returncode,
            time.perf_counter() - start,
            tuple(held),
            int((group / "memory.max_usage_in_bytes").read_text()),
            _number(group / "memory.oom_control", "oom_kill"),
            log.read_text(errors="replace"),
        )


@contextmanager
def _group(limit: int) -> Iterator[Path]:
    try:
        group = Path(tempfile.mkdtemp(prefix="ncs-", dir=ROOM))
        (group / "memory.limit_in_bytes").write_text(str(limit))
    except OSError as error:
        raise BadInput(f"a hard limit needs control groups of memory (version 1) and root: {error}") from None
    swap = group / "memory.memsw.limit_in_bytes"
    if swap.exists():
        swap.write_text(str(limit))
    try:
        yield group
    finally:
        for _ in range(300):
            try:
                group.rmdir()
                break
            except OSError:  # its last process is being taken apart
                time.sleep(0.1)


def _number(path: Path, name: str) -> int:
    found = re.search(rf"^{name} (\d+)$", path.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
