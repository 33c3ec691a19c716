"""Listening and stopping: the socket, signals, the log."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn

from ncs.errors import BadInput, NcsError
from ncs.scale.milvus.opening import open_index
from ncs.serve.http.app import create_app
from ncs.serve.http.edge import Edge
from ncs.serve.http.protocol import Protocol
from ncs.serve.http.settings import Settings

GRACE = 15
"""Seconds that requests have to end when the server is told to."""
MOST_HEAD = 32 << 10
"""Bytes of a request's first line and headers."""
MOST_CONNECTIONS = 1_000


def serve(settings: Settings, token: str | None, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered are answered first.

    Raises what `open_index` raises, and BadInput where the address cannot be listened on.
    """
    sizes = {}
    for name, folder in settings.folders.items():
        with open_index(folder, settings.store) as index:
            sizes[name] = len(index)
    with closing(listen(settings)) as listening:
        port = listening.getsockname()[1]
        for line in told(settings, sizes, port, token):
            say(line)
        run(create_app(settings, token), listening, settings)
    say("ncs: stopped")


def run(app: Edge, listening: socket.socket, settings: Settings) -> None:
    """Let an application answer at a socket until SIGTERM or SIGINT. Raises NcsError where it does not start."""
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises again what stopped it: by then all is done
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(_config(app, settings))
    server.run(sockets=[listening])
    if not server.started:
        raise NcsError("the server did not start; what it said above tells why")


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


def listen(settings: Settings) -> socket.socket:
    """The socket of a server. Raises BadInput where its address cannot be listened on."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInput(
            f"cannot listen on {settings.host} port {settings.port} ({why}); choose another --port"
        ) from None
    return listening


def _config(app: Edge, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app, http=Protocol, h11_max_incomplete_event_size=MOST_HEAD, loop="asyncio",
        ws="none", lifespan="on", limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30, access_log=False, server_header=False, proxy_headers=False,
        log_config=log_config(settings),
    )  # fmt: skip


def log_config(settings: Settings) -> dict[str, object]:
    """A line a request and what goes wrong, on stderr; only the latter with `quiet`."""
    level = "WARNING" if settings.quiet else "INFO"
    handler = {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
    line = {"format": "%(asctime)s %(message)s", "datefmt": "%Y-%m-%dT%H:%M:%S%z"}
    loggers = {"ncs.serve.http": {"level": level}, "uvicorn.error": {"level": "WARNING"}}
    return {
        "version": 1, "disable_existing_loggers": False, "formatters": {"line": line}, "handlers": {"stderr": handler},
        "loggers": {name: {**given, "handlers": ["stderr"], "propagate": False} for name, given in loggers.items()},
    }  # fmt: skip
