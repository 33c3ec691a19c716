"""A polite HTTP client: it says who it is, waits when asked to, and opens few connections to one host."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ncs import __version__
from ncs.errors import BadInput, MissingExtra, SourceError

if TYPE_CHECKING:
    import urllib3

USER_AGENT = f"neural-code-search/{__version__} (corpora)"


class NotFetched(SourceError):
    """A file that did not arrive. final: asking again will not help (it is not there, or not what was expected)."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


class Again(Exception):
    """This try failed and the next may not; `after`: seconds the server asked to wait."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


@dataclass(frozen=True, slots=True)
class Manners:
    """How a client behaves; times in seconds, sizes in bytes.

    tries: without anything new arriving. wait: before the second try, doubled for each further one.
    longest: where a server asks to wait longer, the file is left for another day.
    timeout: without an answer or a byte. limit: of one file. sleep: how to wait; else until the time is over or
    the client is stopped.
    """

    tries: int = 5
    wait: float = 1.0
    longest: float = 120.0
    timeout: float = 60.0
    per_host: int = 4
    limit: int = 200 << 30
    sleep: Callable[[float], object] | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """An answer whose body is still to come. length: of the body, None where the server does not say."""

    status: int
    reason: str
    headers: Mapping[str, str]
    length: int | None
    retry_after: float
    blocks: Callable[[int], Iterator[bytes]]


class Client:
    """Connections to any number of hosts, used by several threads at once; `stop` ends what they read."""

    def __init__(self, manners: Manners = Manners()) -> None:
        self.manners = manners
        self.stop = threading.Event()
        self._sleep = manners.sleep or self.stop.wait
        self._urllib3 = _library()
        self._pools: dict[str, urllib3.PoolManager] = {}
        self._lock = threading.Lock()
        self._not_before: dict[str, float] = {}

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[Response]:
        """The answer to a GET, redirects followed; Again for what may pass, NotFetched for what will not."""
        errors = self._urllib3.exceptions
        self._keep_away(url)
        if self.stop.is_set():
            raise NotFetched(f"{url}: stopped", final=False)
        retries = self._urllib3.Retry(total=None, connect=0, read=0, status=0, other=0, redirect=5)
        asked = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
        try:
            answer = self._pool(url).request("GET", url, headers=asked, retries=retries, preload_content=False)
            try:
                if url.startswith("https:") and (answer.url or "").startswith("http:"):
                    raise NotFetched(f"{url}: led to an address without encryption", final=True)
                yield self._response(answer)
            finally:
                answer.close()  # a body that was not read to its end leaves a connection nobody can use
                answer.release_conn()
        except errors.MaxRetryError as error:
            if isinstance(error.reason, (errors.SSLError, errors.ResponseError)):
                raise NotFetched(f"{url}: {_line(error.reason)}", final=True) from error
            raise Again(f"no connection ({_line(error.reason)})") from error
        except errors.LocationValueError as error:
            raise NotFetched(f"{url}: {_line(error)}", final=True) from error
        except errors.HTTPError as error:
            raise Again(f"the connection broke ({_line(error)})") from error

    def wait(self, url: str, tries: int, asked: float) -> None:
        """Wait before a further try; where the server said for how long, nobody asks that host before."""
        if asked:
            with self._lock:
                host = _host(url)
                self._not_before[host] = max(self._not_before.get(host, 0.0), time.monotonic() + asked)
        else:
            spread = 1 + random.random() / 4  # noqa: S311  so that workers do not come back all at once
            self._sleep(min(self.manners.wait * 2 ** (tries - 1) * spread, self.manners.longest))

    def _keep_away(self, url: str) -> None:
        with self._lock:
            seconds = self._not_before.get(_host(url), 0.0) - time.monotonic()
        if seconds > self.manners.longest:
            raise NotFetched(f"{url}: the server asks to wait {seconds:.0f} s; try again then", final=False)
        if seconds > 0:
            self._sleep(seconds)

    def _pool(self, url: str) -> urllib3.PoolManager:
        """Connections through the proxy that the environment names for this address, or direct ones."""
        proxy = "" if proxy_bypass(_host(url)) else getproxies().get(urlsplit(url).scheme, "")
        with self._lock:
            if proxy not in self._pools:
                options = {"maxsize": self.manners.per_host, "block": True, "timeout": self.manners.timeout}
                self._pools[proxy] = (
                    self._urllib3.ProxyManager(proxy, **options) if proxy else self._urllib3.PoolManager(**options)
                )
            return self._pools[proxy]

    def _response(self, answer: urllib3.BaseHTTPResponse) -> Response:
        length = answer.headers.get("Content-Length", "")

        def blocks(size: int) -> Iterator[bytes]:
            for block in answer.stream(size, decode_content=False):
                if self.stop.is_set():
                    raise NotFetched("stopped", final=False)
                yield block

        chunked = "chunked" in answer.headers.get("Transfer-Encoding", "").lower()
        return Response(
            status=answer.status,
            reason=answer.reason or "",
            headers=answer.headers,
            length=int(length) if length.isdigit() and not chunked else None,
            retry_after=self._retry_after(answer.headers.get("Retry-After", "")),
            blocks=blocks,
        )

    def _retry_after(self, text: str) -> float:
        try:
            return self._urllib3.Retry().parse_retry_after(text) if text else 0.0
        except self._urllib3.exceptions.InvalidHeader:
            return 0.0


def _host(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{url!r} is no web address; write it as https://host/path")
    return parts.hostname


def _line(error: object) -> str:
    return " ".join(str(error).split())[:200]


def _library() -> ModuleType:
    try:
        import urllib3 as library
    except ImportError:
        raise MissingExtra(
            "fetching needs urllib3; install it with: pip install 'neural-code-search[corpora]'"
        ) from None
    return library
