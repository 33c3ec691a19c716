"""A build or update in a process of its own, which ends with the server that started it: `python -m
ncs.serve.mcp.worker`."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

NICER = 5
"""Below what the person at the machine does."""


def main(arguments: Sequence[str]) -> int:
    """build FOLDER ROOT... or update FOLDER; one JSON line on stdout: ok and changed, or error."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    if arguments[0] == "build" and hasattr(os, "nice"):  # an answer waits for an update
        os.nice(NICER)
    from ncs.errors import NcsError

    try:
        told = _made(arguments[0], Path(arguments[1]), arguments[2:])
    except NcsError as error:
        told = {"ok": False, "kind": type(error).__name__, "error": str(error)}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def _made(what: str, folder: Path, roots: Sequence[str]) -> dict[str, Any]:
    from ncs.index import Index

    if what == "build":
        Index.build([Path(root) for root in roots], folder).close()
        return {"ok": True, "changed": None}
    index, changes = Index.update(folder)
    index.close()
    return {"ok": True, "changed": len(changes.added) + len(changes.changed) + len(changes.removed)}


def _end_with_server() -> None:
    """The server holds the other end of stdin: however it ends, this is read, and all our processes end."""
    with suppress(OSError, ValueError):
        while os.read(0, 4096):
            pass
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(os.getpgrp(), signal.SIGKILL)  # those that extract and train, too; this group is only ours
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
