"""Who may ask: the Host and Origin of a request (DNS rebinding, other sites' scripts), and its token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from ncs.serve.http.refusals import Refusal
from ncs.serve.http.settings import MOST_TARGET, Settings

OPEN = frozenset({"/", "/health", "/ready"})
"""Paths that need no token: they hold nothing of the index."""
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Guard:
    """names: hosts that may be asked for; addresses: whether any IP address may, too, or loopback's only."""

    names: frozenset[str]
    addresses: bool
    token: str | None

    @classmethod
    def of(cls, settings: Settings, token: str | None) -> Guard:
        """As the settings have it."""
        names = {name.lower() for name in (*settings.hosts, "localhost", settings.host)}
        return cls(frozenset(names), not settings.loopback, token)

    def check(self, method: str, path: str, target: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise Refusal for a request that is not to be answered. target: bytes of path and query string."""
        many: dict[str, list[str]] = {}
        for name, value in headers:
            many.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        if target > MOST_TARGET:
            raise Refusal(414, "too_long", f"the address is over {MOST_TARGET:,} bytes", "use POST")
        self._check_host(many.get("host", []))
        given = {name: values[0] for name, values in many.items()}
        _check_origin(method, given)
        if path not in OPEN:
            check_token(self.token, many.get("authorization", []))
        if method == "POST" and given.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "not_json", "the body is not application/json", "send Content-Type: application/json")

    def _check_host(self, hosts: list[str]) -> None:
        """DNS rebinding: a page's own name may lead to this address, but its Host header still says that name."""
        name = _host(hosts[0]) if len(hosts) == 1 else None
        if name is None:
            raise Refusal(400, "bad_host", "there must be one Host header", "send one")
        try:
            address = ip_address(name)
            allowed = self.addresses or address.is_loopback
        except ValueError:
            allowed = False
        if not (allowed or name in self.names):
            raise Refusal(
                403, "bad_host", "this server is not called that", "the operator adds names with --allow-host"
            )


def check_token(token: str | None, given: list[str]) -> None:
    """Raise Refusal where the values of Authorization are not one Bearer with this token; None wants none."""
    if token is None:
        return
    kind, _, told = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    right = hmac.compare_digest(told.strip().encode("latin-1"), token.encode())
    if not (right and kind.lower() == "bearer"):
        remedy = "send Authorization: Bearer and the token of the server"
        raise Refusal(401, "no_token", "the token is missing or wrong", remedy, WWW_Authenticate="Bearer")


def _check_origin(method: str, headers: Mapping[str, str]) -> None:
    """Nothing that another site's page asks for; following a link from there to here is allowed.

    Browsers send Origin with what scripts ask for and with forms, and Sec-Fetch-Site with everything.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    linked = method == "GET" and headers.get("sec-fetch-mode") == "navigate" and origin is None
    foreign = site not in (None, "same-origin", "none") and not linked
    if foreign or (origin is not None and not _same(origin, headers["host"])):
        raise Refusal(403, "bad_origin", "another site's page may not ask here", "open the server's own page")


def _same(origin: str, host: str) -> bool:
    """Whether an Origin is of the site that the Host header names."""
    try:
        found, own = urlsplit(origin), urlsplit(f"//{host}")
        port = PORTS[found.scheme]
        return (found.hostname, found.port or port) == (own.hostname, own.port or port)
    except (KeyError, ValueError):
        return False


def _host(header: str) -> str | None:
    """The name of a Host header in small letters, without port; None for what is none.

    >>> _host("LocalHost:8765"), _host("[::1]:80"), _host("a b"), _host("user@a")
    ('localhost', '::1', None, None)
    """
    if not header.isprintable() or any(letter in " /?#@\\" for letter in header):
        return None
    try:
        found = urlsplit(f"//{header}")
        return found.hostname if found.port != 0 else None
    except ValueError:  # brackets that do not fit, a port that is no number
        return None
