"""Errors of the HTTP API, all of one shape: {"error": {"code", "message", "remedy"}}."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from ncs.errors import BadInput, IndexFolderError, MissingExtra, SourceError, StoreLost, unknown
from ncs.messages import OUT_OF_RANGE, TOO_LONG

MAX_MESSAGE = 300
"""Characters of a message, which may quote the request."""
_ROUTING = {
    400: (422, "bad_json", "the body is not valid JSON"),
    404: (404, "no_path", "no such path"),
    405: (405, "no_method", "method not allowed"),
}


def to_json(value: Any) -> bytes:
    """Compact UTF-8; lone surrogates, as in names of files that are not Unicode, as JSON's escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


class HttpError(HTTPException):
    """HTTP status, a code for programs, one line for people, and what to do: else what follows a "; " in the line."""

    def __init__(
        self, status: int, code: str, message: str, remedy: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        if not remedy:
            message, _, remedy = message.partition("; ")
            remedy = remedy or ("see /openapi.json for parameters and limits" if status < 500 else "ask the operator")
        super().__init__(status, _one_line(message), headers)
        self.code, self.remedy = code, _one_line(remedy)

    def response(self) -> Response:
        """The answer to the request."""
        body = to_json({"error": {"code": self.code, "message": self.detail, "remedy": self.remedy}})
        return Response(body, self.status_code, self.headers, "application/json")


def _one_line(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.split())[:MAX_MESSAGE]


def to_http_error(error: Exception, aliases: Mapping[str, str]) -> HttpError:
    """An error of a route or of the engine; aliases: paths of this machine -> names in answers."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, HTTPException):
        unknown = (error.status_code, "refused", "the request was refused")
        return HttpError(*_ROUTING.get(error.status_code, unknown), "see /openapi.json")
    if isinstance(error, IndexFolderError):
        remedy = "ask the operator; the server's log says more"
        return HttpError(503, "index_unusable", "the index cannot be read", remedy)
    if isinstance(error, StoreLost):
        remedy = "try again in a moment; the server's log says more"
        return HttpError(503, "store_lost", "the store of the index does not answer", remedy, {"Retry-After": "5"})
    text = str(error)
    for path in sorted(aliases, key=len, reverse=True):
        text = text.replace(path, aliases[path])
    if isinstance(error, (BadInput, SourceError)):
        return HttpError(422, "bad_input", text)
    return HttpError(501, "not_installed", text) if isinstance(error, MissingExtra) else HttpError(500, "failed", text)


def from_validation_error(errors: Sequence[Mapping[str, Any]]) -> HttpError:
    """The first error of pydantic, in one line."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return HttpError(422, "bad_json", "the body is not valid JSON", "send one JSON object")
    location = first["loc"][1:] if first["loc"][:1] in (("query",), ("body",)) else first["loc"]
    return HttpError(422, "bad_request", wrong_argument(first, location))


def wrong_argument(error: Mapping[str, Any], location: Sequence[object]) -> str:
    """An error of pydantic, in the words of the engine where it has them. location: the argument, as pydantic does."""
    name, value, limits = ".".join(str(part)[:60] for part in location), error["input"], error.get("ctx", {})
    for limit, words in (("ge", "at least"), ("le", "at most")):
        if limit in limits:
            return OUT_OF_RANGE.format(name=name, value=str(value)[:60], bound=f"{words} {limits[limit]:g}")
    if error["type"] == "string_too_long":
        return TOO_LONG.format(what=name, length=len(value), most=limits["max_length"])
    if error["type"] == "literal_error":
        return str(unknown(name, str(value)[:60], re.findall(r"'(\w+)'", limits["expected"])))
    if error["type"] == "extra_forbidden":
        return f"no parameter {name!r}"
    return f"{name or 'the request'}: {error['msg']}"
