"""A build or update that runs beside the server: started, waited for, stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["build", "update"]
STEP = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: error "" where it did what it should. busy: another process was writing there.

    changed: how many files an update found changed; None of a build."""

    error: str = ""
    busy: bool = False
    changed: int | None = None


class Job:
    """One worker process, in a process group of its own; it ends with this process, whatever ends that."""

    def __init__(self, kind: Kind, folder: Path, roots: Sequence[Path] = ()) -> None:
        self.kind = kind
        self.started = time.monotonic()
        command = [sys.executable, "-m", "ncs.serve.mcp.worker", kind, str(folder), *map(str, roots)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=sys.prefix
        )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self.started

    def wait(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Until it has ended, or it is enough, or the time is over."""
        end = time.monotonic() + seconds
        while self.running and not enough() and time.monotonic() < end:
            time.sleep(STEP)

    def outcome(self) -> Outcome:
        """How it ended."""
        said, _ = self._process.communicate()
        try:
            told = json.loads(said.strip().rpartition("\n")[2])
            error = "" if told["ok"] else str(told["error"])
            return Outcome(error, told.get("kind") == "IndexBusy", told.get("changed"))
        except (ValueError, LookupError, TypeError):
            return Outcome(f"it ended with status {self._process.returncode}; the log of ncs mcp says more")

    def stop(self) -> None:
        """End it now, with all its processes."""
        if self.running:
            with suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
