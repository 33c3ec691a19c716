"""The guards of the HTTP server: Host, Origin, token; and how its settings read options."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ncs.errors import BadInput
from ncs.serve.http.app import create_app, start_messages
from ncs.serve.http.errors import HttpError, to_http_error, to_json
from ncs.serve.http.security import Guard
from ncs.serve.http.settings import Settings, feedback_files, named_indexes, read_token

TOKEN = "0123456789abcdef0123"
LOOPBACK = Guard(Settings({}), None)
OUTSIDE = Guard(Settings({}, host="0.0.0.0", hosts=("Search.Example",)), None)


def refused(guard: Guard, method: str = "GET", path: str = "/api/search", second_host: str = "", **headers: str) -> str:
    """The code of the error; "" where the request passes."""
    named = {"host": "localhost:8765", **{name.replace("_", "-"): value for name, value in headers.items()}}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in named.items()]
    pairs += [(b"host", second_host.encode())] if second_host else []
    try:
        guard.check({"type": "http", "method": method, "path": path, "query_string": b"", "headers": pairs})
    except HttpError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("host", "on_loopback", "outside"),
    [
        ("localhost", "", ""),
        ("LOCALHOST:1", "", ""),
        ("127.0.0.1:8765", "", ""),
        ("127.1.2.3", "", ""),
        ("[::1]:8765", "", ""),
        ("192.168.1.5:8765", "bad_host", ""),
        ("search.example", "bad_host", ""),
        ("evil.example", "bad_host", "bad_host"),
        ("localhost.evil.example", "bad_host", "bad_host"),
        ("127.0.0.1.evil.example", "bad_host", "bad_host"),
        ("localhost@evil.example", "bad_host", "bad_host"),
        ("evil.example#localhost", "bad_host", "bad_host"),
        ("", "bad_host", "bad_host"),
        ("[::1", "bad_host", "bad_host"),
        ("localhost:x", "bad_host", "bad_host"),
        ("2130706433", "bad_host", "bad_host"),
    ],
)
def test_only_names_and_addresses_of_the_server_are_answered(host: str, on_loopback: str, outside: str) -> None:
    assert refused(LOOPBACK, host=host) == on_loopback
    assert refused(OUTSIDE, host=host) == outside
    assert refused(OUTSIDE, host=host, second_host="localhost") == "bad_host"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": "http://localhost:8765"}, ""),
        ({"origin": "http://localhost:9999"}, "bad_origin"),
        ({"origin": "http://evil.example"}, "bad_origin"),
        ({"origin": "null"}, "bad_origin"),
        ({"origin": ""}, "bad_origin"),
        ({"origin": "http://localhost:8765.evil.example"}, "bad_origin"),
        ({"origin": "https://localhost", "host": "localhost:443"}, ""),
        ({"origin": "https://localhost", "host": "localhost:80"}, "bad_origin"),
        ({"sec_fetch_site": "same-origin"}, ""),
        ({"sec_fetch_site": "none"}, ""),
        ({"sec_fetch_site": "cross-site"}, "bad_origin"),
        ({"sec_fetch_site": "same-site"}, "bad_origin"),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, ""),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, "bad_origin"),
    ],
)
def test_other_sites_may_link_here_and_nothing_else(headers: dict[str, str], code: str) -> None:
    assert refused(LOOPBACK, **headers) == code
    if headers.get("sec_fetch_mode") == "navigate":  # a form that is sent from there
        assert refused(LOOPBACK, "POST", content_type="application/json", **headers) == "bad_origin"


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer {TOKEN} ", True),
        (f"Bearer {TOKEN[:-1]}", False),
        (f"Bearer {TOKEN}x", False),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        ("Bearer \xe9\xff", False),
        ("", False),
        (None, False),
    ],
)
def test_a_token_is_required_everywhere_but_at_health_ready_and_the_page(header: str | None, passes: bool) -> None:
    guard, headers = Guard(Settings({}), TOKEN), {} if header is None else {"authorization": header}
    for path in ("/api/search", "/metrics", "/openapi.json", "/nope", "//health"):
        assert refused(guard, path=path, **headers) == ("" if passes else "no_token")
    for path in ("/", "/health", "/ready"):
        assert refused(guard, path=path, **headers) == ""


def test_a_server_with_a_token_asks_every_client_for_it() -> None:
    with TestClient(create_app(Settings({}), TOKEN), "http://localhost") as client:
        answer = client.get("/api/indexes")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert client.get("/api/indexes", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_token_comes_from_its_file_or_the_environment_and_is_long_enough(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file, {"NCS_TOKEN": "x" * 20}) == TOKEN
    assert read_token(None, {"NCS_TOKEN": "x" * 20}) == "x" * 20
    assert read_token(None, {}) is None
    for bad in ("", "short", "with a space in it all", "ключключключключ"):
        file.write_text(bad)
        with pytest.raises(BadInput, match="at least 16 ASCII"):
            read_token(file, {})
    with pytest.raises(BadInput, match="cannot read"):
        read_token(tmp_path / "none", {})


def test_indexes_have_the_name_of_the_option_or_of_their_folder(tmp_path: Path) -> None:
    odd = tmp_path / "a=b"
    odd.mkdir()
    folders = {"a-b": odd, "x": Path("/y"), "my-project": Path("/p/my project/.ncs")}
    assert named_indexes([str(odd), "x=/y", "/p/my project/.ncs"]) == folders
    with pytest.raises(BadInput, match="two indexes are named 'a'"):
        named_indexes(["/one/a", "/two/a"])
    assert feedback_files(["f.tsv", "b=g.tsv"], ["a", "b"]) == {"a": Path("f.tsv"), "b": Path("g.tsv")}
    with pytest.raises(BadInput, match="no index 'c'"):
        feedback_files(["c=g.tsv"], ["a", "b"])


def test_an_address_beyond_loopback_warns_what_it_means() -> None:
    first = "ncs: serving a (1,234 documents) at http://127.0.0.1:80"
    assert list(start_messages(Settings({}), {"a": 1234}, 80, None)) == [first]
    _, warning = start_messages(Settings({}, host="0.0.0.0"), {"a": 1}, 80, None)
    assert "everyone who reaches this machine can read" in warning
    assert "--token-file" in warning
    first, warning = start_messages(Settings({}, host="::"), {"a": 1}, 80, TOKEN)
    assert first.endswith("http://[::]:80")
    assert "everyone who has the token can read" in warning


def test_errors_hide_the_paths_of_indexes_and_take_one_line() -> None:
    message = "cannot read\n/srv/secret/index/x\x1b[2J; build /srv/secret/index again"
    error = to_http_error(BadInput(message), {"/srv/secret/index": "a"})
    assert (error.detail, error.remedy) == ("cannot read a/x [2J", "build a again")


def test_names_that_are_not_unicode_are_json_all_the_same() -> None:
    assert to_json({"path": "a\udcff\u202e"}) == b'{"path":"a\\udcff\xe2\x80\xae"}'
