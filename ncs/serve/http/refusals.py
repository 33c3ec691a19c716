"""What goes wrong with a request, in one shape: {"error": {"code", "message", "remedy"}}."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from ncs.errors import BadInput, IndexFolderError, MissingExtra, NcsError, SourceError, StoreLost

MOST_SAID = 300
"""Characters of a message that may hold what was sent."""


class Refusal(Exception):
    """An answer that is an error: HTTP status, code for programs, one line for people, and what to do."""

    def __init__(self, status: int, code: str, message: str, remedy: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.remedy = status, code, _line(message), _line(remedy)
        self.headers: Mapping[str, str] = {name.replace("_", "-"): value for name, value in headers.items()}

    def __reduce__(self) -> tuple[object, ...]:
        """Made again where a searching process raised it."""
        return _again, (self.status, self.code, self.message, self.remedy, dict(self.headers))

    def body(self) -> bytes:
        """JSON, UTF-8."""
        return to_json({"error": {"code": self.code, "message": self.message, "remedy": self.remedy}})


async def respond(send: Callable[[MutableMapping[str, Any]], Awaitable[None]], refusal: Refusal) -> None:
    """Send a refusal as ASGI has it."""
    body = refusal.body()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _again(status: int, code: str, message: str, remedy: str, headers: Mapping[str, str]) -> Refusal:
    return Refusal(status, code, message, remedy, **headers)


def to_json(value: Any) -> bytes:
    """UTF-8 as it is; half a surrogate pair, as names of files that are no Unicode hold, as JSON's escape."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _line(text: str) -> str:
    """One line, printable: what was sent may hold anything."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())[:MOST_SAID]


def of_error(error: NcsError, hidden: Mapping[str, str]) -> Refusal:
    """The engine's errors; hidden: paths of the machine -> what they are called here."""
    if isinstance(error, IndexFolderError):
        remedy = "ask who runs the server: its log says more"
        return Refusal(503, "index_unusable", "the index cannot be read", remedy)
    if isinstance(error, StoreLost):
        remedy = "ask again in a moment; the server's log says more"
        return Refusal(503, "store_lost", "the store that holds the index does not answer", remedy, Retry_After="5")
    text = str(error)
    for path in sorted(hidden, key=len, reverse=True):
        text = text.replace(path, hidden[path])
    message, _, remedy = text.partition("; ")
    status, code = _KINDS.get(type(error), (500, "failed"))
    return Refusal(status, code, message, remedy or "ask in another way")


_KINDS: Mapping[type, tuple[int, str]] = {
    BadInput: (422, "bad_input"),
    SourceError: (422, "bad_input"),
    MissingExtra: (501, "not_installed"),
}


def of_validation(errors: Sequence[Mapping[str, Any]]) -> Refusal:
    """What pydantic found wrong, the first of it in one line."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return Refusal(422, "bad_json", "the body is no JSON", "send one JSON object")
    place = first["loc"][1:] if first["loc"][:1] in (("query",), ("body",)) else first["loc"]
    where = ".".join(str(part)[:60] for part in place)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    message = f"{where or 'the request'}: {first['msg']}{more}"
    return Refusal(422, "bad_request", message, "the parameters and their bounds are in /openapi.json")
