"""`ncs serve` in a process of its own, for tests."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.waiting import LONG

STARTED = "ncs: serving"


def own_port() -> int:
    """A free port that the system gives to nobody who asks for any port, or connects: it stays free between servers."""
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    low, high = map(int, given.read_text().split()) if given.exists() else (32_768, 65_535)
    own = [port for port in range(10_000, 65_000) if not low <= port <= high] or [0]
    while True:
        with suppress(OSError), socket.socket() as tried:
            tried.bind(("127.0.0.1", random.choice(own)))
            return int(tried.getsockname()[1])


class Served:
    """A server process; lines: what it said so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.lines = process, list[str]()
        self._said = threading.Event()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def begun(self) -> Served:
        """Wait until it answers; RuntimeError with what it said where it does not begin."""
        if not self._said.wait(LONG) or not self.started:
            raise RuntimeError("".join(self.lines))
        self.url = self.started[0].rpartition(" at ")[2].strip()
        self._wait()
        return self

    @property
    def started(self) -> list[str]:
        return [line for line in self.lines if line.startswith(STARTED)]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if self.started:
                self._said.set()
        self._said.set()

    def _wait(self) -> None:
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            with suppress(httpx.TransportError):
                httpx.get(f"{self.url}/health", timeout=LONG)
                return
            time.sleep(0.1)
        raise RuntimeError("".join(self.lines))

    def ended(self) -> int:
        """The exit status, when it has ended; everything it said is in lines."""
        status = self.process.wait(LONG)
        self._reading.join(LONG)
        return status


@contextmanager
def served(*arguments: str | Path, port: int = 0, token: str = "") -> Iterator[Served]:
    """A server with these options; killed where it still runs at the end."""
    command = [sys.executable, "-m", "ncs.cli", "serve", "--port", str(port), "--time-limit", "60"]  # slow machines
    command += map(str, arguments)
    environment = {**os.environ, **({"NCS_TOKEN": token} if token else {})}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        server = Served(process)
        try:
            yield server.begun()
        finally:
            process.kill()
            server.ended()  # its searching processes have let go of stderr, too
