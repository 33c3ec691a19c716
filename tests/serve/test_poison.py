"""Servers under poison: whatever one client sends, another's ordinary question is answered, and nothing is left behind.

`ncs serve`, `ncs mcp --http` and `ncs annotate`, each as a process, get code that parsers choke on, lies about lengths,
heads and bodies in drops, idle connections by the thousand and numbers without end, and are told to stop meanwhile.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import psutil
import pytest

from tests.evaluation.annotating import annotating, with_queries
from tests.serve.agents import INITIALIZE
from tests.serving import Served, connection_to, exchange, head_of, plain_client, refuses, running
from tests.waiting import until

pytestmark = pytest.mark.slow
TIME_LIMIT = 60
"""Of `ncs serve`, for busy machines."""
REPLACEMENT = 10
"""Seconds in which a process is replaced."""
STOP = 30
"""Seconds in which a server that is told to stop has ended whatever runs; 10 on an idle machine."""
DEEP_JAVA = "class A { int f() { " + "a<" * 15_000 + " } }"
"""2.3 GB and 16 s when it is parsed without limits."""
NUMBERS = ("9" * 5_000, "-1", "1e999", "NaN", "null", "[]", "{}", '"x"', "true", "0.5", "")
VERSION = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-06-18"}


@dataclass
class Target:
    """A server: how it starts, the question that must be answered, and requests that it must survive."""

    start: Callable[[Path, Path], AbstractContextManager[Served]]
    question: Callable[[httpx.Client], Any]
    poisons: Callable[[], Iterator[dict[str, Any]]]
    path: str


def ask_serve(client: httpx.Client) -> Any:
    return client.get("/api/search", params={"query": "hide soft keyboard"}).json()["hits"][0]


def ask_mcp(client: httpx.Client) -> Any:
    return call(client, "search_code", query="hide soft keyboard")["structuredContent"]["hits"][0]


def ask_annotate(client: httpx.Client) -> Any:
    return client.get("/api/next", params={"annotator": "ada"}).json()["pair"]["number"]


def call(client: httpx.Client, tool: str, **arguments: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return client.post("/mcp", json=body, headers=VERSION).json()["result"]


def serve_poisons() -> Iterator[dict[str, Any]]:
    yield {"method": "POST", "url": "/api/similar", "json": {"source": DEEP_JAVA, "source_language": "java"}}
    for value in NUMBERS:
        yield {"method": "GET", "url": f"/api/search?query=x&k={quote(value)}"}
        body = f'{{"query": "x", "k": {value}, "min_confidence": {value}}}'
        yield {"method": "POST", "url": "/api/search", "content": body, "headers": {"Content-Type": "application/json"}}
    for glob in ("*a" * 150, "[" * 300, "[!" * 150, "?" * 300, "\0", "*/" * 150, "[a-" * 100):
        yield {"method": "POST", "url": "/api/search", "json": {"query": "file", "path": glob, "repository": glob}}
    for text in ("a b " * 500, "aB" * 1_000, "keyboard " * 220, "(" * 2_000, "\u0300" * 2_000, "View.x" * 300, "\0"):
        yield {"method": "POST", "url": "/api/explain", "json": {"query": text, "k": 100, "marks": True}}
    filters = "&".join(f"path=a{number}" for number in range(1_000))
    yield {"method": "GET", "url": f"/api/search?query=x&{filters}"}
    yield {"method": "POST", "url": "/api/map/places", "json": {"ids": ["x"] * 20_000}}


def mcp_poisons() -> Iterator[dict[str, Any]]:
    def tool(name: str, **arguments: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return {"method": "POST", "url": "/mcp", "json": body, "headers": VERSION}

    yield tool("find_similar", code=DEEP_JAVA, code_language="java")
    values: tuple[Any, ...] = (10**4_000, -1, float("inf"), float("nan"), None, [], {}, "x", [[]] * 1_000)
    for value in values:
        content = json.dumps(tool("search_code", query="x", k=value)["json"])
        headers = {**VERSION, "Content-Type": "application/json"}
        yield {"method": "POST", "url": "/mcp", "content": content, "headers": headers}
    for glob in ("*a" * 500, "[" * 1_000, "\0"):
        yield tool("search_code", query="file", path=glob)
    for place in ("/dev/stdin:1", "../" * 1_000 + "etc/passwd:1", "x:" + "9" * 3_000, "\0:1", ":1"):
        yield tool("get_function", place=place)
    yield {"method": "GET", "url": "/mcp", "headers": VERSION}
    yield {"method": "POST", "url": "/mcp", "json": [INITIALIZE] * 1_000, "headers": VERSION}
    for _ in range(20):
        yield {"method": "POST", "url": "/mcp", "json": INITIALIZE, "headers": VERSION}


def annotate_poisons() -> Iterator[dict[str, Any]]:
    for value in NUMBERS:
        body = f'{{"annotator": "eve", "pair": {value}, "grade": {value}, "notes": "x"}}'
        yield {"method": "POST", "url": "/api/answer", "content": body, "headers": {"Content-Type": "application/json"}}
    for name in ("x" * 100_000, "\0", "\u202e", "a\nb"):
        yield {"method": "POST", "url": "/api/undo", "json": {"annotator": name}}
    answer = {"annotator": "eve", "pair": 1, "grade": 1, "notes": "x" * 10**6}
    yield {"method": "POST", "url": "/api/answer", "json": answer}


TARGETS = {
    "serve": Target(
        lambda demo, room: running(
            "serve", "-i", demo / ".ncs", "--port", "0", "--workers", "2", "--time-limit", str(TIME_LIMIT)
        ),
        ask_serve, serve_poisons, "/api/search",
    ),
    "mcp": Target(
        lambda demo, room: running("mcp", "--http", "--port", "0", "-i", demo / ".ncs"), ask_mcp, mcp_poisons, "/mcp"
    ),
    "annotate": Target(
        lambda demo, room: annotating(with_queries(demo / ".ncs", room)), ask_annotate, annotate_poisons, "/api/answer"
    ),
}  # fmt: skip


def raw_poisons(url: str, path: str) -> Iterator[bytes]:
    """Bytes that are no request, or lie about one."""
    host = urlsplit(url).netloc
    head = head_of(url, path)
    get = f"GET /health HTTP/1.1\r\nHost: {host}\r\n".encode()
    yield head + b"Content-Length: 1\r\n\r\n{}" + get + b"\r\n"
    yield head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"
    yield head + b"Content-Length: -1\r\n\r\n{}"
    yield head + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n{}"
    yield head + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n"
    yield head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n"
    yield head + b"Transfer-Encoding: gzip\r\n\r\n"
    yield head + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"
    yield get + b"X: y\r\n" * 5_000 + b"\r\n"
    yield get + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    yield get + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"GET / HTTP/1.0\r\n\r\n"
    yield b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    yield (get + b"\r\n") * 500
    yield b"\x16\x03\x01\x02\x00" + bytes(500)
    yield b"\0" * 1_000


def root(server: Served) -> str:
    """Its address without a path."""
    return server.url.removesuffix("/mcp")


@contextmanager
def control(target: Target, url: str) -> Iterator[list[float]]:
    """A client that asks again and again meanwhile; the seconds that every answer took."""
    seconds, stop, failures = list[float](), threading.Event(), list[str]()
    expected = None

    def ask() -> None:
        nonlocal expected
        with plain_client(base_url=url) as client:
            while not stop.wait(0.05):
                began = time.monotonic()
                try:
                    answer = target.question(client)
                    expected = expected or answer
                    if answer != expected:
                        failures.append(f"another answer: {answer}")
                except Exception as error:
                    failures.append(repr(error))
                seconds.append(time.monotonic() - began)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        until(lambda: seconds)
        yield seconds
        seen = len(seconds)
        until(lambda: len(seconds) > seen + 1)  # it is still answered
    finally:
        stop.set()
        thread.join()
    assert failures == []


def send(url: str, request: dict[str, Any]) -> int:
    """The status of an answer; 0 where the connection was closed instead."""
    with plain_client(base_url=url) as client, suppress(httpx.TransportError):
        return client.request(**request).status_code
    return 0


def family(server: Served) -> list[psutil.Process]:
    children: list[psutil.Process] = psutil.Process(server.process.pid).children(recursive=True)
    return children


def stop(server: Served, children: list[psutil.Process]) -> float:
    """Seconds from SIGTERM to the end; no process may be left."""
    children += family(server)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.wait()
    seconds = time.monotonic() - began
    _, alive = psutil.wait_procs(children, timeout=STOP)
    assert not alive, alive
    return seconds


@pytest.mark.parametrize("name", TARGETS)
def test_poison_of_one_client_delays_no_other_and_leaves_nothing_behind(name: str, demo: Path, tmp_path: Path) -> None:
    target = TARGETS[name]
    with target.start(demo, tmp_path) as server, ExitStack() as stack:
        url, process, children = root(server), psutil.Process(server.process.pid), family(server)
        drops = [stack.enter_context(connection_to(url)) for _ in range(300)]
        with control(target, url) as seconds:
            before = process.memory_info().rss
            for connection in drops:
                connection.sendall(head_of(url, target.path) + b"Content-Length: 100\r\n\r\n{")
            with ThreadPoolExecutor(4) as pool:
                statuses = list(pool.map(partial(send, url), target.poisons()))
                answers = list(pool.map(partial(exchange, url), raw_poisons(url, target.path)))
            assert b" 408 " in drops[-1].recv(1_000)  # the first were idle too long
            assert all(status < 500 or status in (503, 504) for status in statuses), statuses
            assert not any(b"HTTP/1.1 500" in answer for answer in answers), answers
        assert max(seconds) < TIME_LIMIT + REPLACEMENT
        assert process.memory_info().rss - before < 100 << 20
        assert len(family(server)) <= 4  # 2 that search, 1 that parses; the resource tracker
        assert stop(server, children) < STOP
        assert server.process.returncode == 0
    assert not [line for line in server.lines if "Traceback" in line], "".join(server.lines)


@pytest.mark.parametrize("name", ["serve", "mcp"])
def test_700_idle_connections_do_not_stop_a_server_and_it_stops_in_time_whatever_runs(
    name: str, demo: Path, tmp_path: Path
) -> None:
    target = TARGETS[name]
    with target.start(demo, tmp_path) as server, ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        url = root(server)
        with plain_client(base_url=url) as client:
            for number in range(700):  # 600 are allowed
                connection = stack.enter_context(connection_to(url))
                if number % 3:  # half a head; a whole request, then silence
                    get = b"GET /health HTTP/1.1\r\nHost: " + urlsplit(url).netloc.encode() + b"\r\n"
                    connection.sendall(get + (b"X: " if number % 3 == 1 else b"\r\n"))
            began = time.monotonic()
            assert target.question(client)
            assert time.monotonic() - began < TIME_LIMIT
            assert psutil.Process(server.process.pid).num_fds() < 500
        connection.sendall(head_of(url, target.path) + b"Content-Length: 9\r\n\r\n")
        futures = [pool.submit(send, url, next(target.poisons())) for _ in range(4)]
        time.sleep(1)
        assert stop(server, family(server)) < STOP
        assert server.process.returncode in (0, 128 + signal.SIGTERM)
        assert all(future.result() < 505 for future in futures)


def test_a_second_signal_stops_a_server_at_once(demo: Path, tmp_path: Path) -> None:
    target = TARGETS["serve"]
    with target.start(demo, tmp_path) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(send, server.url, next(target.poisons()))
        until(lambda: len(family(server)) >= 4)  # that which parses has started
        children = family(server)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: refuses(server))
        assert stop(server, children) < 5  # it would wait 6 for what runs
        assert server.process.returncode == 128 + signal.SIGTERM


def test_a_client_that_reads_no_answer_is_left(demo: Path) -> None:
    with TARGETS["serve"].start(demo, demo) as server, connection_to(server.url) as connection:
        host = urlsplit(server.url).netloc
        connection.sendall(f"GET /openapi.json HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 300)
        with plain_client(base_url=server.url) as client:
            assert ask_serve(client)
            until(lambda: "ncs_in_flight 2.0" in client.get("/metrics").text)  # that one, and this
        assert psutil.Process(server.process.pid).memory_info().rss < 300 << 20
