"""The annotation page's server: guards as of `ncs serve`, bounds, and answers that outlive kill -9."""

from __future__ import annotations

import json
import random
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from evaluation.annotation.app import create_app
from evaluation.annotation.command import Request, open_session
from evaluation.annotation.judgments import Judgments
from ncs.serve.http.settings import Settings
from tests.evaluation.annotating import annotating
from tests.serving import plain_client
from tests.waiting import until

TOKEN = "0123456789abcdef0123"


@pytest.fixture
def client(at: Request) -> Iterator[TestClient]:
    with open_session(replace(at, k=3), make=True) as session:
        app = create_app(session, Settings({}))
        with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
            yield client


def next_state(client: TestClient, annotator: str = "ada", **more: str) -> Any:
    return client.get("/api/next", params={"annotator": annotator, **more}).json()


def answer(client: TestClient, state: Any, grade: int | None, **more: Any) -> Any:
    body = {"annotator": "ada", "pair": state["pair"]["number"], "grade": grade, **more}
    return client.post("/api/answer", json=body).json()


def undo(client: TestClient) -> Any:
    return client.post("/api/undo", json={"annotator": "ada"}).json()


@pytest.mark.parametrize("more", [{}, {"language": "java"}])
def test_all_pairs_of_a_language_are_judged_one_after_the_other(client: TestClient, more: dict[str, str]) -> None:
    pool = client.get("/api/pool").json()
    size = pool["languages"]["java"] if more else pool["pairs"]
    state, numbers = next_state(client, **more), list[int]()
    while state["pair"]:
        assert state["progress"]["judged"] == len(numbers)
        assert more.items() <= state["pair"].items()
        numbers.append(state["pair"]["number"])
        state = answer(client, state, len(numbers) % 4, **more)
    assert len(set(numbers)) == size
    assert state["progress"] == {"judged": size, "skipped": 0, "of": size, "by_anybody": size}
    assert client.get("/api/pool").json()["annotators"] == {"ada": size}
    assert next_state(client, "bob")["progress"]["judged"] == 0
    assert next_state(client, language="cobol")["error"]["message"] == "the pool has no cobol"


def test_skipped_pairs_come_back_with_their_note_judged_ones_with_undo_only(client: TestClient) -> None:
    first = next_state(client)
    second = answer(client, first, None, notes=" what is this? ")
    assert second["pair"]["number"] != first["pair"]["number"]
    assert second["progress"]["skipped"] == 1
    assert answer(client, second, 2, notes="good")["undo"] is True
    assert undo(client)["pair"] == {**second["pair"], "notes": "good", "grade": 2}
    back = undo(client)
    assert back["pair"] == {**first["pair"], "notes": "what is this?"}
    assert (back["undo"], back["progress"]["skipped"]) == (False, 0)
    answer(client, first, None)
    assert answer(client, first, 1)["progress"]["skipped"] == 0  # a skip that was judged later
    error = answer(client, first, 0)["error"]
    assert (error["code"], error["message"]) == ("judged_already", "you gave this one a 1 already, in another window")
    undo(client)
    undo(client)
    assert undo(client)["error"]["code"] == "bad_input"


def test_neither_rankers_nor_paths_of_the_machine_are_shown(client: TestClient, at: Request) -> None:
    states = str(next_state(client)) + str(answer(client, next_state(client), 0))
    pages = [client.get(path).text for path in ("/", "/api/pool", "/openapi.json")]
    for text in (*pages, states):
        assert str(at.index.parent) not in text
        assert str(at.queries.parent) not in text
    assert not {"bm25", "hybrid"} & set(re.findall(r"\w+", states))


@pytest.mark.parametrize(
    "body",
    [
        {"grade": 4}, {"grade": True}, {"grade": 1.0}, {"pair": 0}, {"pair": 10**9}, {"annotator": " \t"},
        {"annotator": "a\x00"}, {"annotator": "x" * 65}, {"annotator": "a\u202eb"}, {"notes": "x" * 2001},
        {"notes": "\ud800"}, {"more": 1}, {"notes": None}, {"grade": ...},
    ],
)  # fmt: skip
def test_an_invalid_answer_is_refused_in_one_line_and_not_stored(client: TestClient, body: dict[str, Any]) -> None:
    valid = {"annotator": "ada", "pair": 1, "grade": 1, "notes": ""}
    content = json.dumps({key: value for key, value in {**valid, **body}.items() if value is not ...})
    response = client.post("/api/answer", content=content, headers={"content-type": "application/json"})
    assert (response.status_code, set(response.json()["error"])) == (422, {"code", "message", "remedy"})
    assert "\n" not in response.json()["error"]["message"]
    assert client.get("/api/pool").json()["annotators"] == {}


def test_with_a_token_only_the_page_is_open_which_runs_its_own_script_only(at: Request) -> None:
    with open_session(replace(at, k=1), make=True) as session:
        client = TestClient(create_app(session, Settings({}), TOKEN), "http://localhost")
        assert "script-src 'sha256-" in client.get("/").headers["content-security-policy"]
        assert client.get("/api/pool").json()["error"]["code"] == "no_token"
        assert client.get("/api/pool", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_other_hosts_and_other_sites_pages_are_refused(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    body = {"annotator": "ada", "pair": 1, "grade": 1}
    assert client.post("/api/answer", json=body, headers=headers).status_code == status
    assert client.get("/api/pool").json()["annotators"] == ({"ada": 1} if status == 200 else {})


@pytest.mark.slow
def test_every_confirmed_answer_outlives_kill_9(at: Request) -> None:
    rng, confirmed = random.Random(6), dict[tuple[str, int], tuple[int, str]]()

    def judge(name: str, url: str) -> None:
        with plain_client(base_url=url) as client, suppress(httpx.TransportError):  # the server is killed
            while pair := client.get("/api/next", params={"annotator": name}).json()["pair"]:
                number = pair["number"]
                body = {"annotator": name, "pair": number, "grade": number % 4, "notes": name}
                client.post("/api/answer", json=body).raise_for_status()
                confirmed[name, number] = (number % 4, name)

    for kill in range(2):
        with annotating(at, "-k", "10") as server, ThreadPoolExecutor(3) as pool:
            before = len(confirmed)
            clients = [pool.submit(judge, f"annotator {kill} {n}", server.url) for n in range(3)]
            until(lambda before=before: len(confirmed) > before)  # type: ignore[misc]
            time.sleep(rng.uniform(0, 0.1))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            for each in clients:
                each.result()
    with closing(Judgments(at.file)) as judgments:
        stored = {(answer.annotator, answer.pair): (answer.grade, answer.notes) for answer in judgments.answers()}
    assert confirmed.items() <= stored.items()
    assert len(stored) - len(confirmed) <= 2 * 3  # one a client and kill may be stored, its reply lost
