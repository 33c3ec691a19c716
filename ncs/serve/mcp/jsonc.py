"""JSON with comments and trailing commas (JSONC), in which one member is set or removed; all else stays as it is."""

from __future__ import annotations

import json
import re
from typing import Any

_STRING = r'("(?:[^"\\]|\\.)*"?)'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
"""A trailing one."""
_BETWEEN = re.compile(r"[\s,:]*")


def parse(text: str) -> Any:
    """The value; ValueError where it is not JSONC."""
    return json.loads(_blank(_COMMA, _blank(_COMMENT, text)))


def set_member(text: str, key: str, name: str, value: object) -> str:
    """The text of an object in which `name` of the object `key` has this value."""
    bare = _blank(_COMMENT, text)
    plain = _blank(_COMMA, bare)
    start, depth = plain.index("{"), 1
    members, close = _members(plain, start)
    if key in members:
        start, depth = members[key][1], 2
        members, close = _members(plain, start)
    else:
        name, value = key, {name: value}
    found = re.search(r"\n([ \t]+)", text)
    indent = found[1] if found else "  "
    written = json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", "\n" + indent * depth)
    if name in members:
        _, begin, end = members[name]
        return text[:begin] + written + text[end:]
    end = len(plain[:close].rstrip())
    comma, trailing = "," if members else "", ""
    if bare[:close].rstrip().endswith(","):
        comma, trailing = "", ","
    line = f"\n{indent * depth}{json.dumps(name)}: {written}{trailing}\n{indent * (depth - 1)}"
    return text[:end] + comma + text[end:close].rstrip() + line + text[close:]


def remove_member(text: str, *names: str) -> str:
    """The text without the member that the names lead to, and without the objects around it that are empty then."""
    bare = _blank(_COMMENT, text)
    plain = _blank(_COMMA, bare)
    start = plain.index("{")
    for outer in names[:-1]:
        start = _members(plain, start)[0][outer][1]
    begin, _, end = _members(plain, start)[0][names[-1]]
    before, last = text[:begin], len(bare[:begin].rstrip()) - 1
    if comma := re.compile(r"\s*,").match(bare, end):
        end = comma.end()
    elif bare[last] == ",":  # it was the last member
        before = text[:last] + text[last + 1 : begin]
    rest = before.rstrip() + text[end:]
    if not re.compile(r"\{\s*\}").match(rest, start):
        return rest
    if len(names) > 1:
        return remove_member(rest, *names[:-1])
    return rest if rest[:start].strip() or rest[start:].split("}", 1)[1].strip() else ""


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """The text with spaces in place of what matches, outside of strings."""
    return pattern.sub(lambda match: match[1] or " " * len(match[0]), text)


def _members(plain: str, start: int) -> tuple[dict[str, tuple[int, int, int]], int]:
    """The members of an object: where each begins, where its value begins and ends; and where its brace closes."""
    members, decoder, at = {}, json.JSONDecoder(), _next(plain, start + 1)
    while plain[at] != "}":
        name, colon = decoder.raw_decode(plain, at)
        value = _next(plain, colon)
        _, end = decoder.raw_decode(plain, value)
        members[name] = at, value, end
        at = _next(plain, end)
    return members, at


def _next(plain: str, at: int) -> int:
    """The next place that is not between members."""
    return at + len(_BETWEEN.match(plain, at)[0])  # type: ignore[index]  # it matches always
