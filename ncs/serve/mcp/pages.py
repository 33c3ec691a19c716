"""Answers within a number of tokens: hits as lines of text and as JSON, how much of their code, and the way to more."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Protocol

from ncs.search.highlight import excerpt, marks
from ncs.serve.mcp.schemas import start_of
from ncs.serve.mcp.settings import TOKEN_BYTES

HEADERS = 0.6
"""The share of the limit that headers may take where there is code to show."""
GAP = "[..."
"""The start of a line that replaces lines left out."""
SPARE = 160
"""Bytes reserved for the end of an answer."""
MAX_LINE = 240
"""Characters of a line of code, or of a note."""
MAX_NAME = 300
"""Characters of a path or name."""
MAX_NOTES = 6
MAX_PLACES = 2
"""Copies of a hit that are named."""
MAX_MARKED = 1 << 20
"""Characters of code that are searched for lines that matter."""
EXCERPT_LINES = 14
SPACES = "\t\u3000"
"""Shown beside printable characters: tabs, and the space of Chinese and Japanese."""


@dataclass(frozen=True, slots=True)
class Row:
    """A hit to show. header: a line; data: its JSON; code: lines that may be shown, out of `lines`; place: for more."""

    header: str
    data: Mapping[str, Any]
    code: Sequence[str] = ()
    lines: int = 0
    place: str = ""


@dataclass
class Page:
    """An answer: text for the model, and the same as JSON."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)


class Paged(Protocol):
    """Arguments of a tool that answers in pages."""

    k: int
    max_tokens: int
    cursor: str | None


def escape(text: str) -> str:
    r"""One line of text in which unprintable characters are escaped: control characters, bidi marks, surrogates.

    >>> escape("a\x1b[2Jb\u202ec\n")
    'a\\x1b[2Jb\\u202ec\\x0a'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in SPACES else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def shorten(text: str, limit: int = MAX_LINE) -> str:
    """Escaped, and cut where it is longer.

    >>> shorten("x" * 300, 20)
    'xxxxxxxxxxxxxxxxxxxx... (280 characters more)'
    """
    if len(text) <= limit:
        return escape(text)
    return f"{escape(text[:limit])}... ({len(text) - limit:,} characters more)"


def lines_of(code: str) -> list[str]:
    """Lines of code, each escaped and shortened, without carriage returns at their ends."""
    return [shorten(line.removesuffix("\r")) for line in code.split("\n")]


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode("utf-8", "replace"))


def json_size(value: object) -> int:
    """Bytes of a value as JSON."""
    return size(json.dumps(value, ensure_ascii=False))


def tokens(text: str) -> int:
    """How many tokens a text is estimated to be.

    >>> tokens("0123456789")
    3
    """
    return -(-size(text) // TOKEN_BYTES)


def row_of(hit: Mapping[str, Any], path: str, project: str, query: str, *, several: bool) -> Row:
    """A hit of ncs.answer as a row. query: its words choose the lines shown; several: name the project in the text."""
    path = shorten(path, MAX_NAME)
    place = f"{path}:{hit['start_line']}"
    data = _clean({name: value for name, value in hit.items() if name not in ("code", "copies", "near_copies")})
    for name in ("copies", "near_copies"):
        if name in hit:
            data[name] = [_clean(copy) for copy in hit[name][:MAX_PLACES]]
    data |= {"place": place, "project": project}
    code: str = hit.get("code") or ""
    prefix = f"[{escape(project)}] " if several else ""
    return Row(prefix + _header(hit, path), data, excerpt_of(code, query), code.count("\n") + 1 if code else 0, place)


def _header(hit: Mapping[str, Any], path: str) -> str:
    details = [hit["kind"]]
    if hit.get("confidence") is not None:
        details.append(f"{hit['confidence']:.2f}")
    if "reverse" in hit:
        details.append(f"{hit['score']:.0%} similar")
    if copies := len(hit.get("copies", ())) + len(hit.get("near_copies", ())):
        details.append(f"{copies} more like it")
    lines = f"{hit['start_line']}-{hit['end_line']}"
    return f"{path}:{lines} {shorten(hit['qualified_name'], MAX_NAME)} ({', '.join(details)})"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return shorten(value, MAX_NAME)
    if isinstance(value, Mapping):
        return {name: _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value[:20]] if isinstance(value, Sequence) else value


def excerpt_of(code: str, query: str) -> list[str]:
    """The lines of code that matter to a query, with a line in place of those left out."""
    if not code:
        return []
    lines = lines_of(code)
    starts = [0, *accumulate(len(line) + 1 for line in code.split("\n"))]
    marked = sorted({bisect_right(starts, start) - 1 for start, _ in marks(code[:MAX_MARKED], query)})
    excerpt_lines: list[str] = []
    end = 0
    for first, after in excerpt(len(lines), marked, EXCERPT_LINES):
        if first > end:
            excerpt_lines.append(f"{GAP} {first - end} lines]")
        excerpt_lines += lines[first:after]
        end = after
    return excerpt_lines


def hits_needed(arguments: Paged) -> int:
    """How many rows to search for: to the end of the page, and one that tells whether more follow."""
    return start_of(arguments) + arguments.k + 1


def short_notes(notes: Iterable[str]) -> list[str]:
    """Each note once, escaped and shortened, and only the first of them."""
    return [shorten(note) for note in dict.fromkeys(notes)][:MAX_NOTES]


def page(
    rows: Sequence[Row], notes: Sequence[str], data: Mapping[str, object], arguments: Paged, projects: Iterable[str]
) -> Page:
    """The rows of a page, those that fit; data: more keys of its JSON."""
    start, short = start_of(arguments), short_notes(notes)
    numbered = [
        replace(row, header=f"{rank}. {row.header}", data={**row.data, "rank": rank})
        for rank, row in enumerate(rows[start : start + arguments.k], start + 1)
    ]
    envelope = {**data, "index": ", ".join(shorten(name, 60) for name in projects), "notes": short}
    more = len(rows) > start + arguments.k
    return fill([f"note: {note}" for note in short], envelope, numbered, arguments.max_tokens, start=start, more=more)


def fill(
    head: Sequence[str], envelope: Mapping[str, Any], rows: Sequence[Row], max_tokens: int, *, start: int, more: bool
) -> Page:
    """As many rows as fit, in order, with as much of their code as fits; text and JSON each keep the limit.

    start: the number of the first row; more: whether rows follow these. next_cursor leads to the rest.
    """
    limit = max_tokens * TOKEN_BYTES
    head, envelope = _cut_notes(head, envelope, limit)
    fitting_rows = _rows_that_fit(head, envelope, rows, limit)
    codes = _codes(head, envelope, fitting_rows, limit)
    cursor = str(start + len(fitting_rows)) if more or len(fitting_rows) < len(rows) else None
    blocks = ["\n".join(head)]
    for row, code in zip(fitting_rows, codes, strict=True):
        hidden = row.lines - sum(not line.startswith(GAP) for line in code)
        blocks.append("\n".join([row.header, *code, *([_cut_line(row, hidden)] if hidden > 0 else [])]))
    if cursor is not None:
        blocks.append(f'More: the same call with cursor "{cursor}".')
    hits = [{**row.data, "code": "\n".join(code) or None} for row, code in zip(fitting_rows, codes, strict=True)]
    return Page("\n\n".join(filter(None, blocks)), {**envelope, "hits": hits, "next_cursor": cursor})


def _cut_notes(head: Sequence[str], envelope: Mapping[str, Any], limit: int) -> tuple[list[str], dict[str, Any]]:
    """Without the last notes, where notes alone would take a third of the answer."""
    lines, data = list(head), dict(envelope)
    while len(lines) > 1 and size("\n".join(lines)) > limit // 3:
        lines.pop()
    while data.get("notes") and json_size(data) > limit // 3:
        data["notes"] = data["notes"][:-1]
    return lines, data


def _rows_that_fit(head: Sequence[str], envelope: Mapping[str, Any], rows: Sequence[Row], limit: int) -> list[Row]:
    """The first rows, whose headers fit."""
    text, wire = size("\n".join(head)) + SPARE, json_size(envelope) + SPARE
    rows_that_fit: list[Row] = []
    for row in rows:
        text += size(row.header) + 2 + (size(_cut_line(row, row.lines)) if row.code else 0)
        wire += json_size({**row.data, "code": None}) + 2
        share = HEADERS if rows_that_fit and any(each.code for each in rows) else 1
        if max(text, wire) > limit * share:
            break
        rows_that_fit.append(row)
    return rows_that_fit


def _codes(head: Sequence[str], envelope: Mapping[str, Any], rows: Sequence[Row], limit: int) -> list[list[str]]:
    """The lines of code of each row: the first may take twice their share, what they leave goes to the next."""
    text = limit - size("\n".join(head)) - SPARE - sum(size(row.header) + 2 for row in rows)
    wire = limit - json_size(envelope) - SPARE - sum(json_size({**row.data, "code": None}) + 2 for row in rows)
    text -= sum(size(_cut_line(row, row.lines)) + 1 for row in rows if row.code)
    codes: list[list[str]] = []
    for number, row in enumerate(rows):
        share = min(1.0, 2 / (len(rows) - number))
        code, text_left, wire_left = list[str](), text * share, wire * share
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


def _cut_line(row: Row, lines: int) -> str:
    return f'{GAP} {lines} of {row.lines} lines not shown: get_function "{row.place}"]'
