"""`ncs` in a terminal of its own, for tests."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from tests.waiting import LONG, until

NOT_INHERITED = ("NO_COLOR", "COLUMNS", "NCS_INDEX")


class Terminal:
    """A command in a terminal of 24 lines; written: what it has written there so far. stdout: a file for that."""

    def __init__(
        self, *arguments: str, cwd: Path, columns: int = 80, stdout: IO[bytes] | None = None, **environment: str
    ) -> None:
        try:
            import fcntl
            import pty
            import termios

            self._ours, theirs = pty.openpty()
        except (ImportError, OSError) as error:  # Windows, or a container without /dev/pts
            pytest.skip(f"no terminal: {error}")
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        env = {**inherited, "TERM": "xterm-256color", **environment}
        command = [sys.executable, "-m", "ncs.cli", *arguments]
        self.process = subprocess.Popen(
            command, cwd=cwd, stdin=theirs, stdout=stdout or theirs, stderr=theirs, env=env, start_new_session=True
        )
        os.close(theirs)
        self.written = b""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        with suppress(OSError):  # the other end is closed
            while part := os.read(self._ours, 65536):
                self.written += part

    def until(self, true: Callable[[], object]) -> None:
        until(true, lambda: self.written[-2000:])

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait(self) -> int:
        """The exit status, once all is written."""
        status = self.process.wait(LONG)
        self._reading.join(LONG)
        os.close(self._ours)
        return status
