"""Listening and stopping: the socket, worker processes, signals, the log."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import uvicorn
from uvicorn.supervisors import Multiprocess

from ncs.errors import BadInput
from ncs.index import Index
from ncs.server.settings import ENVIRONMENT, TOKEN, Settings

GRACE = 15
"""Seconds that requests have to end when the server is told to."""
MOST_HEAD = 32 << 10
"""Bytes of a request's first line and headers."""
MOST_CONNECTIONS = 1_000
SWITCH = 0.001
"""Seconds after which a searching thread lets the event loop go on; Python's own .005 is long beside an answer."""


def serve(settings: Settings, token: str | None, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered are answered first.

    Raises what Index.load raises, and BadInput where the address cannot be listened on.
    """
    sizes = {}
    for name, folder in settings.folders.items():
        with Index.load(folder) as index:
            sizes[name] = len(index)
    os.environ[ENVIRONMENT] = settings.to_json()
    if token is not None:
        os.environ[TOKEN] = token
    with closing(_listen(settings)) as listening:
        port = listening.getsockname()[1]
        for line in told(settings, sizes, port, token):
            say(line)
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises again what stopped it: by then all is done
            signal.signal(number, lambda *_: None)
        _run(_config(settings), listening)
    say("ncs: stopped")


def told(settings: Settings, sizes: dict[str, int], port: int, token: str | None) -> list[str]:
    """What to say at the start: indexes, address, and what an address beyond loopback means."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    what = ", ".join(f"{name} ({count:,} documents)" for name, count in sizes.items())
    lines = [f"ncs: serving {what} at http://{host}:{port}"]
    if not settings.loopback:
        who = "who has the token" if token else "everyone who reaches this machine"
        remedy = "put a TLS proxy before it" + ("" if token else ", and give it a token: --token-file")
        lines.append(f"ncs: {who} can read all indexed code there, and nothing is encrypted; {remedy}")
    return lines


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInput(
            f"cannot listen on {settings.host} port {settings.port} ({why}); choose another --port"
        ) from None
    listening.set_inheritable(True)
    return listening


def _config(settings: Settings) -> uvicorn.Config:
    """h11, because it bounds what the head of a request may take."""
    return uvicorn.Config(
        "ncs.server.app:from_environment", factory=True, workers=settings.workers, loop="asyncio",
        http="h11", h11_max_incomplete_event_size=MOST_HEAD, ws="none", lifespan="on",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE, timeout_keep_alive=30, timeout_worker_healthcheck=30,
        access_log=False, server_header=False, proxy_headers=False, log_config=log_config(settings),
    )  # fmt: skip


def log_config(settings: Settings) -> dict[str, object]:
    """A line a request and what goes wrong, on stderr; only the latter with `quiet`."""
    level = "WARNING" if settings.quiet else "INFO"
    handler = {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
    line = {"format": "%(asctime)s %(message)s", "datefmt": "%Y-%m-%dT%H:%M:%S%z"}
    loggers = {"ncs.server": {"level": level}, "uvicorn.error": {"level": "WARNING"}}
    return {
        "version": 1, "disable_existing_loggers": False, "formatters": {"line": line}, "handlers": {"stderr": handler},
        "loggers": {name: {**given, "handlers": ["stderr"], "propagate": False} for name, given in loggers.items()},
    }  # fmt: skip


def _run(config: uvicorn.Config, listening: socket.socket) -> None:
    if config.workers == 1:
        sys.setswitchinterval(SWITCH)
        uvicorn.Server(config).run(sockets=[listening])
        return
    together = tempfile.mkdtemp(prefix="ncs-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = together  # before a worker imports prometheus_client
    try:
        Multiprocess(config, sockets=[listening]).run()
    finally:
        shutil.rmtree(Path(together), ignore_errors=True)
