"""A server on the loopback that speaks OpenAI's embeddings API: a text's vector counts its letters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def vector(text: str, dimensions: int = 26) -> list[float]:
    """What the server answers: how often each letter stands in a text, and .5."""
    return [text.count(letter) + 0.5 for letter in LETTERS[:dimensions]]


class Server(ThreadingHTTPServer):
    """Remembers the requests; `answers` are given first, in turn, as (status, body, headers)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answers: list[tuple[int, Any, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    """POST /v1/embeddings."""

    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        status, answer, headers = self.server.answers.pop(0) if self.server.answers else (200, None, {})
        if answer is None:
            size = body.get("dimensions", 26)
            data = [
                {"object": "embedding", "index": i, "embedding": vector(t, size)} for i, t in enumerate(body["input"])
            ]
            answer = {"object": "list", "model": body["model"], "data": data[::-1]}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing on stderr."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server that answers until the end of the block."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()
