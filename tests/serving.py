"""`ncs serve`, `ncs annotate` and `ncs mcp --http` in processes of their own, for tests."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.waiting import LONG, until

plain_client = partial(httpx.Client, timeout=LONG, verify=False)
plain_get = partial(httpx.get, timeout=LONG, verify=False)
plain_post = partial(httpx.post, timeout=LONG, verify=False)
"""Without the certificates, which take longer to read than most answers."""
STARTED = ("ncs: serving", "ncs: judge at", "ncs: MCP at")


def own_port() -> int:
    """A free port below those that systems assign: it stays free between servers."""
    while True:
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", random.randrange(10_000, 32_768)))
            return int(probe.getsockname()[1])


def wait_for_port(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a process listens on a port of loopback."""

    def answers() -> bool:
        assert process.poll() is None, "it does not start"
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", port)) == 0

    until(answers)


class Served:
    """A server process; lines: its stderr so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.lines, self.url = process, list[str](), ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith(STARTED):
                self.url = line.rpartition(" at ")[2].strip()

    def wait_for_start(self) -> None:
        """Wait until it answers; RuntimeError with its stderr where it does not start."""
        until(lambda: self._answers() or not self._reader.is_alive())
        if not self._reader.is_alive():
            raise RuntimeError("".join(self.lines))

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return bool(self.url and plain_get(f"{self.url}/health"))
        return False

    def wait(self) -> int:
        """The exit status, once all of stderr is in lines."""
        status = self.process.wait(LONG)
        self._reader.join(LONG)
        return status


def connection_to(url: str) -> socket.socket:
    """A connection to the server of an address."""
    address = urlsplit(url)
    return socket.create_connection((str(address.hostname), address.port or 0), LONG)


def refuses(server: Served) -> bool:
    """Whether it takes no connection, as it was told to stop."""
    try:
        connection_to(server.url).close()
    except OSError:
        return True
    return False


def exchange(url: str, data: bytes) -> bytes:
    """The answer to these bytes, which the server need not read to their end."""
    with connection_to(url) as connection:
        with suppress(ConnectionError):
            connection.sendall(data)
        with suppress(ConnectionError):
            return connection.recv(65_536)
        return b""


def head_of(url: str, path: str) -> bytes:
    """The head of a POST of JSON, without its length and end."""
    host, accept = urlsplit(url).netloc, "application/json, text/event-stream"
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: {accept}\r\n".encode()


@contextmanager
def running(*arguments: str | Path, token: str = "") -> Iterator[Served]:
    """A command that serves; killed where it still runs at the end."""
    command = [sys.executable, "-m", "ncs.cli", *map(str, arguments)]
    environment = {**os.environ, **({"NCS_TOKEN": token} if token else {})}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        server = Served(process)
        try:
            server.wait_for_start()
            yield server
        finally:
            process.kill()
            server.wait()  # its search processes have let go of stderr, too


@contextmanager
def served(*arguments: str | Path, port: int = 0, token: str = "") -> Iterator[Served]:
    """`ncs serve` with these options."""
    options = ("--port", str(port), "--time-limit", "60", "--workers", "1")  # slow machines
    with running("serve", *options, *arguments, token=token) as server:
        yield server
