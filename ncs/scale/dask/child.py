"""The process that reads repositories for a worker: what never ends, or takes all memory, is ended with it.

A job is a line of JSON on stdin; the answer on stdout is a line of JSON that says how many bytes follow.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress

from ncs.errors import NcsError, SourceError


def main() -> int:
    """Answer jobs until stdin ends; arguments: bytes of memory that may be used, 0 for no limit; the worker's id."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    limit, parent = map(int, sys.argv[1:])
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    from ncs.scale.dask.job import Job, do

    _limit_memory(limit)
    for line in sys.stdin:
        answer, kind = b"", "shard"
        try:
            answer = do(Job.from_json(line))
        except SourceError as error:
            answer, kind = str(error).encode(), "source"
        except NcsError as error:
            answer, kind = str(error).encode(), "refused"
        except MemoryError:
            answer, kind = b"it needs more memory than the worker has", "failed"
        except Exception as error:
            answer, kind = f"{type(error).__name__}: {error}".encode(), "failed"
        out.write(json.dumps({"kind": kind, "bytes": len(answer)}).encode() + b"\n")
        out.write(answer)
        out.flush()
    return 0


def _limit_memory(limit: int) -> None:
    with suppress(ImportError, OSError, ValueError):  # where the system has no such limits there is none
        import resource

        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _end_with(parent: int) -> None:
    """A worker that was killed does not end its job's process by itself, nor that process its git."""
    while os.getppid() == parent:
        time.sleep(0.5)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
