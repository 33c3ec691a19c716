"""`ncs serve` as a process: rebuilds under load, damaged snapshots, stops, kills, slow and huge requests."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ncs.index import Index
from ncs.search.feedback import read_feedback
from ncs.serve.http.settings import MAX_BODY
from tests import corpus
from tests.serving import Served, own_port, served
from tests.waiting import LONG, put, until

pytestmark = pytest.mark.slow  # each starts a server
ASK = "/api/search?query=hide+soft+keyboard"


@pytest.fixture
def folder(demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo / ".ncs", tmp_path / "index"))


def get(server: Served, path: str, **more: Any) -> httpx.Response:
    return httpx.get(f"{server.url}{path}", timeout=LONG, **more)


def post(server: Served, path: str, body: object) -> httpx.Response:
    return httpx.post(f"{server.url}{path}", json=body, timeout=LONG)


def state(server: Served) -> dict[str, Any]:
    """What the server says of its only index."""
    (found,) = get(server, "/api/indexes").json()["indexes"]
    return dict(found)


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
        with httpx.Client(base_url=server.url, timeout=LONG) as client:
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


def test_rebuilds_replace_what_answers_and_no_request_fails(folder: Path, tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    with served("-i", folder) as server, asking(server) as got:
        until(lambda: got)
        for number in (2, 3):
            (tmp_path / "repos" / "tools" / f"new{number}.py").write_text(
                f"def brew_tea_{number}(leaves):\n    return 1\n"
            )
            before = state(server)["snapshot"]
            Index.build(tmp_path / "repos", folder).close()
            until(lambda before=before: state(server)["snapshot"] > before)  # type: ignore[misc]
        found = get(server, "/api/search", params={"query": "brew_tea_3"}).json()["hits"]
        assert found[0]["name"] == "brew_tea_3"
        until(lambda: sum(got.values()) > 20)
    assert set(got) == {"200 True"}


def test_a_damaged_snapshot_is_named_and_the_old_one_goes_on(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "snapshot.json").read_bytes()
    with served("-i", f"demo={folder}") as server:
        for damage in (b"{", whole.replace(b'"000001"', b'"000009"'), whole.replace(b'"format": 3', b'"format": 99')):
            assert damage != whole
            put(folder / "snapshot.json", damage, tmp_path)
            until(lambda: state(server)["problem"] is not None)
            assert "a newer snapshot cannot be opened" in state(server)["problem"]
            assert str(tmp_path) not in str(state(server))
            assert get(server, ASK).json()["hits"]
            assert 'ncs_index_problem{index="demo"} 1.0' in get(server, "/metrics").text
            put(folder / "snapshot.json", whole, tmp_path)
            until(lambda: state(server)["problem"] is None)
        until(lambda: sum("still serving" in line for line in server.lines) >= 3)
    told = [line for line in server.lines if "still serving" in line]
    assert len(told) == 3
    assert str(folder) in told[0]  # the log says where


def test_votes_survive_kill_9_and_the_server_starts_again_on_its_port(folder: Path, tmp_path: Path) -> None:
    votes = tmp_path / "votes.tsv"
    port = own_port()
    with served("-i", folder, "--feedback", votes, port=port) as server:
        id = get(server, ASK).json()["hits"][0]["id"]
        for number in range(20):
            body = {"query": f"question {number}", "id": id, "vote": "up"}
            assert post(server, "/api/feedback", body).status_code == 200
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(LONG)
    with votes.open("ab") as file:
        file.write(b"# torn")  # as a crash of the machine may leave it
    with served("-i", folder, "--feedback", votes, port=port) as server:
        body = {"query": "question 20", "id": id, "vote": "up"}
        assert post(server, "/api/feedback", body).status_code == 200
        assert get(server, ASK).json()["hits"]
    with Index.load(folder) as index:
        assert [one.text for one in read_feedback(votes, index.documents)] == [
            f"question {number}" for number in range(21)
        ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_that_is_being_answered_is_answered_before_the_server_stops(
    folder: Path, number: signal.Signals
) -> None:
    body = b'{"query": "hide soft keyboard"}'
    with served("-i", folder) as server:
        where = urlsplit(server.url)
        assert get(server, ASK).status_code == 200  # what a first search opens takes none of the time to stop
        with socket.create_connection((str(where.hostname), where.port or 0), LONG) as connection:
            head = f"POST /api/search HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
            until(lambda: "ncs_in_flight 2.0" in get(server, "/metrics").text)
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


def exchanged(server: Served, data: bytes) -> bytes:
    """What the server answers to these bytes, which it need not read to their end."""
    where = urlsplit(server.url)
    with socket.create_connection((str(where.hostname), where.port or 0), LONG) as connection:
        with suppress(ConnectionError):
            connection.sendall(data)
        try:
            return connection.recv(65_536)
        except ConnectionError:
            return b""


def head_of(server: Served) -> bytes:
    where = urlsplit(server.url).netloc
    return f"POST /api/search HTTP/1.1\r\nHost: {where}\r\nContent-Type: application/json\r\n".encode()


def test_a_body_that_does_not_come_is_refused_after_the_time_limit(folder: Path) -> None:
    with served("-i", folder, "--time-limit", "1") as server:
        said = exchanged(server, head_of(server) + b"Content-Length: 100\r\n\r\n{")
    assert said.startswith(b"HTTP/1.1 408")


def test_what_is_huge_or_no_http_is_refused_and_the_server_lives(folder: Path) -> None:
    with served("-i", folder) as server:
        sent, head = partial(exchanged, server), head_of(server)
        assert sent(head + b"Content-Length: 99999999999\r\n\r\n").startswith(b"HTTP/1.1 413")
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        huge = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * (MAX_BODY // 65_536 + 1)
        assert sent(huge).startswith(b"HTTP/1.1 413")
        assert sent(b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n")[:12] in (b"HTTP/1.1 400", b"")
        assert sent(b"\x16\x03\x01\x00\xff\x00" * 10 + b"\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert sent(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n").startswith(b"HTTP/1.1 403")
        target = "/%0d%0a%1b[31m\u202e".encode("latin-1", "replace")
        assert sent(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 40")
        assert get(server, ASK).status_code == 200
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
        assert get(server, ASK).status_code == 401
        assert get(server, "/health").status_code == 200
        assert get(server, ASK, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert token not in "".join(server.lines)


def test_what_cannot_be_served_is_said_in_one_line(folder: Path, tmp_path: Path) -> None:
    for arguments, said in (
        (["-i", str(tmp_path / "none")], "no index at"),
        (["-i", str(folder), "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
        (["-i", str(folder), "--token-file", str(tmp_path / "none")], "cannot read"),
    ):
        with pytest.raises(RuntimeError, match=said) as error, served(*arguments):
            pass
        assert len(str(error.value).splitlines()) == 1


def test_searching_processes_that_are_killed_are_replaced_and_none_outlives_the_server(folder: Path) -> None:
    with served("-i", folder, "--workers", "2") as server:
        until(lambda: len(_children(server.process.pid)) >= 2)
        for _ in range(2):
            with asking(server) as got:
                until(lambda got=got: sum(got.values()) > 20)  # type: ignore[misc]
                for child in _children(server.process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
                got.clear()
                until(lambda got=got: sum(got.values()) > 20)  # type: ignore[misc]
            assert set(got) == {"200 True"}, "".join(server.lines)
        until(lambda: "a search process died" in "".join(server.lines))
        children = _children(server.process.pid)
        server.process.kill()
        until(lambda: not any(_state(Path(f"/proc/{child}"))[0] not in "XZ" for child in children))


def _children(pid: int) -> list[int]:
    """Processes that search for a server."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = _state(process)
            if parent == pid and state not in "XZ" and b"spawn_main" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def _state(process: Path) -> tuple[str, int]:
    """A letter, X where there is none any more, and who started it."""
    try:
        state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return "X", 0
    return state, int(parent)
