"""The HTTP API answers as the terminal does, keeps its limits, and shows nothing of the machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from ncs.cli.main import app as cli
from ncs.index import Index
from ncs.search.feedback import read_feedback
from ncs.serve.http.app import create_app
from ncs.serve.http.schemas import HitResponse, HitsResponse, IndexResponse
from ncs.serve.http.settings import MAX_BODY, MAX_K, MAX_QUERY, Settings
from tests import corpus
from tests.waiting import LONG, until

KEYBOARD = "app/src/Keyboards.java"


@pytest.fixture(scope="module")
def folder(demo: Path) -> Path:
    return demo / ".ncs"


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("votes") / "votes.tsv"


@pytest.fixture(scope="module")
def client(folder: Path, votes: Path) -> Iterator[TestClient]:
    settings = Settings({"demo": folder}, {"demo": votes})
    with TestClient(create_app(settings), "http://localhost", raise_server_exceptions=False) as found:
        yield found


def printed(folder: Path, *arguments: str) -> Any:
    found = CliRunner().invoke(cli, [*arguments, "--json", "-i", str(folder)])
    return {**json.loads(found.stdout), "index": "demo"}


def error_of(answer: Any) -> dict[str, str]:
    """The error of an answer that is one, of the one shape."""
    found = answer.json()
    assert set(found) == {"error"}
    assert set(found["error"]) == {"code", "message", "remedy"}
    for value in found["error"].values():
        assert isinstance(value, str)
        assert value
        assert value.isprintable()
    error: dict[str, str] = found["error"]
    return error


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ((), {}),
        (("-k", "2", "--no-code"), {"k": 2, "code": False}),
        (("--ranker", "bm25", "--language", "java"), {"ranker": "bm25", "language": "java"}),
        (("--repository", "copy", "--unfold"), {"repository": "copy", "unfold": True}),
        (("--path", "src", "--min-confidence", "0.01"), {"path": "src", "min_confidence": 0.01}),
        (("--kind", "Class", "-k", "50"), {"kind": "Class", "k": 50}),
        (("--explain", "-k", "3"), {"explain": True, "k": 3}),
        (("--explain", "--functions-only"), {"explain": True, "functions_only": True}),
    ],
)
def test_search_answers_what_the_terminal_prints(
    client: TestClient, folder: Path, options: tuple[str, ...], parameters: dict[str, Any]
) -> None:
    expected = printed(folder, "query", "hide soft keybord", *options)
    asked = {"query": "hide soft keybord", **parameters}
    assert client.post("/api/search", json=asked).json() == expected
    got = client.get("/api/search", params={key: str(value) for key, value in asked.items()})
    assert got.json() == expected
    if parameters.get("explain"):
        del asked["explain"]
        assert client.post("/api/explain", json=asked).json() == expected
        assert client.get("/api/explain", params={key: str(value) for key, value in asked.items()}).json() == expected


def test_similar_words_and_info_answer_what_the_terminal_prints(client: TestClient, folder: Path) -> None:
    source = (corpus.DEMO / KEYBOARD.replace("app/src", "app")).read_text()
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "hideSoftInput" in text)
    asked = {"source": source, "source_language": "java", "line": line}
    answer = client.post("/api/similar", json=asked).json()
    expected = printed(folder, "similar", f"{corpus.DEMO / KEYBOARD.replace('app/src', 'app')}:{line}")
    assert answer["hits"] == expected["hits"]
    assert answer["function"]["qualified_name"] == expected["function"]["qualified_name"]
    assert client.get("/api/words", params={"word": "keyboard", "n": 3}).json() == {
        key: value for key, value in printed(folder, "words", "keyboard", "-n", "3").items() if key != "index"
    }
    info = client.get("/api/info").json()
    expected = printed(folder, "info")
    assert {key: info[key] for key in ("documents", "languages", "repositories", "kinds", "created")} == {
        key: expected[key] for key in ("documents", "languages", "repositories", "kinds", "created")
    }


def test_similar_by_id_leaves_out_the_document_itself(client: TestClient) -> None:
    top = client.get("/api/search", params={"query": "hide soft keyboard", "k": 1}).json()["hits"][0]
    by_id = client.get("/api/similar", params={"id": top["id"]}).json()
    assert by_id["function"]["qualified_name"] == top["qualified_name"]
    places = {(hit["repository"], hit["path"], hit["start_line"]) for hit in by_id["hits"]}
    assert (top["repository"], top["path"], top["start_line"]) not in places


def test_answers_have_the_shapes_that_openapi_describes(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    paths = {"/api/search", "/api/explain", "/api/similar", "/api/document", "/api/words", "/api/info", "/api/indexes"}
    paths |= {"/api/map", "/api/map/places"}
    assert paths | {"/api/feedback", "/health", "/ready", "/metrics"} == set(described["paths"])
    for path, methods in described["paths"].items():
        for route in methods.values():
            if path.startswith("/api"):
                assert route["responses"]["200"]["content"]["application/json"]["example"]
    answer = client.get("/api/search", params={"query": "hide soft keyboard"}).json()
    assert set(answer) == set(HitsResponse.model_fields)
    assert set(answer["hits"][0]) == set(HitResponse.model_fields)
    HitsResponse.model_validate(answer, strict=True)
    assert set(client.get("/api/indexes").json()["indexes"][0]) == set(IndexResponse.model_fields)


@pytest.mark.parametrize(
    ("path", "parameters", "said"),
    [
        ("/api/search", {}, "query"),
        ("/api/search", {"query": ""}, "query"),
        ("/api/search", {"query": "x" * (MAX_QUERY + 1)}, "query"),
        ("/api/search", {"query": "x", "k": 0}, "k"),
        ("/api/search", {"query": "x", "k": MAX_K + 1}, "k"),
        ("/api/search", {"query": "x", "k": "ten"}, "k"),
        ("/api/search", {"query": "x", "kk": 1}, "kk"),
        ("/api/search", {"query": "x", "ranker": "no"}, "no ranker called 'no'"),
        ("/api/search", {"query": "x", "ranker": "two_field"}, "built without 'two_field'"),
        ("/api/search", {"query": "keyboard", "ranker": "bm25", "min_confidence": 0.5}, "no confidence"),
        ("/api/search", {"query": "x", "min_confidence": 2}, "min_confidence"),
        ("/api/search", {"query": "x", "language": "y" * 100}, "language"),
        ("/api/words", {"word": "x", "n": 1000}, "n"),
        ("/api/similar", {"id": ""}, "id"),
    ],
)
def test_a_parameter_out_of_bounds_is_refused_in_one_line(
    client: TestClient, path: str, parameters: dict[str, Any], said: str
) -> None:
    answer = client.get(path, params=parameters)
    assert answer.status_code == 422
    assert said in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b"[" * 100_000, 422),
        (b'{"query": ["a"]}', 422),
        (b'{"query": "a", "k": 1e400}', 422),
        (b'{"query": "a", "k": NaN}', 422),
        (b'{"query": "a", "k": true, "explain": {}}', 422),
        (b'{"query": "\\ud800"}', 422),
        (b"\xff\xfe\x00", 422),
        (b'{"query": "a", "__class__": "x"}', 422),
        (b'{"query": "' + b"a" * MAX_BODY + b'"}', 413),
        (b'{"query": "hide\\u0000keyboard\\u202egro"}', 200),
        (b'{"query": "\\u202e\\u2066\\u0007"}', 200),
        ('{"query": "\U0001f600 ключ 键盘"}'.encode(), 200),
        (b'{"query": "%s %n {0} <script>", "path": "../../etc", "repository": "[", "language": "\\u0000"}', 200),
        (b'{"query": "a", "path": "[[[[***?", "repository": "\\u202e"}', 200),
    ],
)
def test_hostile_bodies_get_an_answer_of_the_right_kind(client: TestClient, body: bytes, status: int) -> None:
    answer = client.post("/api/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    if status != 200:
        error_of(answer)
    else:
        assert answer.json()["query"] == json.loads(body)["query"]


@pytest.mark.parametrize(
    "id", ["../../../etc/passwd:1", "a:1\x00b", "app/src/../src/Keyboards.java:1", ":", ":1" * 900]
)
def test_an_unknown_id_is_not_found(client: TestClient, id: str) -> None:
    for path in ("/api/document", "/api/similar"):
        answer = client.get(path, params={"id": id})
        assert answer.status_code == 404
        assert error_of(answer)["code"] == "no_document"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "either id or source"),
        ({"id": "a:1", "source": "x"}, "either id or source"),
        ({"source": "x"}, "needs source_language"),
        ({"source": "x", "source_language": "klingon"}, "klingon"),
        ({"source": "x = 1", "source_language": "python"}, "no function in the source"),
        ({"source": "def f():\n  pass\n", "source_language": "python", "line": 9}, "line 9 of the source"),
    ],
)
def test_code_without_a_function_is_refused(client: TestClient, body: dict[str, Any], said: str) -> None:
    answer = client.post("/api/similar", json=body)
    assert answer.status_code == 422
    assert said in error_of(answer)["message"]


def test_no_answer_holds_a_path_of_the_machine(client: TestClient, folder: Path) -> None:
    targets = [
        "search?query=keyboard&explain=true",
        "info",
        "indexes",
        "search?query=x&ranker=two_field",
        "info?index=x",
    ]
    for target in ("/", f"/{folder}", "/ready", "/openapi.json", "/metrics", *(f"/api/{each}" for each in targets)):
        answer = client.get(target)
        assert str(folder.parent) not in answer.text
        assert str(folder.parent) not in str(answer.headers)


def test_unknown_paths_methods_words_and_indexes_are_errors_of_the_same_shape(client: TestClient) -> None:
    answers = [
        (client.get("/nope"), 404, "no_path"),
        (client.delete("/api/search"), 405, "no_method"),
        (client.post("/health", json={}), 405, "no_method"),
        (client.get("/api/words", params={"word": "keybord"}), 404, "no_word"),
        (client.get("/api/search", params={"query": "x", "index": "other"}), 404, "no_index"),
        (client.post("/api/search", content=b"query=x"), 415, "not_json"),
        (client.get("/api/search?query=" + "x" * 20_000), 414, "too_long"),
    ]
    for answer, status, code in answers:
        assert (answer.status_code, error_of(answer)["code"]) == (status, code)
    assert "keyboard" in error_of(answers[3][0])["remedy"]


def test_every_answer_has_strict_headers_and_an_id_of_its_own(client: TestClient) -> None:
    answers = [client.get(path) for path in ("/health", "/nope", "/api/search?query=x", "/api/search")]
    for answer in answers:
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
    assert len({answer.headers["x-request-id"] for answer in answers}) == len(answers)


def test_metrics_count_requests_by_path_and_status(client: TestClient) -> None:
    def value(name: str) -> float:
        lines = client.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    good, bad = (
        'ncs_requests_total{path="/api/words",status="200"}',
        'ncs_requests_total{path="/api/words",status="422"}',
    )
    before = value(good), value(bad), value('ncs_request_seconds_count{path="/api/words"}')
    for n in (1, 2, 1000):
        client.get("/api/words", params={"word": "keyboard", "n": n})
    client.get("/made/up/label")
    after = value(good), value(bad), value('ncs_request_seconds_count{path="/api/words"}')
    assert [a - b for a, b in zip(after, before, strict=True)] == [2, 1, 3]
    assert value('ncs_index_snapshot{index="demo"}') == client.get("/api/info").json()["snapshot"]
    assert value("ncs_in_flight") == 1  # the one that asks
    assert "made" not in client.get("/metrics").text


def test_votes_become_lines_that_tune_reads(client: TestClient, folder: Path, votes: Path) -> None:
    hit = client.get("/api/search", params={"query": "hide soft keyboard", "k": 1}).json()["hits"][0]
    judgments = [
        {"query": "# hide\tthe\nkeyboard\u2028 now", "id": hit["id"], "vote": "up"},
        {"query": "read a file", "id": hit["id"], "vote": "down"},
    ]
    for vote in judgments:
        assert client.post("/api/feedback", json=vote).json() == {"written": True}
    assert client.post("/api/feedback", json={**judgments[0], "id": "none:1"}).status_code == 404
    assert client.post("/api/feedback", json={**judgments[0], "vote": "sideways"}).status_code == 422
    assert client.post("/api/feedback", json={**judgments[0], "query": " \n "}).status_code == 422
    with Index.load(folder) as index:
        found = read_feedback(votes, index.documents)
        row = index.documents.row_of(hit["id"])
        assert [(one.text, one.rows, one.wrong) for one in found] == [
            ("# hide the keyboard now", (row,), ()),
            ("read a file", (), (row,)),
        ]


def test_feedback_is_off_unless_a_file_is_named(folder: Path) -> None:
    with TestClient(create_app(Settings({"demo": folder})), "http://localhost") as client:
        answer = client.post("/api/feedback", json={"query": "x", "id": "y", "vote": "up"})
    assert (answer.status_code, error_of(answer)["code"]) == (404, "no_feedback")


def test_slow_searches_end_in_504_and_too_many_in_503_while_health_answers(folder: Path) -> None:
    gateway = create_app(Settings({"demo": folder}, queue=1, seconds=0.5))
    free = threading.Event()

    def held(shelf: object) -> bytes:
        return b"" if free.wait(LONG) else b"never"

    with TestClient(gateway, "http://localhost") as client:
        pool = gateway.app.state.service.pool  # type: ignore[attr-defined]
        assert client.portal
        client.portal.start_task_soon(pool.run, held, None)
        late = client.get("/api/search", params={"query": "keyboard"})
        assert (late.status_code, error_of(late)["code"]) == (504, "too_slow")
        client.portal.start_task_soon(pool.run, held, None)
        until(lambda: pool.full)
        busy = client.get("/api/search", params={"query": "keyboard"})
        assert (busy.status_code, error_of(busy)["code"], busy.headers["retry-after"]) == (503, "busy", "1")
        assert client.get("/health").status_code == 200
        assert client.get("/metrics").status_code == 200
        free.set()
        until(lambda: not pool.pending)
        until(lambda: client.get("/api/search", params={"query": "keyboard"}).status_code == 200)  # soon in time again


def test_two_indexes_answer_by_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text('def brew_tea(leaves):\n    """Pour water over leaves."""\n    return leaves\n')
    Index.build(tmp_path, tmp_path / "index").close()
    with TestClient(create_app(Settings({"demo": folder, "tea": tmp_path / "index"})), "http://localhost") as client:
        tea = client.get("/api/search", params={"query": "brew tea", "index": "tea"}).json()
        assert (tea["index"], tea["hits"][0]["name"]) == ("tea", "brew_tea")
        first = client.get("/api/search", params={"query": "brew tea"}).json()
        assert first["index"] == "demo"
        assert "brew_tea" not in {hit["name"] for hit in first["hits"]}
        assert [one["name"] for one in client.get("/api/indexes").json()["indexes"]] == ["demo", "tea"]
