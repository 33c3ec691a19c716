"""The annotation page's server: guards as of `ncs serve`, bounds, and answers that outlive kill -9."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from evaluation.annotation.app import create_app
from evaluation.annotation.command import Request, open_session
from evaluation.annotation.judgments import Judgments
from ncs.serve.http.settings import Settings
from tests.annotating import Place, annotating
from tests.waiting import LONG, until

TOKEN = "0123456789abcdef0123"


@pytest.fixture
def client(at: Place) -> Iterator[TestClient]:
    with open_session(Request(at.index, at.queries, k=3), make=True) as (session, _):
        app = create_app(session, Settings({}))
        with TestClient(app, "http://localhost", raise_server_exceptions=False) as found:
            yield found


def shown(client: TestClient, annotator: str = "ada", **more: str) -> Any:
    return client.get("/api/next", params={"annotator": annotator, **more}).json()


def give(client: TestClient, state: Any, grade: int | None, annotator: str = "ada", **more: Any) -> Any:
    body = {"annotator": annotator, "pair": state["pair"]["number"], "grade": grade, **more}
    return client.post("/api/answer", json=body).json()


def test_all_pairs_are_judged_one_after_the_other(client: TestClient) -> None:
    size = client.get("/api/pool").json()["pairs"]
    state, seen = shown(client), list[int]()
    while state["pair"]:
        assert state["progress"]["judged"] == len(seen)
        seen.append(state["pair"]["number"])
        state = give(client, state, len(seen) % 4)
    assert sorted(seen) == list(range(1, size + 1))
    assert state["progress"] == {"judged": size, "skipped": 0, "of": size, "by_anybody": size}
    assert client.get("/api/pool").json()["annotators"] == {"ada": size}
    assert shown(client, "bob")["progress"]["judged"] == 0


def test_skipped_ones_come_back_with_their_note_and_undo_brings_the_last_back(client: TestClient) -> None:
    first = shown(client)
    second = give(client, first, None, notes=" what is this? ")
    assert second["pair"]["number"] != first["pair"]["number"]
    assert second["progress"]["skipped"] == 1
    third = give(client, second, 2, notes="good")
    back = client.post("/api/undo", json={"annotator": "ada"}).json()
    assert back["pair"] == {**second["pair"], "notes": "good", "grade": 2}
    back = client.post("/api/undo", json={"annotator": "ada"}).json()
    assert back["pair"] == {**first["pair"], "notes": "what is this?"}
    assert (back["undo"], back["progress"]["skipped"]) == (False, 0)
    assert client.post("/api/undo", json={"annotator": "ada"}).json()["error"]["code"] == "bad_input"
    assert third["undo"] is True


def test_a_language_shows_only_its_pairs(client: TestClient) -> None:
    languages = client.get("/api/pool").json()["languages"]
    assert set(languages) == {"java", "python"}
    state, count = shown(client, language="java"), 0
    while state["pair"]:
        assert state["pair"]["language"] == "java"
        state, count = give(client, state, 0, language="java"), count + 1
    assert count == languages["java"]
    assert shown(client, language="cobol")["error"]["message"] == "the pool has no cobol"


def test_rankers_and_paths_of_the_machine_are_not_told(client: TestClient, at: Place) -> None:
    answers = [
        client.get("/").text,
        client.get("/api/pool").text,
        str(shown(client)),
        str(give(client, shown(client), 0)),
    ]
    answers.append(client.get("/openapi.json").text)
    for text in answers:
        assert str(at.index.parent) not in text
        assert str(at.queries.parent) not in text
    assert not {"bm25", "hybrid"} & set(re.findall(r"\w+", " ".join(answers[2:4])))


@pytest.mark.parametrize(
    "body",
    [
        {"grade": 4}, {"grade": True}, {"grade": 1.0}, {"pair": 0}, {"pair": 10**9}, {"annotator": " \t"},
        {"annotator": "a\x00"}, {"annotator": "x" * 65}, {"annotator": "a\u202eb"}, {"notes": "x" * 2001},
        {"notes": "\ud800"}, {"more": 1}, {"notes": None},
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_in_one_line_and_nothing_is_kept(client: TestClient, body: dict[str, Any]) -> None:
    whole = {"annotator": "ada", "pair": 1, "grade": 1, "notes": "", **body}
    found = client.post("/api/answer", content=json.dumps(whole), headers={"content-type": "application/json"})
    assert found.status_code == 422
    assert set(found.json()["error"]) == {"code", "message", "remedy"}
    assert "\n" not in found.json()["error"]["message"]
    assert client.get("/api/pool").json()["annotators"] == {}


def test_without_a_grade_nothing_is_skipped_by_accident(client: TestClient) -> None:
    found = client.post("/api/answer", json={"annotator": "ada", "pair": 1})
    assert found.status_code == 422


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, "bad_host"),
        ({"origin": "http://evil.example"}, "bad_origin"),
        ({"sec-fetch-site": "same-site"}, "bad_origin"),
        ({"content-type": "text/plain"}, "not_json"),
    ],
)
def test_other_sites_cannot_answer(client: TestClient, headers: dict[str, str], code: str) -> None:
    body = b'{"annotator":"ada","pair":1,"grade":3}'
    found = client.post("/api/answer", content=body, headers={"content-type": "application/json", **headers})
    assert found.json()["error"]["code"] == code
    assert client.get("/api/pool").json()["annotators"] == {}


def test_the_page_runs_its_own_script_only(client: TestClient) -> None:
    found = client.get("/")
    allowed = found.headers["content-security-policy"]
    (script,) = re.findall(r"<script>(.*?)</script>", found.text, re.DOTALL)
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in allowed
    assert "default-src 'none'" in allowed
    assert "unsafe" not in allowed
    assert not re.findall(r"(?:src|href)=\"(?!data:,)", found.text)
    assert "innerHTML" not in found.text
    assert client.get("/api/pool").headers["x-frame-options"] == "DENY"


def test_with_a_token_only_the_page_is_open(at: Place) -> None:
    with open_session(Request(at.index, at.queries, k=1), make=True) as (session, _):
        client = TestClient(create_app(session, Settings({}), TOKEN), "http://localhost")
        assert client.get("/").status_code == 200
        assert client.get("/api/pool").json()["error"]["code"] == "no_token"
        assert client.get("/api/pool", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.slow
def test_every_confirmed_answer_outlives_kill_9(at: Place) -> None:
    moments, confirmed = random.Random(6), dict[tuple[str, int], tuple[int, str]]()
    for kill in range(3):
        with annotating(at, "-k", "10") as server:
            stop = threading.Event()

            def judge(name: str, url: str = server.url, stop: threading.Event = stop) -> None:
                with httpx.Client(base_url=url, timeout=LONG) as client:
                    while not stop.is_set():
                        try:
                            pair = client.get("/api/next", params={"annotator": name}).json()["pair"]
                            if pair is None:
                                return
                            number = pair["number"]
                            body = {"annotator": name, "pair": number, "grade": number % 4, "notes": name}
                            client.post("/api/answer", json=body).raise_for_status()
                        except httpx.TransportError:  # it is dead
                            return
                        confirmed[name, number] = (number % 4, name)

            with ThreadPoolExecutor(3) as pool:
                asked = [pool.submit(judge, f"annotator {kill} {n}") for n in range(3)]
                before = len(confirmed)
                until(lambda before=before: len(confirmed) > before)  # type: ignore[misc]
                time.sleep(moments.uniform(0, 0.1))
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
                stop.set()
            for each in asked:
                each.result()
    with closing(Judgments(at.database)) as judgments:
        kept = {(answer.annotator, answer.pair): (answer.grade, answer.notes) for answer in judgments.answers()}
    assert confirmed.items() <= kept.items()
    assert len(confirmed) >= 3
    assert len(kept) - len(confirmed) <= 3 * 3  # one a client and kill may be kept, its reply lost


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_line(at: Place) -> None:
    with annotating(at, "-k", "1") as server:
        port = server.url.rpartition(":")[2]
        command = [sys.executable, "-m", "ncs.cli", "annotate", str(at.index), str(at.queries), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ncs: cannot listen on 127.0.0.1 port {port}")
    assert done.stderr.count("\n") == 1
