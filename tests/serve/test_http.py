"""The HTTP API answers as the terminal does, keeps its limits, and shows nothing of the machine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ncs.index import Index
from ncs.search.feedback import read_feedback
from ncs.search.question import MAX_QUERY
from ncs.serve.http.app import create_app
from ncs.serve.http.errors import HttpError
from ncs.serve.http.routes import EXAMPLES
from ncs.serve.http.settings import MAX_BODY, MAX_K, MAX_SOURCE, Settings
from ncs.serve.live_index import LiveIndex
from tests import corpus
from tests.command import invoke
from tests.waiting import LONG, until

JSON = {"content-type": "application/json"}
KEYBOARD = corpus.DEMO / "app/Keyboards.java"


@pytest.fixture(scope="module")
def folder(demo: Path) -> Path:
    return demo / ".ncs"


@pytest.fixture(scope="module")
def tea(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tea")
    (root / "one.py").write_text('def brew_tea(leaves):\n    """Pour water over leaves."""\n    return leaves\n')
    Index.build(root, root / ".ncs").close()
    return root / ".ncs"


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("votes") / "votes.tsv"


@pytest.fixture(scope="module")
def client(folder: Path, tea: Path, votes: Path) -> Iterator[TestClient]:
    settings = Settings({"demo": folder, "tea": tea}, {"demo": votes}, seconds=60)  # slow machines
    with TestClient(create_app(settings), "http://localhost", raise_server_exceptions=False) as client:
        yield client


def printed(folder: Path, *arguments: str) -> Any:
    """The answer of a command, without the files, which a server does not name."""

    def without_files(each: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in each.items() if (name, "path" in each) != ("file", True)}

    output = invoke(*arguments, "--json", "-i", str(folder), cwd=folder).stdout
    return json.loads(output, object_hook=without_files)


def error_of(answer: Any) -> dict[str, str]:
    """The error of an answer, of the one shape."""
    (error,) = answer.json().values()
    assert set(error) == {"code", "message", "remedy"}
    assert all(isinstance(value, str) and value and value.isprintable() for value in error.values())
    return dict(error)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (("-k", "2", "--no-code"), {"k": 2, "code": False}),
        (("--ranker", "bm25", "--language", "java"), {"ranker": "bm25", "language": "java"}),
        (("--repository", "copy", "--unfold"), {"repository": "copy", "unfold": True}),
        (("--path", "src", "--min-confidence", "0.01"), {"path": "src", "min_confidence": 0.01}),
        (("--kind", "Class", "-k", "50"), {"kind": "Class", "k": 50}),
        (("--explain", "--functions-only"), {"explain": True, "functions_only": True}),
        (("-t", "java", "-t", "py", "--no-tests"), {"language": ["java", "py"], "no_tests": True}),
        (("-T", "py", "-g", "*.java", "-g", "!Net*"), {"language_not": "py", "glob": ["*.java", "!Net*"]}),
        (("-e", "hide|show"), {"regexp": "hide|show"}),
    ],
)
def test_search_answers_what_the_terminal_prints(
    client: TestClient, folder: Path, options: tuple[str, ...], parameters: dict[str, Any]
) -> None:
    expected = {**printed(folder, "query", "hide soft keybord", *options), "index": "demo"}
    query = {"query": "hide soft keybord", **parameters}
    requests = [("/api/search", query)]
    if query.get("explain"):
        requests.append(("/api/explain", {name: value for name, value in query.items() if name != "explain"}))
    for path, each in requests:
        assert client.post(path, json=each).json() == expected
        assert client.get(path, params=each).json() == expected


def test_similar_words_and_info_answer_what_the_terminal_prints(client: TestClient, folder: Path) -> None:
    source = KEYBOARD.read_text()
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "hideSoftInput" in text)
    body = {"source": source, "source_language": "java", "line": line}
    answer, expected = client.post("/api/similar", json=body).json(), printed(folder, "similar", f"{KEYBOARD}:{line}")
    assert answer["hits"] == expected["hits"]
    assert answer["function"]["qualified_name"] == expected["function"]["qualified_name"]
    by_id = client.get("/api/similar", params={"id": answer["hits"][0]["id"]}).json()
    assert by_id["function"]["qualified_name"] == answer["hits"][0]["qualified_name"]
    places = [(hit["repository"], hit["start_line"]) for hit in by_id["hits"]]  # the document itself is left out
    assert (answer["hits"][0]["repository"], answer["hits"][0]["start_line"]) not in places
    words = client.get("/api/words", params={"word": "keyboard", "n": 3}).json()
    assert words == printed(folder, "words", "keyboard", "-n", "3")
    assert words["notes"] == [
        "too little was learned here to say: 'keyboard' is in 3 documents; it takes 5 to compare words"
    ]
    info, expected = client.get("/api/info").json(), printed(folder, "info")
    for key in ("documents", "languages", "repositories", "kinds", "created"):
        assert info[key] == expected[key]


def test_names_answer_what_the_terminal_prints_and_a_path_is_that_of_the_definition(
    client: TestClient, folder: Path
) -> None:
    for path, command, name in (
        ("definitions", "def", "Keyboards.hideSoftKeyboard"),
        ("references", "refs", "getSystemService"),
        ("references", "refs", "hide_soft_keybord"),
    ):
        expected = {**printed(folder, command, name, "--no-code"), "index": "demo"}
        assert client.get(f"/api/{path}", params={"name": name, "code": False}).json() == expected
    hit = client.get("/api/search", params={"query": "count words of file", "repository": "tools"}).json()["hits"][0]
    named = {"name": hit["qualified_name"], "path": hit["path"]}
    found = client.get("/api/definitions", params=named).json()["definitions"]
    assert [each["id"] for each in found] == [hit["id"]]
    assert client.get("/api/references", params=named).json()["notes"]
    assert error_of(client.get("/api/references", params={**named, "path": "no/such.py"}))["code"] == "bad_input"


def test_answers_have_the_shape_of_their_examples_in_openapi(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {*EXAMPLES, "/health", "/ready", "/metrics"}
    for path in EXAMPLES:
        for route in paths[path].values():
            assert route["responses"]["200"]["content"]["application/json"]["example"]
    refusal = paths["/api/search"]["get"]["responses"]["422"]["content"]["application/json"]["example"]
    assert client.get("/api/search", params={"query": "x", "k": "101"}).json() == refusal
    hit = client.get("/api/search", params={"query": "hide soft keyboard"}).json()["hits"][0]
    for path, parameters in (
        ("/api/search", {"query": "hide soft keyboard"}),
        ("/api/document", {"id": hit["id"]}),
        ("/api/definitions", {"name": "hideSoftKeyboard", "k": "1"}),
        ("/api/references", {"name": "hideSoftInputFromWindow", "k": "1"}),
        ("/api/words", {"word": "keyboard"}),
        ("/api/indexes", {}),
    ):
        assert same_shape(client.get(path, params=parameters).json(), EXAMPLES[path]), path
    assert [index["name"] for index in client.get("/api/indexes").json()["indexes"]] == ["demo", "tea"]


def same_shape(value: Any, example: Any) -> bool:
    """Whether both have the same keys and types; null goes with everything, an empty list with every list."""
    if isinstance(value, dict) and isinstance(example, dict):
        return set(value) == set(example) and all(same_shape(value[key], example[key]) for key in value)
    if isinstance(value, list) and isinstance(example, list):
        return all(same_shape(each, example[0]) for each in value if example)
    return value is None or example is None or type(value) is type(example)


@pytest.mark.parametrize(
    ("path", "parameters", "name"),
    [
        ("search", {}, "nothing to search for"),
        ("search", {"query": "x", "k": MAX_K + 1}, "k"),
        ("search", {"query": "x", "kk": 1}, "kk"),
        ("search", {"query": "x", "ranker": "no"}, "no ranker 'no'"),
        ("search", {"query": "x", "min_confidence": 2}, "min_confidence"),
        ("search", {"query": "x", "limit": 3}, "no parameter 'limit'"),
        ("search", {"query": "x", "language": "y" * 100}, "language"),
        ("words", {"word": "x", "n": 1000}, "n"),
        ("similar", {}, "either id or source"),
        ("similar", {"id": "a:1", "source": "x"}, "either id or source"),
        ("similar", {"source": "x"}, "needs source_language"),
        ("similar", {"source": "x", "source_language": "klingon"}, "klingon"),
        ("similar", {"source": "x = 1", "source_language": "python"}, "no function in the source"),
        ("similar", {"source": "def f(): 1\n", "source_language": "python", "line": 9}, "line 9 of the source"),
    ],
)
def test_a_parameter_out_of_bounds_is_refused_in_one_line(
    client: TestClient, path: str, parameters: dict[str, Any], name: str
) -> None:
    answer = client.get(f"/api/{path}", params=parameters)
    assert answer.status_code == 422
    assert name in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[" * 100_000, 422),
        (b'{"query": ["a"], "k": 1e400}', 422),
        (b'{"query": "\\ud800"}', 422),
        (b"\xff\xfe\x00", 422),
        (b'{"query": "' + b"a" * (MAX_QUERY + 1) + b'"}', 422),
        (b'{"query": "' + b"a" * MAX_BODY + b'"}', 413),
        (b'{"query": "hide\\u0000keyboard\\u202egro"}', 200),
        (b'{"query": "\\u202e\\u2066\\u0007"}', 200),
        ('{"query": "\U0001f600 ключ 键盘"}'.encode(), 200),
        (b'{"query": "%s %n {0} <script>", "path": "../../etc", "repository": "[[***?", "language": "\\u0000"}', 422),
    ],
)
def test_hostile_bodies_get_an_answer_of_the_right_kind(client: TestClient, body: bytes, status: int) -> None:
    answer = client.post("/api/search", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    if status != 200:
        error_of(answer)
    else:
        assert answer.json()["query"] == json.loads(body)["query"]


def test_code_in_a_request_is_32_kilobytes_at_most(client: TestClient) -> None:
    for source, status in (("#" * (MAX_SOURCE + 1), 422), ("#" + "\u00e4" * (MAX_SOURCE // 2), 413)):
        answer = client.post("/api/similar", json={"source": source, "source_language": "python"})
        assert answer.status_code == status
        assert "source" in error_of(answer)["message"]


def test_no_answer_holds_a_path_of_the_machine(client: TestClient, folder: Path) -> None:
    targets = ("search?query=keyboard&explain=true", "info", "indexes", "search?query=x&ranker=two_field")
    for target in ("/", f"/{folder}", "/ready", "/openapi.json", "/metrics", *(f"/api/{each}" for each in targets)):
        answer = client.get(target)
        assert str(folder.parent) not in answer.text + str(answer.headers)


def test_unknown_paths_methods_words_ids_and_indexes_are_errors_of_the_same_shape(client: TestClient) -> None:
    near = client.get("/api/words", params={"word": "keybord"})
    chunks = client.post("/api/search", content=iter([b" " * MAX_BODY, b"{}"]), headers=JSON)  # of unknown length
    ids = ("../../../etc/passwd:1", "a:1\x00b", "app/src/../src/Keyboards.java:1", ":", ":1" * 900)
    for answer, status, code in (
        (near, 404, "no_word"),
        (client.get("/nope"), 404, "no_path"),
        (client.delete("/api/search"), 405, "no_method"),
        (client.post("/health", json={}), 405, "no_method"),
        (client.get("/api/search", params={"query": "x", "index": "other"}), 404, "no_index"),
        (client.post("/api/search", content=b"query=x"), 415, "not_json"),
        (client.get("/api/search?query=" + "x" * 20_000), 414, "too_long"),
        (chunks, 413, "too_large"),
        *((client.get("/api/document", params={"id": id}), 404, "no_document") for id in ids),
        *((client.get("/api/similar", params={"id": id}), 404, "no_document") for id in ids),
    ):
        assert (answer.status_code, error_of(answer)["code"]) == (status, code)
    assert "keyboard" in error_of(near)["remedy"]


def test_every_answer_has_strict_headers_and_an_id_of_its_own(client: TestClient) -> None:
    answers = [client.get(path) for path in ("/health", "/nope", "/api/search?query=x", "/api/search")]
    strict = {
        "x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin", "cache-control": "no-store",
    }  # fmt: skip
    for answer in answers:
        assert strict.items() <= dict(answer.headers).items()
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert len({answer.headers["x-request-id"] for answer in answers}) == len(answers)


def test_metrics_count_requests_by_path_and_status(client: TestClient) -> None:
    def values() -> dict[str, float]:
        lines = client.get("/metrics").text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    before = values()
    for n in (1, 2, 1000):
        client.get("/api/words", params={"word": "keyboard", "n": n})
    client.get("/made/up/label")
    after = values()
    for name, more in (
        ('ncs_requests_total{path="/api/words",status="200"}', 2),
        ('ncs_requests_total{path="/api/words",status="422"}', 1),
        ('ncs_requests_total{path="other",status="404"}', 1),
        ('ncs_request_seconds_count{path="/api/words"}', 3),
    ):
        assert after[name] - before.get(name, 0) == more
    assert after['ncs_index_snapshot{index="demo"}'] == client.get("/api/info").json()["snapshot"]
    assert after["ncs_in_flight"] == 1  # the request for metrics
    assert not any("made" in name for name in after)


def test_votes_become_lines_that_tune_reads(client: TestClient, folder: Path, votes: Path) -> None:
    hit = client.get("/api/search", params={"query": "hide soft keyboard", "k": 1}).json()["hits"][0]
    up = {"query": "# hide\tthe\nkeyboard\u2028 now", "id": hit["id"], "vote": "up"}
    for vote in (up, {"query": "read a file", "id": hit["id"], "vote": "down"}):
        assert client.post("/api/feedback", json=vote).json() == {"written": True}
    for change, status in (({"id": "none:1"}, 404), ({"vote": "sideways"}, 422), ({"query": " \n "}, 422)):
        assert client.post("/api/feedback", json={**up, **change}).status_code == status
    refusal = client.post("/api/feedback", json={**up, "index": "tea"})
    assert (refusal.status_code, error_of(refusal)["code"]) == (404, "no_feedback")
    with Index.load(folder) as index:
        row = index.documents.row_of(hit["id"])
        assert [(one.text, one.rows, one.wrong) for one in read_feedback(votes, index.documents)] == [
            ("# hide the keyboard now", (row,), ()),
            ("read a file", (), (row,)),
        ]


def wait(live: LiveIndex) -> bytes:
    time.sleep(LONG)
    return b"{}"


def test_a_slow_request_ends_in_504_and_too_many_in_503_while_health_answers(folder: Path) -> None:
    gateway = create_app(Settings({"demo": folder}, queue=1, seconds=4))
    service = gateway.app.state.service
    with TestClient(gateway, "http://localhost") as client:
        assert client.portal
        with pytest.raises(HttpError) as late:
            client.portal.call(service.run, wait, None)
        assert (late.value.status_code, late.value.code) == (504, "too_slow")
        tasks = [client.portal.start_task_soon(service.run, wait, None) for _ in range(2)]
        until(lambda: service.pending == 2)
        busy = client.get("/api/search", params={"query": "keyboard"})
        assert (busy.status_code, error_of(busy)["code"], busy.headers["retry-after"]) == (503, "busy", "1")
        assert [client.get(path).status_code for path in ("/health", "/metrics", "/ready")] == [200, 200, 503]
        assert all(isinstance(task.exception(), HttpError) for task in tasks)
        until(lambda: client.get("/api/search", params={"query": "keyboard"}).status_code == 200)  # soon in time again
