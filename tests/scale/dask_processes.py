"""A Dask scheduler and its workers, each a process of its own on this machine's loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import until

QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "OMP_NUM_THREADS": "1"}


@dataclass
class Cluster:
    """`address` is the scheduler's."""

    address: str
    room: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self, memory: str = "0") -> subprocess.Popen[bytes]:
        """One more, with one thread and no nanny that would start it again."""
        options = ["--no-nanny", "--nthreads", "1", "--memory-limit", memory, "--no-dashboard"]
        options += ["--local-directory", str(self.room), "--host", "127.0.0.1"]
        process = _start("distributed.cli.dask_worker", self.address, *options)
        self.workers.append(process)
        return process


@contextmanager
def cluster(room: Path, workers: int) -> Iterator[Cluster]:
    """Up until the block ends; the workers come when they come."""
    told = room / "scheduler.json"
    scheduler = _start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(told),
    )  # fmt: skip
    found = Cluster("", room)
    try:
        found.address = _address(told, scheduler)
        for _ in range(workers):
            found.start_worker()
        yield found
    finally:
        for process in (*found.workers, scheduler):
            process.send_signal(signal.SIGKILL)
            process.wait()


def _address(told: Path, scheduler: subprocess.Popen[bytes]) -> str:
    import json

    def there() -> bool:
        if scheduler.poll() is not None:
            raise RuntimeError("the scheduler did not start")
        with suppress(OSError, ValueError):  # not written yet, or not to its end
            return bool(json.loads(told.read_text()))
        return False

    until(there)
    return str(json.loads(told.read_text())["address"])


def _start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", module, *arguments],
        env={**os.environ, **QUIET, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
