"""Running jobs in a cluster worker: one subprocess per job, with a time limit.

The process reads a job as JSON from stdin, and writes a zip, or an error message, to stdout.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from ncs.errors import NcsError, SourceError

SEGMENT, BAD_SOURCE, REFUSED, FAILED = "segment", "bad source", "refused", "failed"
STATUS = {0: SEGMENT, 3: BAD_SOURCE, 4: REFUSED, 5: FAILED}


def read(job: str, seconds: float) -> tuple[str, bytes, str]:
    """(SEGMENT, zip, worker), or another outcome with the reason as UTF-8. Called by Dask in a thread of a worker."""
    from distributed import get_worker

    worker = get_worker()
    memory = int(worker.memory_manager.memory_limit or 0) // max(1, worker.state.nthreads)
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "ncs.scale.dask.worker", str(memory), str(os.getpid())],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # so that a git that hangs is ended too
    )
    outcome, answer = FAILED, b""
    try:
        answer, _ = process.communicate(job.encode(), timeout=seconds)
        outcome = STATUS.get(process.returncode, "")
        if not outcome:
            outcome, answer = FAILED, _why_ended(process.returncode).encode()
    except subprocess.TimeoutExpired:
        answer = f"it takes longer than {seconds:g} s".encode()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
    return outcome, answer, str(worker.address)


def _why_ended(code: int) -> str:
    if code < 0:
        return f"the process that read it was ended by signal {-code}; is there enough memory?"
    return f"the process that read it ended with status {code}"


def main(arguments: list[str]) -> int:
    """arguments: bytes of memory that may be used, 0 for no limit; the process of the worker."""
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    memory, worker = map(int, arguments)
    threading.Thread(target=_end_with, args=(worker,), daemon=True).start()
    from ncs.scale.dask.jobs import Job, run

    _limit_memory(memory)
    status, answer = FAILED, b""
    try:
        status, answer = SEGMENT, run(Job.from_json(sys.stdin.read()))
    except SourceError as error:
        status, answer = BAD_SOURCE, str(error).encode()
    except NcsError as error:
        status, answer = REFUSED, str(error).encode()
    except MemoryError:
        answer = b"it needs more memory than the worker has"
    except Exception as error:
        answer = f"{type(error).__name__}: {error}".encode()
    stdout.write(answer)
    stdout.flush()
    return next(code for code, name in STATUS.items() if name == status)


def _limit_memory(limit: int) -> None:
    with suppress(ImportError, OSError, ValueError):  # not on every system
        import resource

        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _end_with(worker: int) -> None:
    """Exit when the worker has died, with all child processes."""
    while os.getppid() == worker:
        time.sleep(0.5)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
