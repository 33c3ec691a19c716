"""`ncs mcp --http`: this machine's clients only, other sites' pages refused, one server for all."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.command import invoke
from tests.serve.agents import INITIALIZE, call, client_of
from tests.serving import plain_post, running

pytestmark = pytest.mark.anyio
HTTP = ("mcp", "--http", "--port", "0")
TOKEN = "a-token-of-this-test"
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def url(demo: Path) -> Iterator[str]:
    with running(*HTTP, "-i", demo / ".ncs") as server:
        yield server.url


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_over_http_is_answered_like_one_over_stdio_and_names_no_folders(
    url: str, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "private.py").write_text("def private_key():\n    return 1\n")
    async with client_of(url, [tmp_path], mode) as client:
        tools = (await client.list_tools()).tools
        reply = await call(client, "search_code", query="hide soft keyboard")
        status = await call(client, "index_status")
    assert len(tools) == 7
    assert reply.json["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert [state["project"] for state in status.json["projects"]] == ["repos"]
    assert not (tmp_path / ".ncs").exists()


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, None, 200),
        ({"Host": "evil.example"}, None, 403),
        ({"Origin": "https://evil.example"}, None, 403),
        ({"Content-Type": "text/plain"}, "{}", 415),
        ({"Content-Type": "application/json"}, "x" * (2 << 20), 413),
    ],
)
def test_other_hosts_other_sites_pages_and_huge_bodies_are_refused(
    url: str, headers: dict[str, str], body: str | None, status: int
) -> None:
    content = {"json": INITIALIZE} if body is None else {"content": body}
    answer = plain_post(url, headers={**ACCEPT, **headers}, **content)
    assert answer.status_code == status


@pytest.mark.slow
async def test_with_a_token_only_who_bears_it_is_answered_until_sigterm_ends_the_server(
    demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with running(*HTTP, "-i", demo / ".ncs", "--token-file", tmp_path / "token") as server:
        for headers in ({}, {"Authorization": "Bearer wrong-wrong-wrong"}, {"Authorization": TOKEN}):
            answer = plain_post(server.url, json=INITIALIZE, headers={**ACCEPT, **headers})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert answer.json()["error"]["code"] == "no_token"
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert plain_post(server.url, json=INITIALIZE, headers={**ACCEPT, **bearer}).status_code == 200
        http = create_mcp_http_client(headers=bearer)
        async with http, Client(streamable_http_client(server.url, http_client=http)) as client:
            reply = await call(client, "search_code", query="hide soft keyboard")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    assert not reply.error, reply.text
    assert reply.json["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert server.lines[-1] == "ncs: stopped\n"
    assert "token" not in "".join(server.lines)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(("options", "message"), [((), "--token-file needs --http"), (("--http",), "at least 16")])
def test_a_token_file_without_http_and_a_short_token_are_refused(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "token").write_text("short")
    run = invoke("mcp", *options, "--token-file", "token", cwd=tmp_path)
    assert run.returncode == 2
    assert message in run.stderr
