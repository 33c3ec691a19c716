"""A server on the loopback that speaks OpenAI's embeddings API: a text's vector counts its letters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests import webserver

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def vector(text: str, dimensions: int = 26) -> list[float]:
    """What the server answers: how often each letter stands in a text, and .5."""
    return [text.count(letter) + 0.5 for letter in LETTERS[:dimensions]]


class Server(webserver.Server):
    """Remembers the requests; `answers` are given first, in turn, as (status, body, headers)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answers: list[tuple[int, Any, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"{super().url}/v1"


class Handler(webserver.Handler):
    """POST /v1/embeddings."""

    server: Server
    site = webserver.Site()

    def do_POST(self) -> None:  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        status, answer, headers = self.server.answers.pop(0) if self.server.answers else (200, None, {})
        if answer is None:
            vectors = [vector(text, body.get("dimensions", 26)) for text in body["input"]]
            data = [{"object": "embedding", "index": i, "embedding": each} for i, each in enumerate(vectors)]
            answer = {"object": "list", "model": body["model"], "data": data[::-1]}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self._send(status, {"Content-Type": "application/json", **headers}, content)


@contextmanager
def serving() -> Iterator[Server]:
    """A server that answers until the end of the block."""
    server = Server()
    with server.running():
        yield server
