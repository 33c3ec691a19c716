"""`ncs serve` as a process: rebuilds under load, damaged snapshots, stops, kills, slow and huge requests."""

from __future__ import annotations

import json
import re
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from ncs.index import Index
from ncs.search.feedback import read_feedback
from ncs.serve.http.service import _initialize
from ncs.serve.http.settings import MAX_BODY, Settings
from ncs.workers import Workers
from tests import corpus
from tests.command import invoke
from tests.serving import (
    Served,
    connection_to,
    exchange,
    head_of,
    own_port,
    plain_client,
    plain_get,
    plain_post,
    refuses,
    served,
)
from tests.waiting import LONG, put, until

pytestmark = pytest.mark.slow  # each starts a server
SEARCH = "/api/search?query=hide+soft+keyboard"


@pytest.fixture
def folder(demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo / ".ncs", tmp_path / "index"))


def test_what_answers_is_imported_before_the_first_request_is_timed(demo: Path) -> None:
    arguments = Settings({"demo": demo / ".ncs"}), {"demo": None}, 1 << 30
    with Workers(1, initialize=_initialize, arguments=arguments) as workers:
        assert workers.submit(eval, "'ncs.serve.http.api' in __import__('sys').modules").result(LONG)


def get(server: Served, path: str, **more: Any) -> httpx.Response:
    return plain_get(f"{server.url}{path}", **more)


@pytest.fixture(scope="module")
def standing(demo: Path) -> Iterator[Served]:
    """A server for tests that leave it as it was."""
    with served("-i", demo / ".ncs") as server:
        yield server


def test_head_has_the_status_and_the_headers_of_get_and_no_body(standing: Served) -> None:
    for path, status in (("/", 200), (SEARCH, 200), ("/health", 200), ("/nowhere", 404), ("/api/feedback", 405)):
        whole, head = get(standing, path), httpx.head(f"{standing.url}{path}", timeout=LONG, verify=False)
        changing = ("date", "x-request-id")
        expected, headers = (
            {name: value for name, value in each.headers.items() if name not in changing} for each in (whole, head)
        )
        assert (head.status_code, headers, head.content) == (status, expected, b""), path
        assert int(headers["content-length"]) == len(whole.content) > 0


def vote(server: Served, query: str, id: str) -> None:
    body = {"query": query, "id": id, "vote": "up"}
    assert plain_post(f"{server.url}/api/feedback", json=body).status_code == 200


def state(server: Served) -> dict[str, Any]:
    """The state of its only index."""
    (index,) = get(server, "/api/indexes").json()["indexes"]
    return dict(index)


def outcome(client: httpx.Client) -> str:
    """A search's status and whether it has hits, or what went wrong."""
    try:
        answer = client.get(SEARCH)
        return f"{answer.status_code} {bool(answer.json().get('hits'))}"
    except httpx.HTTPError as error:
        return repr(error)


@contextmanager
def clients(server: Served, n: int = 4) -> Iterator[Counter[str]]:
    """Clients that search all the time meanwhile; how often each outcome."""
    outcomes, stop = Counter[str](), threading.Event()

    def search() -> None:
        with plain_client(base_url=server.url) as client:
            while not stop.wait(0.01):
                outcomes[outcome(client)] += 1

    with ThreadPoolExecutor(n) as pool:
        futures = [pool.submit(search) for _ in range(n)]
        try:
            yield outcomes
        finally:
            stop.set()
    for future in futures:
        future.result()


def test_rebuilds_replace_what_answers_and_no_request_fails(folder: Path, tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    with served("-i", folder) as server, clients(server) as outcomes:
        until(lambda: outcomes)
        for number in (2, 3):
            file = tmp_path / "repos" / "tools" / f"new{number}.py"
            file.write_text(f"def brew_tea_{number}(leaves):\n    return 1\n")
            before = state(server)["snapshot"]
            Index.build(tmp_path / "repos", folder).close()
            until(lambda before=before: state(server)["snapshot"] > before)  # type: ignore[misc]
        hits = get(server, "/api/search", params={"query": "brew_tea_3"}).json()["hits"]
        assert hits[0]["name"] == "brew_tea_3"
        until(lambda: sum(outcomes.values()) > 20)
    assert set(outcomes) == {"200 True"}


def test_a_damaged_snapshot_is_named_and_the_old_one_goes_on(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "snapshot.json").read_bytes()
    with served("-i", f"demo={folder}") as server:
        for damage in (b"{", whole.replace(b'"000001"', b'"000009"'), whole.replace(b'"format": 3', b'"format": 99')):
            assert damage != whole
            put(folder / "snapshot.json", damage, tmp_path)
            until(lambda: state(server)["problem"] is not None)
            assert "a newer snapshot cannot be opened" in state(server)["problem"]
            assert str(tmp_path) not in str(state(server))
            for process in (kills := search_processes(server)):
                process.kill()
            until(lambda kills=kills: not any(map(searches, kills)))  # type: ignore[misc]
            until(lambda: "hits" in get(server, SEARCH).json())  # of a process that has never seen the snapshot whole
            assert 'ncs_index_problem{index="demo"} 1.0' in get(server, "/metrics").text
            put(folder / "snapshot.json", whole, tmp_path)
            until(lambda: state(server)["problem"] is None)
        until(lambda: sum("still serving" in line for line in server.lines) >= 3)
    log = [line for line in server.lines if "still serving" in line]
    assert len(log) == 3
    assert str(folder) in log[0]


def test_votes_survive_kill_9_and_the_server_starts_again_on_its_port(folder: Path, tmp_path: Path) -> None:
    votes, port = tmp_path / "votes.tsv", own_port()
    with served("-i", folder, "--feedback", votes, port=port) as server:
        id = get(server, SEARCH).json()["hits"][0]["id"]
        for number in range(20):
            vote(server, f"question {number}", id)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(LONG)
    with votes.open("ab") as file:
        file.write(b"# torn")  # as a crash of the machine may leave it
    with served("-i", folder, "--feedback", votes, port=port) as server:
        vote(server, "question 20", id)
        assert get(server, SEARCH).json()["hits"]
    with Index.load(folder) as index:
        texts = [one.text for one in read_feedback(votes, index.documents)]
    assert texts == [f"question {number}" for number in range(21)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_that_is_being_answered_is_answered_before_the_server_stops(
    folder: Path, number: signal.Signals
) -> None:
    body = b'{"query": "hide soft keyboard"}'
    with served("-i", folder) as server:
        assert get(server, SEARCH).status_code == 200  # what a first search opens takes none of the time to stop
        with connection_to(server.url) as connection:
            connection.sendall(
                head_of(server.url, "/api/search") + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:10]
            )
            until(lambda: "ncs_in_flight 2.0" in get(server, "/metrics").text)
            server.process.send_signal(number)
            until(lambda: refuses(server))
            connection.sendall(body[10:])
            answer = b""
            while piece := connection.recv(65_536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["hits"]
        assert server.wait() == 0
    assert "ncs: stopped\n" in server.lines
    assert not [line for line in server.lines if "Traceback" in line]


def test_what_is_huge_or_no_http_is_refused_and_the_server_lives(standing: Served) -> None:
    send, head = partial(exchange, standing.url), head_of(standing.url, "/api/search")
    assert send(head + b"Content-Length: 99999999999\r\n\r\n").startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    huge = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * (MAX_BODY // 65_536 + 1)
    assert send(huge).startswith(b"HTTP/1.1 413")
    assert send(b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n")[:12] in (b"HTTP/1.1 400", b"")
    assert send(b"\x16\x03\x01\x00\xff\x00" * 10 + b"\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert send(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n").startswith(b"HTTP/1.1 403")
    health = head.replace(b"POST /api/search", b"GET /health") + b"Transfer-Encoding: chunked\r\n\r\n"
    assert send(health + b"x\r\n").startswith(b"HTTP/1.1 400")
    with connection_to(standing.url) as connection:
        connection.sendall(health)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"x\r\n")  # what comes too late to refuse it
        assert exchange(standing.url, health + b"x\r\n").startswith(b"HTTP/1.1 400")
    target = "/%0d%0a%1b[31m\u202e".encode("latin-1", "replace")
    assert send(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 40")
    assert get(standing, SEARCH).status_code == 200
    assert get(standing, "/api/document?id=none").status_code == 404  # said by a search process
    until(lambda: "/api/document 404" in standing.lines[-1])
    log = [line for line in standing.lines if re.search(r" [0-9a-f]{12} 127\.0\.0\.1 ", line)]
    assert any(re.search(r" GET /api/search 200 \d+\.\dms \d+B$", line.rstrip()) for line in log)
    assert any(" 413 " in line for line in log)
    assert "Traceback" not in "".join(standing.lines)
    assert all(line.rstrip("\n").isprintable() for line in log)
    assert "hide" not in "".join(log)  # nobody's queries


def test_a_server_that_cannot_start_says_why_in_one_line(folder: Path, tmp_path: Path) -> None:
    for arguments, reason in (
        (["-i", str(tmp_path / "none")], "no index at"),
        (["-i", str(folder), "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
        (["-i", str(folder), "--token-file", str(tmp_path / "none")], "cannot read"),
    ):
        run = invoke("serve", "--port", "0", *arguments, cwd=tmp_path)
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
        assert reason in run.stderr


def test_search_processes_that_are_killed_are_replaced_and_none_outlives_the_server(folder: Path) -> None:
    with served("-i", folder, "--workers", "2") as server:
        until(lambda: len(search_processes(server)) >= 2)
        for _ in range(2):
            with clients(server) as outcomes:
                until(lambda outcomes=outcomes: sum(outcomes.values()) > 20)  # type: ignore[misc]
                kills = search_processes(server)
                for process in kills:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                end = sum(outcomes.values()) + 40
                until(lambda outcomes=outcomes, end=end: sum(outcomes.values()) > end)  # type: ignore[misc]
            assert set(outcomes) <= {"200 True", "503 False"}, "".join(server.lines)
            assert outcomes["503 False"] <= len(kills)  # what a killed process did is not tried again, and nothing else
        until(lambda: "a search process died" in "".join(server.lines))
        orphans = search_processes(server)
        server.process.kill()
        until(lambda: not any(map(searches, orphans)))


def search_processes(server: Served) -> list[psutil.Process]:
    return [process for process in psutil.Process(server.process.pid).children() if searches(process)]


def searches(process: psutil.Process) -> bool:
    """Whether it is a search process, and has not ended."""
    with suppress(psutil.Error):
        return "spawn_main" in str(process.cmdline())
    return False
