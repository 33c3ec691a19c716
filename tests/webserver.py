"""A web server on loopback that does what a test tells it: ranges, cut connections, refusals, changed files."""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.waiting import LONG


@dataclass(frozen=True)
class Answer:
    """One answer out of the ordinary. cut: bytes of the body after which the connection is closed; held: but not
    before that is set."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    body: bytes | None = None
    held: threading.Event | None = None


class Site:
    """The files served, what is to go wrong, and what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, list[Answer]] = defaultdict(list)
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.url = ""
        self.etags = True
        self.lengths = True

    def ranges(self, path: str) -> list[str | None]:
        """The Range header of every request for a path."""
        return [headers.get("range") for asked, headers in self.asked if asked == path]

    def put(self, path: str, body: bytes, *answers: Answer) -> str:
        """Serve a file, after the answers given; its address."""
        self.files[path] = body
        self.answers[path] += answers
        return self.url + path


def etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


class Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        prepared = self.site.answers[self.path]
        answer = prepared.pop(0) if prepared else Answer()
        self._answer(answer)
        if answer.held is not None:
            answer.held.wait(LONG)

    def _answer(self, answer: Answer) -> None:
        body = self.site.files.get(self.path) if answer.body is None else answer.body
        if body is None or answer.status != 200:
            self._send(404 if body is None else answer.status, answer.headers, b"no")
            return
        headers = {"ETag": etag(body)} if self.site.etags else {}
        asked, condition = self.headers.get("Range"), self.headers.get("If-Range")
        if asked and condition in (None, headers.get("ETag")):
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self._send(416, {"Content-Range": f"bytes */{len(body)}"}, b"")
                return
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self._send(206, {**headers, **answer.headers}, body[start:], answer.cut)
        else:
            self._send(200, {**headers, **answer.headers}, body, answer.cut)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, cut: int | None = None) -> None:
        sent = body[:cut]
        if self.site.lengths or "Content-Length" in headers:
            headers = {"Content-Length": str(len(body)), **headers}
        else:
            headers = {"Transfer-Encoding": "chunked", **headers}
            sent = b"%x\r\n%s" % (len(body), sent) + (b"\r\n0\r\n\r\n" if cut is None else b"")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)
        if cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is what some tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Answers until the end of the block."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
            thread.join()


@contextmanager
def serving() -> Iterator[Site]:
    """A site on a free port of the loopback address."""
    site = Site()
    server = Server(("127.0.0.1", 0), type("SiteHandler", (Handler,), {"site": site}))
    site.url = server.url
    with server.running():
        yield site
