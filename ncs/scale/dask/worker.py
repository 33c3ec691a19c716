"""What runs in a worker of the cluster: each of its threads has a process that reads, and ends it in time."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

_here = threading.local()
_PIECE = 1 << 20


class Child:
    """A process that does jobs one by one; a new one where the last was ended."""

    def __init__(self, memory: int) -> None:
        """memory: bytes it may use, 0 for no limit."""
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ncs.scale.dask.child", str(memory), str(os.getpid())],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that git, waiting for what never comes, is ended too
        )

    def ask(self, job: str, seconds: float) -> tuple[str, bytes]:
        """("shard", bytes), or another kind of answer and why, as UTF-8."""
        end = time.monotonic() + seconds
        try:
            if self.process.stdin is None:
                raise BrokenPipeError
            self.process.stdin.write(job.encode() + b"\n")
            self.process.stdin.flush()
            head, rest = self._until_line(end)
            told = json.loads(head)
            return told["kind"], self._exactly(told["bytes"], rest, end)
        except TimeoutError:
            self.end()
            return "failed", f"it takes longer than {seconds:g} s".encode()
        except (OSError, EOFError, ValueError):
            return "failed", f"the process that read it {self._ended()}".encode()

    def _until_line(self, end: float) -> tuple[bytes, bytes]:
        data = b""
        while b"\n" not in data:
            data += self._piece(end)
        head, _, rest = data.partition(b"\n")
        return head, rest

    def _exactly(self, size: int, begun: bytes, end: float) -> bytes:
        pieces, missing = [begun], size - len(begun)
        while missing > 0:
            pieces.append(self._piece(end))
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def _piece(self, end: float) -> bytes:
        """What has come; TimeoutError where nothing does in time, EOFError where the process has ended."""
        if self.process.stdout is None:
            raise EOFError
        descriptor = self.process.stdout.fileno()
        if not select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError
        piece = os.read(descriptor, _PIECE)
        if not piece:
            raise EOFError
        return piece

    def _ended(self) -> str:
        code = self.process.wait()
        self.end()
        return f"was ended by signal {-code}; is there enough memory?" if code < 0 else f"ended with status {code}"

    def end(self) -> None:
        """With all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        _here.child = None


def read(job: str, seconds: float) -> tuple[str, bytes, str]:
    """What a job came to, and the address of this worker. Dask calls it, in a thread of a worker."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit or 0
    child = getattr(_here, "child", None)
    if child is None:
        child = _here.child = Child(int(limit) // max(1, worker.state.nthreads))
    kind, answer = child.ask(job, seconds)
    return kind, answer, str(worker.address)
