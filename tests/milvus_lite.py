"""A Milvus of one's own for a while: Milvus Lite as a process, on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ncs.errors import NcsError

SECONDS = 60
"""That are waited for its first answer."""


@contextmanager
def lite(folder: Path) -> Iterator[str]:
    """`milvus://127.0.0.1:PORT`, its data in a folder; raises NcsError where it does not come up."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with server(folder, port):
        yield f"milvus://127.0.0.1:{port}"


@contextmanager
def server(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The process, when it answers at a port; killed where it still runs."""
    command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(folder), "--host", "127.0.0.1"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*command, "--port", str(port)], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        _wait(process, port)
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(10 * SECONDS):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise NcsError("Milvus Lite does not start; install it with: pip install 'neural-code-search[milvus]'")
