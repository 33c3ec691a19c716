"""Answers within a number of tokens: how many hits are shown, how much of their code, and how to get the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ncs.serve.mcp.settings import TOKEN_BYTES

HEADS = 0.6
"""The share of the bound that headers may take where there is code to show."""
GAP = "[..."
"""How a line begins that stands for lines left out."""
SPARE = 160
"""Bytes kept for what is said at the end."""


@dataclass(frozen=True, slots=True)
class Row:
    """One hit to show. header: a line; code: lines that may be shown, `lines` of them whole; place: to get the rest."""

    header: str
    found: Mapping[str, Any]
    code: Sequence[str] = ()
    lines: int = 0
    place: str = ""


@dataclass
class Page:
    """What an answer is: text for the model, and the same as JSON. left: which rows are not shown."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode("utf-8", "replace"))


def json_size(value: object) -> int:
    """Bytes of a value as JSON, as it is sent."""
    return size(json.dumps(value, ensure_ascii=False))


def tokens(text: str) -> int:
    """How many tokens a text is estimated to be.

    >>> tokens("0123456789")
    3
    """
    return -(-size(text) // TOKEN_BYTES)


def fill(
    head: Sequence[str], envelope: Mapping[str, Any], rows: Sequence[Row], most_tokens: int, *, start: int, more: bool
) -> Page:
    """As many rows as fit, in order, with as much of their code as fits; both text and JSON keep within the bound.

    start: the number of the first row; more: whether rows follow these. The rest is had by next_cursor.
    """
    bound = most_tokens * TOKEN_BYTES
    head, envelope = _cut_head(head, envelope, bound)
    shown = _that_fit(head, envelope, rows, bound)
    codes = _codes(head, envelope, shown, bound)
    following = start + len(shown) if more or len(shown) < len(rows) else None
    blocks = [head and "\n".join(head)]
    for row, code in zip(shown, codes, strict=True):
        blocks.append("\n".join([row.header, *code, *_rest(row, code)]))
    if following is not None:
        blocks.append(f'More: the same call with cursor "{following}".')
    found = [{**row.found, "code": "\n".join(code) or None} for row, code in zip(shown, codes, strict=True)]
    structured = {**envelope, "hits": found, "next_cursor": None if following is None else str(following)}
    return Page("\n\n".join(block for block in blocks if block), structured)


def _cut_head(head: Sequence[str], envelope: Mapping[str, Any], bound: int) -> tuple[list[str], dict[str, Any]]:
    """Notes are left out from the end where they alone would take a third of the answer."""
    lines, given = list(head), dict(envelope)
    while len(lines) > 1 and size("\n".join(lines)) > bound // 3:
        lines.pop()
    while given.get("notes") and json_size(given) > bound // 3:
        given["notes"] = given["notes"][:-1]
    return lines, given


def _that_fit(head: Sequence[str], envelope: Mapping[str, Any], rows: Sequence[Row], bound: int) -> list[Row]:
    text, wire = size("\n".join(head)) + SPARE, json_size(envelope) + SPARE
    shown: list[Row] = []
    for row in rows:
        text += size(row.header) + 2 + (size(_cut(row, row.lines)) if row.code else 0)
        wire += json_size({**row.found, "code": None}) + 2
        share = HEADS if shown and any(each.code for each in rows) else 1
        if max(text, wire) > bound * share:
            break
        shown.append(row)
    return shown


def _codes(head: Sequence[str], envelope: Mapping[str, Any], shown: Sequence[Row], bound: int) -> list[list[str]]:
    """The lines of code of each row: the first ones may take twice their share, what they leave goes to the next."""
    text = bound - size("\n".join(head)) - SPARE - sum(size(row.header) + 2 for row in shown)
    wire = bound - json_size(envelope) - SPARE - sum(json_size({**row.found, "code": None}) + 2 for row in shown)
    text -= sum(size(_cut(row, row.lines)) + 1 for row in shown if row.code)
    codes: list[list[str]] = []
    for number, row in enumerate(shown):
        share = min(1.0, 2 / (len(shown) - number))
        code, text_left, wire_left = [], text * share, wire * share
        for line in row.code:
            text_left -= size(line) + 1
            wire_left -= json_size(line)
            if min(text_left, wire_left) < 0:
                break
            code.append(line)
        text -= sum(size(line) + 1 for line in code)
        wire -= sum(json_size(line) for line in code)
        codes.append(code)
    return codes


def _rest(row: Row, code: Sequence[str]) -> list[str]:
    """What was cut, and how to get it."""
    left = row.lines - sum(not line.startswith(GAP) for line in code)
    return [_cut(row, left)] if left > 0 else []


def _cut(row: Row, lines: int) -> str:
    return f'{GAP} {lines} of {row.lines} lines not shown: get_function "{row.place}"]'
