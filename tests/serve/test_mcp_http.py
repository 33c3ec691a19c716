"""`ncs mcp --http`: this machine's clients only, other sites' pages refused, one server for all."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from ncs.index import Index
from tests import corpus
from tests.agents import ask, command
from tests.waiting import LONG

pytestmark = pytest.mark.anyio
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = corpus.write(tmp_path_factory.mktemp("http") / "repos")
    Index.build(tree, tree / ".ncs").close()
    return tree


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    started = command("--http", "--port", "0", "--root", root)
    with subprocess.Popen(started, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.readline()
        assert said.startswith("ncs: MCP at http://127.0.0.1:"), said
        yield said.rpartition(" at ")[2].strip(), process
        process.kill()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_over_http_is_answered_like_one_over_stdio_and_names_no_folders(
    server: tuple[str, subprocess.Popen[str]], tmp_path: Path, mode: str
) -> None:
    (tmp_path / "private.py").write_text("def private_key():\n    return 1\n")

    async def listed(context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=tmp_path.as_uri())])  # type: ignore[arg-type]

    async with Client(server[0], list_roots_callback=listed, mode=mode) as client:
        tools = (await client.list_tools()).tools
        found = await ask(client, "search_code", query="hide soft keyboard")
        status = await ask(client, "index_status")
    assert len(tools) == 5
    assert found.json["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert [state["project"] for state in status.json["projects"]] == ["repos"]
    assert not (tmp_path / ".ncs").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_other_hosts_and_other_sites_pages_are_refused(
    server: tuple[str, subprocess.Popen[str]], headers: dict[str, str], status: int
) -> None:
    answer = httpx.post(server[0], json=INITIALIZE, headers={**ACCEPT, **headers}, timeout=LONG)
    assert answer.status_code == status


def test_a_form_of_another_page_and_a_huge_body_are_refused(server: tuple[str, subprocess.Popen[str]]) -> None:
    form = httpx.post(server[0], content="{}", headers={**ACCEPT, "Content-Type": "text/plain"}, timeout=LONG)
    json_type = {**ACCEPT, "Content-Type": "application/json"}
    huge = httpx.post(server[0], content=b"x" * (2 << 20), headers=json_type, timeout=LONG)
    assert 400 <= form.status_code < 500
    assert huge.status_code == 413


@pytest.mark.slow
async def test_with_a_token_only_who_bears_it_is_answered(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a-token-of-this-test\n")
    started = command("--http", "--port", "0", "--root", root, "--token-file", file)
    with subprocess.Popen(started, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr
        url = process.stderr.readline().rpartition(" at ")[2].strip()
        for headers in ({}, {"Authorization": "Bearer wrong-wrong-wrong"}, {"Authorization": "a-token-of-this-test"}):
            answer = httpx.post(url, json=INITIALIZE, headers={**ACCEPT, **headers}, timeout=LONG)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert answer.json()["error"]["code"] == "no_token"
        right = {**ACCEPT, "Authorization": "Bearer a-token-of-this-test"}
        assert httpx.post(url, json=INITIALIZE, headers=right, timeout=LONG).status_code == 200
        given = create_mcp_http_client(headers={"Authorization": "Bearer a-token-of-this-test"})
        async with given, Client(streamable_http_client(url, http_client=given)) as client:
            said = await ask(client, "search_code", query="hide soft keyboard")
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=LONG)[1]
    assert not said.error, said.text
    assert said.json["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert "token" not in rest


def test_a_token_file_without_http_and_a_short_token_are_refused(tmp_path: Path) -> None:
    short = tmp_path / "token"
    short.write_text("short")
    for options, said in (((), "--token-file needs --http"), (("--http",), "at least 16")):
        started = command(*options, "--token-file", short)
        ran = subprocess.run(started, capture_output=True, text=True, check=False, timeout=LONG)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)
        assert said in ran.stderr


def test_sigterm_ends_the_server_in_order(server: tuple[str, subprocess.Popen[str]]) -> None:
    process = server[1]
    process.send_signal(signal.SIGTERM)
    printed, said = process.communicate(timeout=LONG)
    assert (process.returncode, printed) == (0, "")
    assert said.endswith("ncs: stopped\n")
