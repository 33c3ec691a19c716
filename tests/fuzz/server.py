"""Requests to `ncs serve`, `ncs mcp --http` and `ncs mcp`: answered without a server error, and then a question is.

A case is a server's name and pieces of bytes: HTTP over one connection, or lines of JSON-RPC over stdio.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlsplit

import psutil

from ncs.index import Index
from tests import corpus

SECONDS = 90.0
MEMORY = 2 << 30
CASES = 24

ANSWER_SECONDS = 25.0
"""The time limit of a request and the replacement of its process, on a busy machine."""
LIE_SECONDS = 0.3
"""How long an answer is waited for that need not come, as the request lies about its length."""
MAX_RSS = 500 << 20
START = """
import os, sys, threading
threading.Thread(target=lambda: (os.read({stdin}, 1), os._exit(9)), daemon=True).start()  # we are gone
from ncs.cli.main import main
main()
"""
INITIALIZE = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"},
}  # fmt: skip
JAVA = "class A {{ int f() {{ return {}; }} }}"
TEXTS = (
    "hide soft keyboard", "", " ", "a" * 2_001, "a b " * 400, "aB_c" * 300, "(" * 900, "View.setPadding", "\0", "\n",
    "\u202e\u2066", "\u0300" * 500, "%s{0}${x}", "../../../etc/passwd", "/dev/stdin", "app/src/Keyboards.java:1",
    "*a" * 100, "[!" * 100, "[" * 200, "?" * 250, "src/*.java", "java", "python", "klingon", "bm25", "hybrid", "class",
    "endpoint:url=http://127.0.0.1:9", "demo", "file:///etc/passwd:1", "x:" + "9" * 5_000, ":1", "1", "0", "keyboard",
)  # fmt: skip
CODES = (
    "def f(x):\n    return x\n", JAVA.format("1"), JAVA.format("a<" * 3_000), JAVA.format("(" * 5_000), "/*" * 10_000,
    "x" * 40_000, "{[" * 8_000, "\0\xff", "`${" * 5_000, '"""' * 8_000, "if x:\n" + " " * 3_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    0,
    1,
    -1,
    3,
    100,
    10**20,
    10**4_000,
    0.5,
    1e308,
    float("inf"),
    float("nan"),
    True,
    None,
    [],
    {},
    [[[]]],
    "7",
)
FILTERS = ("k", "language", "repository", "path", "kind", "code", "marks")
NAMES = {
    "/api/search": ("query", "ranker", "functions_only", "min_confidence", "unfold", "explain", *FILTERS),
    "/api/explain": ("query", "ranker", "functions_only", *FILTERS),
    "/api/similar": ("source", "source_language", "line", "id", *FILTERS),
    "/api/document": ("id", "code"), "/api/words": ("word", "n"), "/api/map/places": ("ids",),
    "/api/feedback": ("query", "id", "vote"), "search_code": ("query", "k", "path", "language", "max_tokens", "cursor"),
    "find_similar": ("code", "code_language", "place", "k", "path", "max_tokens"), "find_definition": ("name", "k"),
    "get_function": ("place", "max_tokens", "cursor"),
}  # fmt: skip
PATHS = (
    "/api/search", "/api/explain", "/api/similar", "/api/document", "/api/words", "/api/map", "/api/map/places",
    "/api/info", "/api/indexes", "/api/feedback", "/health", "/ready", "/metrics", "/openapi.json", "/", "/docs",
    "/..%2f..%2fetc/passwd", "/api//search", "*", "http://evil.example/api/search", "/%00", "/" + "a" * 20_000,
)  # fmt: skip
TOOLS = ("search_code", "find_similar", "get_function", "find_definition", "index_status", "no_such_tool", "")
METHODS = (
    "tools/call", "tools/list", "initialize", "ping", "resources/list", "prompts/get", "logging/setLevel",
    "completion/complete", "notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed",
    "roots/list", "sampling/createMessage", "x", "",
)  # fmt: skip
HEADERS = (
    "Host: evil.example", "Host:", "Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site",
    "Content-Type: text/plain", "Expect: 100-continue", "Connection: Upgrade\r\nUpgrade: websocket", "Accept: */*",
    "Connection: close", "Connection: keep-alive", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip",
    "Content-Encoding: gzip", "Range: bytes=0-1", "X-Y: " + "z" * 9_000, "Content-Length: 5", "Content-Length: -1",
    "Content-Length: 99999999999", "Authorization: Bearer x", "Bad Name: x", "X-Bytes: \xff\xfe", "Cookie: x",
    "Mcp-Session-Id: x", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Protocol-Version: x", "Last-Event-Id: 1",
    "X-Fold: a\r\n b",
)  # fmt: skip


def generate(random: Random) -> bytes:
    server = random.choice(("serve", "serve", "mcp", "stdio"))
    pieces = [
        _line(random) if server == "stdio" else _request(random, server) for _ in range(random.choice((1, 1, 2, 9)))
    ]
    return json.dumps([server, *(piece.decode("latin-1") for piece in pieces)]).encode()


def check(case: bytes, room: Path) -> None:
    name, *pieces = json.loads(case)
    server = _server(name, room.parent.parent / f"server-{os.getpid()}")
    data = [piece.encode("latin-1") for piece in pieces]
    (_talk if name == "stdio" else _send)(server, data)
    began = time.monotonic()
    _ask(server)
    assert time.monotonic() - began < ANSWER_SECONDS, "a question is answered late"
    assert server.process.poll() is None, f"{name} has ended"
    assert psutil.Process(server.process.pid).memory_info().rss < MAX_RSS, f"{name} takes more and more memory"


def _value(random: Random) -> Any:
    kind = random.random()
    return random.choice(TEXTS if kind < 0.5 else CODES if kind < 0.65 else VALUES)


def _fields(random: Random, of: str) -> dict[str, Any]:
    """Fields of a path or tool, mostly those that it has, and mostly with its first one."""
    names = NAMES.get(of, ("index", "project", "x"))
    first = {names[0]: random.choice((*TEXTS, *CODES))} if random.random() < 0.8 else {}
    more = {random.choice(names): _value(random) for _ in range(random.choice((0, 0, 1, 2)))}
    return {**more, **first, **({"source_language": "java"} if "source" in first else {})}


def _damage(random: Random, data: bytes) -> bytes:
    """Sometimes with bytes removed, changed, repeated or nested."""
    at = random.randrange(len(data) + 1)
    return random.choice([
        *[data] * 40, data[:at], data[at:], data[:at] + bytes(random.choices(range(256), k=9)) + data[at:],
        data * random.choice((2, 50)), b"[" * 20_000 + data, b'{"a":' * 5_000 + data, data + b" " * 300_000, b"",
    ])  # fmt: skip


def _call(random: Random) -> bytes:
    tool = random.choice(TOOLS)
    fields = _fields(random, tool)
    params = {"name": tool, "arguments": fields} if random.random() < 0.9 else fields
    message: Any = {"jsonrpc": "2.0", "id": random.choice((1, "a", None, 10**30, -1, 0.5)),
                    "method": random.choice(("tools/call",) * 60 + METHODS), "params": params}  # fmt: skip
    if random.random() < 0.1:
        message = random.choice(
            ([message] * 20, message | {"jsonrpc": "1.0"}, {"id": 1, "result": message}, message["params"])
        )
    return _damage(random, json.dumps(message).encode())


def _line(random: Random) -> bytes:
    return _call(random).replace(b"\n", b" ") + b"\n"


def _request(random: Random, server: str) -> bytes:
    method = random.choice(("POST",) * 5 + ("GET",) * (5 if server == "serve" else 1) + ("HEAD", "x"))
    path = random.choice(PATHS)
    if random.random() < 0.9:
        path = "/mcp" if server == "mcp" else random.choice(PATHS[:3] if method == "POST" else tuple(NAMES)[:6])
    body = (
        b""
        if method == "GET"
        else _call(random)
        if server == "mcp"
        else _damage(random, json.dumps(_fields(random, path)).encode())
    )
    if method == "GET" and random.random() < 0.9:
        path += "?" + "&".join(f"{name}={quote(str(value)[:3_000])}" for name, value in _fields(random, path).items())
    version = random.choice(("HTTP/1.1",) * 60 + ("HTTP/1.0", "HTTP/2.0", "HTTP/9.9", ""))
    headers = ["Host: localhost", "Content-Type: application/json", "Accept: application/json, text/event-stream"]
    headers += random.sample(HEADERS, random.choice((*[0] * 6, 1, 3)))
    if random.random() < 0.95:
        headers.append(f"Content-Length: {len(body) + random.choice((0,) * 20 + (1, -1, 100))}")
    head = "\r\n".join([f"{method} {path} {version}", *headers]).encode("latin-1", "replace")
    return head + b"\r\n\r\n" + body


class _Server:
    def __init__(self, name: str, folder: Path) -> None:
        if not (folder / ".ncs").exists():
            Index.build(corpus.write(folder / "repos"), folder / ".ncs").close()
        self.name = name
        arguments = {
            "serve": ("serve", "--port", "0", "-q", "--workers", "1", "-i"),
            "mcp": ("mcp", "--http", "--port", "0", "-i"),
            "stdio": ("mcp", "-i"),
        }[name]
        stdin, self._alive = os.pipe()
        command = [sys.executable, "-c", START.format(stdin=stdin), *arguments, str(folder / ".ncs")]
        pipe, log = subprocess.PIPE, (folder / f"{name}.log").open("w+b")
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, pass_fds=[stdin])
        os.close(stdin)
        atexit.register(self.process.kill)
        self.number, self.buffer = 0, b""
        if name == "stdio":
            self.send(
                json.dumps({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": INITIALIZE}).encode()
                + b"\n"
            )
            self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
            return
        end = time.monotonic() + 60
        while not (match := re.search(r"http://[^\s]+", Path(log.name).read_text())):
            assert time.monotonic() < end, f"{name} does not start"
            time.sleep(0.05)
        self.url = urlsplit(match[0])

    def connect(self) -> socket.socket:
        return socket.create_connection((str(self.url.hostname), self.url.port or 0), ANSWER_SECONDS)

    def send(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive_until(self, text: bytes) -> None:
        assert self.process.stdout
        end = time.monotonic() + ANSWER_SECONDS
        while text not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, f"no answer within {ANSWER_SECONDS:g} s"
            self.buffer = self.buffer[-100_000:] + os.read(self.process.stdout.fileno(), 1 << 20)
            assert self.process.poll() is None, "it has ended"


@cache
def _server(name: str, folder: Path) -> _Server:
    return _Server(name, folder)


def _ask(server: _Server) -> None:
    """An ordinary question must be answered."""
    server.number += 1
    message = {"jsonrpc": "2.0", "id": f"control {server.number}", "method": "tools/call",
               "params": {"name": "search_code", "arguments": {"query": "hide soft keyboard", "k": 1}}}  # fmt: skip
    body = json.dumps(message).encode()
    if server.name == "stdio":
        server.send(body + b"\n")
        server.receive_until(f'"control {server.number}"'.encode())
        return
    if server.name == "serve":
        request = b"GET /api/search?query=hide+soft+keyboard&k=1 HTTP/1.1\r\n"
    else:
        request = (
            b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        )
        request += b"Mcp-Protocol-Version: 2025-06-18\r\nContent-Length: %d\r\n" % len(body)
    with server.connect() as connection:
        host = server.url.netloc.encode()
        connection.sendall(
            request + b"Host: " + host + b"\r\nConnection: close\r\n\r\n" + body * (server.name == "mcp")
        )
        answer = _received(connection, ANSWER_SECONDS)
    assert answer.startswith(b"HTTP/1.1 200"), f"a question is answered with {answer[:60]!r}"
    assert b"hideSoftKeyboard" in answer, "a question finds nothing"


def _received(connection: socket.socket, seconds: float) -> bytes:
    connection.settimeout(seconds)
    answer = b""
    with suppress(OSError):
        while piece := connection.recv(1 << 20):
            answer += piece
    return answer


def _send(server: _Server, requests: list[bytes]) -> None:
    host = server.url.netloc.encode()
    for request in requests:
        request = request.replace(b"Host: localhost", b"Host: " + host)
        head, _, body = request.partition(b"\r\n\r\n")
        lengths = re.findall(rb"Content-Length: (.*)", head)
        honest = [length.strip() for length in lengths] == [str(len(body)).encode()] and b"Transfer" not in head
        with server.connect() as connection, suppress(OSError):
            connection.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            answer = _received(connection, ANSWER_SECONDS if honest else LIE_SECONDS)
            for status in re.findall(rb"^HTTP/1\.1 (\d+)", answer):
                assert int(status) < 500 or int(status) in (503, 504), f"answered with {status.decode()}"
            assert answer or not honest or len(request) > 200_000, "no answer"  # (a refusal may be lost with its rest)


def _talk(server: _Server, lines: list[bytes]) -> None:
    for line in lines:
        server.send(line)
