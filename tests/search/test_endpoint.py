"""The endpoint ranker against a server on the loopback that speaks OpenAI's embeddings API."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput, NcsError
from ncs.index import Index
from ncs.search.baselines.endpoint import KEY_VARIABLE, EndpointModel, endpoint_ranker
from ncs.search.rankers import create_ranker
from ncs.types import Document
from tests.search.embeddings_server import Server, serving, vector

pytest.importorskip("openai", reason="needs the extra endpoint")

CODE = ("hide the keyboard", "read a file", "open the file", "close", "write file", "keyboard keyboard", "")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "not-for-you")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with serving() as running:
        yield running


def model(server: Server, **settings: Any) -> EndpointModel:
    return EndpointModel(endpoint_ranker(url=server.url, **settings).config)


def documents() -> list[Document]:
    return [
        Document(f"r/x.py:{line}", "r", "x.py", line, line, "python", "function", f"f{line}", f"f{line}", {}, code)
        for line, code in enumerate(CODE, 1)
    ]


def test_texts_go_in_batches_with_their_prefixes_and_come_back_in_their_order(server: Server) -> None:
    with closing(model(server, batch=3, model="letters", query_prefix="q ")) as opened:
        found = opened.embed(CODE, "document")
        opened.embed(["file"], "query")
    np.testing.assert_allclose(found[:6], [vector(text) for text in CODE[:6]])
    assert [body["input"] for _, _, body in server.requests] == [list(CODE[:3]), list(CODE[3:6]), ["-"], ["q file"]]
    assert {path for path, _, _ in server.requests} == {"/v1/embeddings"}
    assert {(body["model"], body["encoding_format"]) for _, _, body in server.requests} == {("letters", "float")}


def test_the_key_comes_from_its_variable_only_is_stored_nowhere_and_a_query_asks_for_itself_only(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sesame-1234")
    config = BuildConfig(rankers=(f"endpoint:url={server.url},batch=4",), deduplicate=False)
    with Index.of(documents(), tmp_path / "index", config=config) as index:
        assert [len(body["input"]) for _, _, body in server.requests] == [1, 4, 3]  # whether it answers, the documents
        (hit,) = index.search("read a file", 1, ranker="endpoint")
        index.ranker("endpoint").model.close()  # type: ignore[attr-defined]
    assert hit.document.code == "read a file"
    assert [body["input"] for _, _, body in server.requests[3:]] == [["read a file"]]
    assert {headers["authorization"] for _, headers, _ in server.requests} == {"Bearer sesame-1234"}
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"sesame-1234" not in path.read_bytes()


def test_without_a_key_none_is_sent_and_nothing_of_the_librarys_own_variables(server: Server) -> None:
    with closing(model(server)) as opened:
        opened.embed(["file"], "query")
    ((_, headers, body),) = server.requests
    assert "authorization" not in headers
    assert "not-for-you" not in json.dumps([headers, body])


def answer(*vectors: Any) -> tuple[int, Any, dict[str, str]]:
    data = [{"object": "embedding", "index": i, "embedding": each} for i, each in enumerate(vectors)]
    return 200, {"object": "list", "model": "m", "data": data}, {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([answer([1.0, 2.0])], "gave 1 vectors for 2 texts"),
        ([answer([1.0, 2.0], [1.0])], "gave vectors of 1 numbers, not 2"),
        ([answer()], "gave (no embeddings|0 vectors for 2 texts)"),
        ([(200, b"<html>", {"Content-Type": "text/html"})], "gave no embeddings"),
        ([(200, {"data": [{"index": 0}, {"index": 1}]}, {})], "gave no embeddings"),
        ([(200, {"data": 5}, {})], "gave no embeddings"),
        ([(400, {"error": {"message": "too long"}}, {})], "answered 400 .*too long"),
        ([(401, {"error": {"message": "who are you"}}, {})], rf"refused the key.*\${KEY_VARIABLE}"),
        ([(404, b"nothing here", {"Content-Type": "text/plain"})], "answered 404"),
    ],
    ids=["too few", "ragged", "none", "a page", "no vectors", "no list", "refused", "no key", "not there"],
)
def test_answers_that_do_not_fit_are_one_line(server: Server, given: list[Any], said: str) -> None:
    server.answers = given
    with closing(model(server)) as opened, pytest.raises(NcsError, match=said) as caught:
        opened.embed(["a", "b"], "document")
    assert "\n" not in str(caught.value)
    assert server.url in str(caught.value)


def test_a_server_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncs.search.baselines.endpoint.RETRIES", 0)
    with Server() as gone:
        url = gone.url
    opened = EndpointModel(endpoint_ranker(url=url).config)
    with closing(opened), pytest.raises(NcsError, match=f"cannot reach {url}.*start the server"):
        opened.embed(["file"], "query")


def test_a_busy_server_is_asked_again_until_it_is_given_up_in_one_line(server: Server) -> None:
    server.answers = [(429, {}, {"retry-after-ms": "1"}), (503, {}, {"retry-after-ms": "1"})]
    with closing(model(server)) as opened:
        np.testing.assert_allclose(opened.embed(["file"], "query")[0], vector("file"))
        assert len(server.requests) == 3
        server.answers = [(429, {"error": {"message": "slow\ndown"}}, {"retry-after-ms": "1"})] * 6
        with pytest.raises(NcsError, match="answered 429") as error:
            opened.embed(["file"], "query")
    assert len(server.requests) == 9
    assert "\n" not in str(error.value)


def test_texts_are_cut_and_the_dimensions_are_those_asked_for_and_of_the_first_answer(server: Server) -> None:
    with closing(model(server, dimensions=5, max_characters=10, document_prefix="d ")) as opened:
        assert opened.embed(["abc" + "x" * 50], "document").tolist() == [vector("d abcxxxxx", 5)]
        server.answers = [answer([1.0] * 26)]
        with pytest.raises(NcsError, match="of 26 numbers, not 5"):
            opened.embed(["abc"], "query")
    server.answers = [answer([1.0, 2.0]), answer([1.0, 2.0, 3.0])]
    with closing(model(server, batch=1)) as opened, pytest.raises(NcsError, match="of 3 numbers, not 2"):
        opened.embed(["a", "b"], "document")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        *((url, "is no address") for url in ("localhost:8080", "ftp://host/v1", "http://", "file:///etc")),
        ("http://me:sesame@localhost/v1", "a password in it, which would be stored"),
    ],
)
def test_what_is_no_address_or_has_a_password_is_refused(url: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        create_ranker("endpoint", url=url)


def test_without_the_library_the_command_to_type_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(NcsError, match=r"pip install 'neural-code-search\[endpoint\]'"):
        EndpointModel(endpoint_ranker(url="http://localhost/v1").config)
