"""Builds and updates beside the server, in processes of their own (`python -m ncs.serve.mcp.jobs`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from ncs.workers import take_stdin

Kind = Literal["build", "update"]
POLL = 0.05
STOP_SECONDS = 5.0
NICENESS = 5
"""Of a build: below what the person at the machine does."""


@dataclass
class Outcome:
    """error: "" for success; changed: how many files an update found changed."""

    error: str = ""
    changed: int | None = None


class Job:
    """A process in a process group of its own; it ends with this process, whatever ends that."""

    def __init__(self, kind: Kind, folder: Path, root: Path) -> None:
        self.kind = kind
        self._start = time.monotonic()
        command = [sys.executable, "-m", "ncs.serve.mcp.jobs", kind, str(folder), str(root)]
        # not in the project: with -m, a typing.py of the project would be imported
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=sys.prefix
        )

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def wait(self, seconds: float, file: Path | None = None) -> None:
        """Wait for its end, but not past so many seconds after its start, nor past the appearance of a file."""
        while self.running and time.monotonic() < self._start + seconds and not (file and file.is_file()):
            time.sleep(POLL)

    def outcome(self) -> Outcome:
        """The outcome of the process."""
        output, _ = self._process.communicate()
        try:
            return Outcome(**json.loads(output.strip().rpartition("\n")[2]))
        except (ValueError, TypeError):
            return Outcome(f"it ended with status {self._process.returncode}; see the log of ncs mcp")

    def stop(self) -> None:
        """End it now, with all its processes."""
        if self.running:
            with suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=STOP_SECONDS)


def main(arguments: Sequence[str]) -> int:
    """`build FOLDER ROOT` or `update FOLDER ROOT`; the outcome as one JSON line on stdout."""
    threading.Thread(target=_exit_with_server, args=(take_stdin(),), daemon=True).start()
    kind, folder, root = arguments
    if kind == "build" and hasattr(os, "nice"):  # an update is what an answer waits for
        os.nice(NICENESS)
    from ncs.errors import NcsError
    from ncs.index import Index

    outcome = Outcome()
    try:
        if kind == "build":
            Index.build(Path(root), Path(folder)).close()
        else:
            index, changes = Index.update(Path(folder))
            index.close()
            outcome.changed = len(changes.added) + len(changes.changed) + len(changes.removed)
    except NcsError as error:
        outcome = Outcome(str(error))
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
    return 0


def _exit_with_server(stdin: int) -> None:
    """The server has the other end of stdin: however it ends, this read ends, and all our processes do."""
    with suppress(OSError, ValueError):
        while os.read(stdin, 4096):
            pass
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(os.getpgrp(), signal.SIGKILL)  # extraction and training, too; the group is only ours
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
