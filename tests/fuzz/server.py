"""Requests to `ncs serve`, `ncs mcp --http`, `ncs annotate` and `ncs mcp`: refused or answered, and then a question is.

A case is a server's name and pieces of bytes: HTTP, each over its connection, or lines of JSON-RPC over stdio. Errors
take one line and have no traceback, nothing of a file beside the project comes out, and memory is bounded.
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
from tests.serving import plain_get, plain_post

SECONDS = 600.0
MEMORY = 2 << 30
CASES = 5

ANSWER_SECONDS = 120.0
"""The time limit of a request and the replacement of its process, on a busy machine."""
LIE_SECONDS = 0.3
"""How long an answer is waited for that need not come, as the request lies about its length."""
MAX_RSS, MAX_CHILD_RSS = 500 << 20, 2_500 << 20
"""Of the server itself; of a process that searches or parses, which has a limit of its own."""
STATUSES = {200, 202, 307, 400, 401, 403, 404, 405, 406, 408, 409, 413, 414, 415, 422, 503, 504}
CANARY = b"canary_0f9c"
OUTSIDE = "OUTSIDE"
"""In a case: the path of a file with the canary, beside the project."""
FOREIGN = (b"Host: evil", b"Origin:", b"Sec-Fetch-Site:")
"""Headers by which a page of another site is known."""
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
    "../outside.py:1", "..%2foutside.py:1", "app/../../outside.py:1", "link.py:1", OUTSIDE, f"{OUTSIDE}:1",
    f"file://{OUTSIDE}:1", f"{OUTSIDE}/../outside.py:1", "\ud800", "a\udcff:1", "\U0001f600" * 300, "-e", "\x1b[31m",
)  # fmt: skip
CODES = (
    "def f(x):\n    return x\n", JAVA.format("1"), JAVA.format("a<" * 3_000), JAVA.format("(" * 5_000), "/*" * 10_000,
    "x" * 40_000, "{[" * 8_000, "\0\xff", "`${" * 5_000, '"""' * 8_000, "if x:\n" + " " * 3_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, 1, -1, 3, 100, 10**20, 10**4_000, 0.5, 1e308, float("inf"), float("nan"), True, None, [], {}, [[[]]], "7",
)  # fmt: skip
FILTERS = ("k", "language", "repository", "path", "kind", "code", "marks")
NAMES = {
    "/api/search": ("query", "ranker", "functions_only", "min_confidence", "unfold", "explain", *FILTERS),
    "/api/explain": ("query", "ranker", "functions_only", *FILTERS),
    "/api/similar": ("source", "source_language", "line", "id", *FILTERS),
    "/api/document": ("id", "code"), "/api/words": ("word", "n"), "/api/map/places": ("ids",),
    "/api/feedback": ("query", "id", "vote"), "search_code": ("query", "k", "path", "language", "max_tokens", "cursor"),
    "find_similar": ("code", "code_language", "place", "k", "path", "max_tokens"), "find_definition": ("name", "k"),
    "get_function": ("place", "max_tokens", "cursor"), "/api/next": ("annotator", "language"),
    "/api/answer": ("pair", "grade", "notes", "annotator", "language"), "/api/undo": ("annotator", "language"),
}  # fmt: skip
PATHS = (
    "/api/search", "/api/explain", "/api/similar", "/api/document", "/api/words", "/api/map", "/api/map/places",
    "/api/info", "/api/indexes", "/api/feedback", "/health", "/ready", "/metrics", "/openapi.json", "/", "/docs",
    "/..%2f..%2fetc/passwd", "/../outside.py", "/%2e%2e/outside.py", "/api/pool", "/api/next", "/mcp/",
    "/api//search", "*", "http://evil.example/api/search", "/%00", "/" + "a" * 20_000,
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
    server = random.choice(("serve", "serve", "serve", "mcp", "mcp", "annotate", "stdio"))
    pieces = [
        _line(random) if server == "stdio" else _request(random, server) for _ in range(random.choice((1, 1, 2, 9)))
    ]
    return json.dumps([server, *(piece.decode("latin-1") for piece in pieces)]).encode()


def check(case: bytes, room: Path) -> None:
    name, *pieces = json.loads(case)
    server = _server(name, room.parent.parent / f"server-{os.getpid()}")
    data = [piece.encode("latin-1").replace(OUTSIDE.encode(), server.outside.encode()) for piece in pieces]
    if name == "stdio":
        for line in data:
            server.send(line)
    else:
        _send(server, data)
    began = time.monotonic()
    _ask(server)
    assert time.monotonic() - began < ANSWER_SECONDS, "a question is answered late"
    assert server.process.poll() is None, f"{name} has ended"
    process = psutil.Process(server.process.pid)
    assert process.memory_info().rss < MAX_RSS, f"{name} takes more and more memory"
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            assert child.memory_info().rss < MAX_CHILD_RSS, f"a process of {name} takes too much memory"
    log = server.log.read().decode("utf-8", "replace")
    assert "Traceback" not in log, "a traceback is logged: " + log.strip().rpartition("\n")[2]
    assert all(letter.isprintable() or letter in "\n\r" for letter in log), "the log holds control characters"


def _value(random: Random) -> Any:
    kind = random.random()
    if kind < 0.1:
        return _noise(random)
    return random.choice(TEXTS if kind < 0.5 else CODES if kind < 0.65 else VALUES)


def _noise(random: Random) -> str:
    """Letters of any kind, halves of surrogate pairs among them; now and then about as many as are allowed."""
    size = random.choice((3, 40, 299, 2_000, 2_001, 32_767, 32_768, 32_769))
    letters = [32, 97, *(random.randrange(high) for high in (0x250, 0x250, 0x3000, 0x110000) for _ in range(20))]
    return "".join(map(chr, random.choices(letters, k=size)))


def _fields(random: Random, of: str) -> dict[str, Any]:
    """Fields of a path or tool, mostly those that it has, and mostly with its first one."""
    names = NAMES.get(of, ("index", "project", "x"))
    first = {names[0]: random.choice((*TEXTS, *CODES, _noise(random)))} if random.random() < 0.8 else {}
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
        posts = {"serve": (*PATHS[:3], "/api/map/places"), "mcp": ("/mcp",), "annotate": ("/api/answer", "/api/undo")}
        gets = {"serve": tuple(NAMES)[:6], "mcp": ("/mcp",), "annotate": ("/api/next", "/api/pool")}
        path = random.choice((posts if method == "POST" else gets)[server])
    body = b""
    if method != "GET":
        body = _call(random) if server == "mcp" else _damage(random, json.dumps(_fields(random, path)).encode())
    if method == "GET" and random.random() < 0.9:
        fields = _fields(random, path).items()
        path += "?" + "&".join(f"{key}={quote(str(value)[:3_000], errors='surrogatepass')}" for key, value in fields)
    version = random.choice(("HTTP/1.1",) * 60 + ("HTTP/1.0", "HTTP/2.0", "HTTP/9.9", ""))
    headers = ["Host: localhost", "Content-Type: application/json", "Accept: application/json, text/event-stream"]
    headers += random.sample(HEADERS, random.choice((*[0] * 6, 1, 3)))
    if random.random() < 0.95:
        headers.append(f"Content-Length: {len(body) + random.choice((0,) * 20 + (1, -1, 100))}")
    head = "\r\n".join([f"{method} {path} {version}", *headers]).encode("latin-1", "replace")
    return head + b"\r\n\r\n" + body


class _Server:
    def __init__(self, name: str, folder: Path) -> None:
        root, queries, outside = folder / "repos", folder / "queries.txt", folder / "outside.py"
        if not root.exists():
            Index.build(corpus.write(root), root / ".ncs").close()
            outside.write_bytes(b"def " + CANARY + b"():\n    return 1\n")
            (root / "link.py").symlink_to(outside)
            queries.write_text("hide soft keyboard\n")
        self.name, self.outside = name, str(outside)
        arguments: dict[str, tuple[str, ...]] = {
            "serve": ("serve", "--port", "0", "--workers", "1", "--time-limit", "60", "-i", str(root / ".ncs")),
            "mcp": ("mcp", "--http", "--port", "0", "-i", str(root / ".ncs")),
            "annotate": ("annotate", str(root / ".ncs"), str(queries), "--port", "0"),
            "stdio": ("mcp", "-i", str(root / ".ncs")),
        }
        stdin, self._alive = os.pipe()
        command = [sys.executable, "-c", START.format(stdin=stdin), *arguments[name]]
        pipe, path = subprocess.PIPE, folder / f"{name}.log"
        with path.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, pass_fds=[stdin])
        self.log = path.open("rb")
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
        end = time.monotonic() + SECONDS
        while not (match := re.search(r"http://[^\s]+", path.read_text("utf-8", "replace"))):
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
            answer = os.read(self.process.stdout.fileno(), 1 << 20)
            self.buffer = self.buffer[-100_000:] + answer
            _check_content(self.buffer)
            assert self.process.poll() is None, "it has ended"


@cache
def _server(name: str, folder: Path) -> _Server:
    return _Server(name, folder)


def _ask(server: _Server) -> None:
    """An ordinary question must be answered."""
    server.number += 1
    message = {"jsonrpc": "2.0", "id": f"control {server.number}", "method": "tools/call",
               "params": {"name": "search_code", "arguments": {"query": "hide soft keyboard", "k": 1}}}  # fmt: skip
    if server.name == "stdio":
        server.send(json.dumps(message).encode() + b"\n")
        server.receive_until(f'"control {server.number}"'.encode())
        return
    url = f"http://{server.url.netloc}"
    if server.name == "serve":
        answer = plain_get(f"{url}/api/search", params={"query": "hide soft keyboard", "k": 1})
    elif server.name == "annotate":
        answer = plain_get(f"{url}/api/next", params={"annotator": "control"})
    else:
        headers = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-06-18"}
        answer = plain_post(f"{url}/mcp", json=message, headers=headers)
    assert answer.status_code == 200, f"a question is answered with {answer.status_code}"
    assert "eyboard" in answer.text, "a question finds nothing"


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
        answer = b""
        with server.connect() as connection, suppress(OSError):
            connection.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            answer = _received(connection, ANSWER_SECONDS if honest else LIE_SECONDS)
        assert answer or not honest or len(request) > 200_000, "no answer"  # (a refusal may be lost with its rest)
        _check_answer(answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"), any(name in head for name in FOREIGN))


def _check_answer(answer: bytes, foreign: bool) -> None:
    """An answer's status is a known one, and what it says otherwise takes one line."""
    if not answer:
        return
    body = answer.partition(b"\r\n\r\n")[2]
    status = re.match(rb"HTTP/1\.1 (\d+)", answer)
    assert status, f"no HTTP: {answer[:60]!r}"
    assert int(status[1]) in STATUSES, f"answered with {status[1].decode()}"
    assert int(status[1]) >= 300 or not foreign, "a page of another site is answered"
    _check_content(answer)
    if int(status[1]) >= 400 and b'"jsonrpc"' not in body:
        text = body
        with suppress(ValueError, KeyError, TypeError):
            text = json.loads(body)["error"]["message"].encode()
        lines = [line for line in text.splitlines() if not re.fullmatch(rb"[0-9a-f]*", line)]  # (sizes of chunks)
        assert len(lines) <= 1, f"an error takes more than a line: {text[:100]!r}"
        assert len(text) < 2_000, "an error is long"


def _check_content(answer: bytes) -> None:
    assert CANARY not in answer, "a file outside the project is shown"
    assert b"Traceback" not in answer, "a traceback is shown"
