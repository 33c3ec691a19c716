"""`ncs serve` as a process: rebuilds under load, damaged generations, stops, kills, slow and huge requests."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from ncs.feedback import read_feedback
from ncs.index import Index
from ncs.server.settings import MOST_BODY
from tests import corpus
from tests.serving import Served, served

ASK = "/api/search?query=hide+soft+keyboard"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "index").close()
    return tmp_path / "index"


def generation(server: Served) -> int:
    found = httpx.get(f"{server.url}/api/indexes").json()["indexes"][0]["generation"]
    return int(found)


def until(true: object, seconds: float = 60) -> None:
    """Wait until a function says so."""
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def outcome(client: httpx.Client) -> str:
    """A search's status and whether it found anything, or what went wrong."""
    try:
        answer = client.get(ASK)
        found = answer.json()
        return f"{answer.status_code} {found['error']['code'] if 'error' in found else bool(found['hits'])}"
    except httpx.HTTPError as error:
        return repr(error)


@contextmanager
def asking(server: Served, clients: int = 4) -> Iterator[Counter[str]]:
    """Clients that search all the time meanwhile: what they got -> how often."""
    got, stop = Counter[str](), threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            while not stop.is_set():
                got[outcome(client)] += 1

    with ThreadPoolExecutor(clients) as pool:
        asked = [pool.submit(ask) for _ in range(clients)]
        try:
            yield got
        finally:
            stop.set()
    for each in asked:
        each.result()


@pytest.mark.slow
def test_rebuilds_replace_what_answers_and_no_request_fails(folder: Path, tmp_path: Path) -> None:
    with served("-i", folder) as server, asking(server) as got:
        until(lambda: got)
        for number in (2, 3):
            (tmp_path / "repos" / "tools" / f"new{number}.py").write_text(
                f"def brew_tea_{number}(leaves):\n    return 1\n"
            )
            Index.build(tmp_path / "repos", folder).close()
            until(lambda number=number: generation(server) == number)
        found = httpx.get(f"{server.url}/api/search", params={"query": "brew_tea_3"}).json()["hits"]
        assert found[0]["name"] == "brew_tea_3"
    assert set(got) == {"200 True"}
    assert got["200 True"] > 20
    kept = [path.name for path in folder.glob("data-*")]
    assert "data-3" in kept


@pytest.mark.slow
def test_a_damaged_generation_is_named_and_the_old_one_goes_on(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "manifest.json").read_bytes()
    with served("-i", f"demo={folder}") as server:
        for damage in (b"{", whole.replace(b"data-1", b"data-9"), whole.replace(b'"format": 2', b'"format": 99')):
            assert damage != whole
            (folder / "manifest.json").write_bytes(damage)
            state: dict[str, object] = {}

            def named(state: dict[str, object] = state) -> bool:
                state.update(httpx.get(f"{server.url}/api/indexes").json()["indexes"][0])
                return state["problem"] is not None

            until(named)
            assert "a newer generation cannot be opened" in str(state["problem"])
            assert str(tmp_path) not in str(state)
            assert httpx.get(f"{server.url}{ASK}").json()["hits"]
            assert 'ncs_index_problem{index="demo"} 1.0' in httpx.get(f"{server.url}/metrics").text
            (folder / "manifest.json").write_bytes(whole)
            until(lambda: httpx.get(f"{server.url}/api/indexes").json()["indexes"][0]["problem"] is None)
        told = [line for line in server.lines if "goes on answering" in line]
    assert len(told) == 3
    assert str(folder) in told[0]  # the log says where


def test_votes_survive_kill_9_and_the_server_starts_again_on_its_port(folder: Path, tmp_path: Path) -> None:
    votes = tmp_path / "votes.tsv"
    with served("-i", folder, "--feedback", votes) as server:
        port = urlsplit(server.url).port or 0
        id = httpx.get(f"{server.url}{ASK}").json()["hits"][0]["id"]
        for number in range(20):
            body = {"query": f"question {number}", "id": id, "vote": "up"}
            assert httpx.post(f"{server.url}/api/feedback", json=body).status_code == 200
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(30)
    with votes.open("ab") as file:
        file.write(b"# torn")  # as a crash of the machine may leave it
    with served("-i", folder, "--feedback", votes, port=port) as server:
        body = {"query": "question 20", "id": id, "vote": "up"}
        assert httpx.post(f"{server.url}/api/feedback", json=body).status_code == 200
        assert httpx.get(f"{server.url}{ASK}").json()["hits"]
    with Index.load(folder) as index:
        assert [one.text for one in read_feedback(votes, index.store)] == [f"question {number}" for number in range(21)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_that_is_being_answered_is_answered_before_the_server_stops(
    folder: Path, number: signal.Signals
) -> None:
    body = b'{"query": "hide soft keyboard"}'
    with served("-i", folder, "--time-limit", "60") as server:
        where = urlsplit(server.url)
        with socket.create_connection((str(where.hostname), where.port or 0), 60) as connection:
            head = f"POST /api/search HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
            until(lambda: "ncs_in_flight 2.0" in httpx.get(f"{server.url}/metrics").text)
            server.process.send_signal(number)
            until(lambda: _refuses(where.port or 0))
            connection.sendall(body[10:])
            answer = b""
            while piece := connection.recv(65_536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 200")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["hits"]
        assert server.ended() == 0
    assert "ncs: stopped\n" in server.lines
    assert not [line for line in server.lines if "Traceback" in line]


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return True
    return False


def test_what_is_huge_slow_or_no_http_is_refused_and_the_server_lives(folder: Path) -> None:
    with served("-i", folder, "--time-limit", "3") as server:
        where = urlsplit(server.url)

        def sent(data: bytes) -> bytes:
            with socket.create_connection((str(where.hostname), where.port or 0), 30) as connection:
                try:
                    connection.sendall(data)
                    return connection.recv(65_536)
                except ConnectionError:
                    return b""

        head = f"POST /api/search HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n".encode()
        assert sent(head + b"Content-Length: 99999999999\r\n\r\n").startswith(b"HTTP/1.1 413")
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        huge = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * (MOST_BODY // 65_536 + 1)
        assert sent(huge).startswith(b"HTTP/1.1 413")
        assert sent(head + b"Content-Length: 100\r\n\r\n{").startswith(b"HTTP/1.1 408")
        assert sent(b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n")[:12] in (b"HTTP/1.1 400", b"")
        assert sent(b"\x16\x03\x01\x00\xff\x00" * 10 + b"\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert sent(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n").startswith(b"HTTP/1.1 403")
        target = "/%0d%0a%1b[31m\u202e".encode("latin-1", "replace")
        assert sent(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 40")
        assert httpx.get(f"{server.url}{ASK}", timeout=60).status_code == 200
        server.process.terminate()
        server.ended()
    log = [line for line in server.lines if re.search(r" [0-9a-f]{12} 127\.0\.0\.1 ", line)]
    assert any(re.search(r" GET /api/search 200 \d+\.\dms \d+B$", line.rstrip()) for line in log)
    assert any(" 413 " in line for line in log)
    assert all(line.rstrip("\n").isprintable() for line in log)
    assert "hide" not in "".join(log)  # nobody's questions


def test_a_token_closes_the_server_but_not_its_health(folder: Path) -> None:
    token = "0123456789abcdef0123"
    with served("-i", folder, token=token) as server:
        assert httpx.get(f"{server.url}{ASK}").status_code == 401
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert httpx.get(f"{server.url}{ASK}", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert token not in "".join(server.lines)


def test_what_cannot_be_served_is_said_in_one_line(folder: Path, tmp_path: Path) -> None:
    for arguments, said in (
        (["-i", str(tmp_path / "none")], "no index at"),
        (["-i", str(folder), "-i", str(folder)], "two indexes are called"),
        (["-i", str(folder), "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
        (["-i", str(folder), "--token-file", str(tmp_path / "none")], "cannot read"),
    ):
        with pytest.raises(RuntimeError, match=said) as error, served(*arguments):
            pass
        assert len(str(error.value).splitlines()) == 1


@pytest.mark.slow
def test_searching_processes_that_are_killed_are_replaced_and_none_outlives_the_server(folder: Path) -> None:
    with served("-i", folder, "--workers", "2") as server:
        children = _children(server.process.pid)
        assert len(children) >= 2
        for _ in range(2):
            with asking(server) as got:
                until(lambda got=got: sum(got.values()) > 20)
                for child in _children(server.process.pid):
                    os.kill(child, signal.SIGKILL)
                got.clear()
                until(lambda got=got: sum(got.values()) > 20)
            assert set(got) == {"200 True"}, "".join(server.lines)
        assert "a searching process ended" in "".join(server.lines)
        children = _children(server.process.pid)
        server.process.kill()
        until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def _children(pid: int) -> list[int]:
    """Processes that search for a server."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            command = stat.with_name("cmdline").read_bytes()
            if int(parent) == pid and state != "Z" and b"spawn_main" in command:
                found.append(int(stat.parent.name))
    return found
