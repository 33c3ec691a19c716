"""Answers within a number of tokens: hits as lines of text and as JSON, how much of their code, and the way to more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ncs.errors import BadInput
from ncs.learn.confidence import LIKELY
from ncs.search.highlight import has_file_lines

TOKEN_BYTES = 4
"""Bytes of UTF-8 that count as one token: an estimate, as the tokenizer of the agent's model is not known here."""
HEADERS = 0.75
"""The share of the room that headers may take where there is code to show."""
GAP = "[..."
"""The start of a line that replaces lines left out."""
SPARE = 120
"""Bytes reserved for the end of an answer."""
MAX_LINE = 240
"""Characters of a line of code, or of a note."""
MAX_NAME = 300
"""Characters of a path or name."""
IN_TEXT = ("code", "excerpt", "marked")
"""Keys of a hit that say which lines are shown."""
MAX_NOTES = 6
MAX_PLACES = 2
"""Copies of a hit that are named."""
WHOLE = 'Code of a hit, or all of it: get_function "path:line".'
BRIEF = (
    *("rank", "place", "line", "end_line", "kind", "name", "qualified_name", "confidence", "likelihood"),
    *("score", "match", "reasons", "lines", "project"),
)
"""Keys of a hit that is shown by one line, and of all hits where not everything fits."""
SPACES = "\t\u3000"
"""Shown beside printable characters: tabs, and the space of Chinese and Japanese."""


class Line(NamedTuple):
    """A line of code with its number in the file, "" where that is not known; None for a line of ncs's own.

    In text every line of code begins with its number or at least a bar, so that none passes for one of ncs's own.
    stands_for: the number of lines of the code that it replaces or is.
    """

    number: str | None
    text: str
    stands_for: int = 1

    def __str__(self) -> str:
        return self.text if self.number is None else f"{self.number}| {self.text}"

    @property
    def size(self) -> int:
        """Bytes of its larger form: text or JSON."""
        return max(size(str(self)) + 1, json_size(self.text))


class Row(NamedTuple):
    """A hit to show as a header line, with or without code. data: its JSON, of which a hit without code has BRIEF;
    code: the lines that may be shown, of `lines` in all; at: the one to begin with if it does not fit otherwise.
    """

    header: str
    data: Mapping[str, Any]
    code: Sequence[Line]
    lines: int
    at: int = 0

    @property
    def brief(self) -> dict[str, Any]:
        """Its JSON without code."""
        return {**{name: self.data[name] for name in BRIEF if name in self.data}, "code": None}

    @property
    def size(self) -> int:
        """Bytes of its larger form without code: text or JSON."""
        return max(size(self.header) + 1, json_size(self.brief) + 2)

    @property
    def size_beside_code(self) -> int:
        """Bytes that code adds to it, besides its lines."""
        return max(size(self.cut_line(self.lines)) + 1, json_size(self.data) - json_size(self.brief) + 20)

    @property
    def size_of_code(self) -> int:
        """Bytes that all of its code adds to it."""
        return self.size_beside_code + sum(line.size for line in self.code) if self.code else 0

    def cut_line(self, lines: int) -> str:
        """The line that replaces the lines after those shown."""
        return f"{GAP} {lines} of {self.lines} lines]"

    def lines_after(self, code: Sequence[Line]) -> int:
        """How many lines follow those shown, which begin with the first or with that at `at`."""
        start = 0 if code[0] is self.code[0] else self.at
        return self.lines - sum(line.stands_for for line in self.code[: start + len(code)])

    def cut_to(self, room: int) -> Row:
        """The row, or only its place if the row has more than `room` bytes; BadInput if the place has more, too."""
        if self.size <= room:
            return self
        rank = f"{self.data['rank']}. " if "rank" in self.data else ""
        data = {name: self.data[name] for name in ("rank", "place") if name in self.data}
        row = Row(f"{rank}{self.data['place']}", data, (), 0)
        if row.size > room:
            raise BadInput("max_tokens: ask for more")
        return row


@dataclass
class Page:
    """An answer: text for the model, and the same as JSON."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)


def escape(text: str) -> str:
    r"""One line of text in which unprintable characters are escaped: control characters, bidi marks, surrogates.

    >>> escape("a\x1b[2Jb\u202ec\n")
    'a\\x1b[2Jb\\u202ec\\n'
    """
    if text.isprintable():
        return text
    shown = (each if each.isprintable() or each in SPACES else each.encode("unicode_escape").decode() for each in text)
    return "".join(shown)


def shorten(text: str, limit: int = MAX_LINE) -> str:
    """Escaped, and cut where it is longer.

    >>> shorten("x" * 300, 20)
    'xxxxxxxxxxxxxxxxxxxx... (280 characters more)'
    """
    if len(text) <= limit:
        return escape(text)
    return f"{escape(text[:limit])}... ({len(text) - limit:,} characters more)"


def lines_of(code: str, start: int | None) -> list[Line]:
    """Lines of code, each escaped and shortened, without carriage returns at their ends.

    start: the number of the first, None where they are not consecutive lines of the file.
    """
    texts = code.split("\n")
    width = len(str((start or 0) + len(texts) - 1))
    numbers = ["" if start is None else f"{start + at:>{width}}" for at in range(len(texts))]
    return [Line(number, shorten(text.removesuffix("\r"))) for number, text in zip(numbers, texts, strict=True)]


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode("utf-8", "replace"))


def json_size(value: object) -> int:
    """Bytes of a value as JSON."""
    return size(json.dumps(value, ensure_ascii=False))


def tokens(text: str) -> int:
    """The estimated number of tokens of a text.

    >>> tokens("0123456789")
    3
    """
    return -(-size(text) // TOKEN_BYTES)


def row_of(hit: Mapping[str, Any], path: str, project: str, *, several: bool) -> Row:
    """A hit of ncs.answer as a row. several: name the project in the text."""
    path = shorten(path, MAX_NAME)
    place = f"{path}:{hit['start_line']}"
    data = {name: _clean(value) for name, value in hit.items() if name not in IN_TEXT}
    for name in ("copies", "near_copies"):
        if name in data:
            data[name] = data[name][:MAX_PLACES]
    data |= {"place": place, "project": project}
    code: str = hit.get("code") or ""
    prefix = f"[{escape(project)}] " if several else ""
    n_lines = code.count("\n") + 1 if code else 0
    shows_code = code and (hit.get("rank") == 1 or hit.get("confidence") is None or hit["confidence"] >= LIKELY)
    shown = _excerpt(hit) if shows_code else []
    at = next((at for at, line in enumerate(shown) if line.number and int(line.number) == hit.get("line")), 0)
    return Row(prefix + _header(hit, path), data, shown, n_lines, at)


def _header(hit: Mapping[str, Any], path: str) -> str:
    lines = f"{hit['start_line']}-{hit['end_line']}"
    at, kind = (hit["line"], f"{hit['kind']} {lines}") if "line" in hit else (lines, hit["kind"])
    details = [kind]
    if hit.get("likelihood"):
        details.append(hit["likelihood"])
    if "reverse" in hit:
        details.append(f"{hit['score']:.0%} similar")
    if copies := len(hit.get("copies", ())) + len(hit.get("near_copies", ())):
        details.append(f"{copies} more like it")
    return escape(f"{path}:{at} {shorten(hit['qualified_name'], MAX_NAME)} ({', '.join(details)})")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return shorten(value, MAX_NAME)
    if isinstance(value, Mapping):
        return {name: _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value[:20]] if isinstance(value, Sequence) else value


def _excerpt(hit: Mapping[str, Any]) -> list[Line]:
    """The lines of a hit's excerpt, with a line in place of those left out."""
    lines = lines_of(hit["code"], hit["start_line"] if has_file_lines(hit) else None)
    excerpt_lines: list[Line] = []
    end = 0
    for first, after in hit["excerpt"]:
        if first > end:
            excerpt_lines.append(Line(None, f"{GAP} {first - end} lines]", first - end))
        excerpt_lines += lines[first:after]
        end = after
    return excerpt_lines


def short_notes(notes: Iterable[str]) -> list[str]:
    """Each note once, escaped and shortened, and only the first of them."""
    return [shorten(note) for note in dict.fromkeys(notes)][:MAX_NOTES]


def fill(
    notes: Sequence[str], data: Mapping[str, Any], rows: Sequence[Row], max_tokens: int, *, start: int, more: bool
) -> Page:
    """A page of as many rows as fit, in order, with as much of their code as fits; text and JSON each keep the limit.

    data: more keys of the JSON; start: the number of the first row; more: whether rows follow these. next_cursor leads
    to the rest. The last notes are left out where notes alone would take a third of the answer.
    """
    limit, notes, data = max_tokens * TOKEN_BYTES, list(notes), dict(data)
    while _head_size(notes, data) > limit // 3:
        notes.pop() if notes else data.popitem()
    room = limit - SPARE - _head_size(notes, data)
    if sum(row.size + row.size_of_code for row in rows) > room:
        rows = [row._replace(data=row.brief) for row in rows]
    fitting, codes = _fit_rows(rows, room, int((1 - HEADERS) * room))
    if not any(codes):
        fitting, codes = _fit_rows(rows, room, 0)
    cursor = str(start + len(fitting)) if more or len(fitting) < len(rows) else None
    lines, hits = [f"note: {note}" for note in notes], []
    for row, code in zip(fitting, codes, strict=True):
        after = row.lines_after(code) if code else 0
        lines += [row.header, *map(str, code), *([row.cut_line(after)] if after > 0 else [])]
        hits.append({**row.data, "code": "\n".join(line.text for line in code)} if code else row.brief)
    if any(row.lines for row in fitting):
        lines.append(WHOLE)
    if cursor is not None:
        lines.append(f'More: the same call with cursor "{cursor}".')
    return Page("\n".join(lines), {**data, "notes": notes, "hits": hits, "next_cursor": cursor})


def code_page(row: Row, code: str, notes: Sequence[str], max_tokens: int, *, start: int) -> Page:
    """A page of a function's code, from line `start` on, as many lines as fit."""
    first = row.data["start_line"]
    in_file = code.count("\n") == row.data["end_line"] - first
    lines = lines_of(code, first if in_file else None)
    if start >= len(lines):
        raise BadInput(f"cursor: it has {len(lines)} lines")
    limit, notes = max_tokens * TOKEN_BYTES, list(notes)
    while notes and _head_size(notes, row.data) > limit // 2:
        notes.pop()
    if _head_size(notes, row.data) > limit // 4:
        row = row._replace(data=row.brief).cut_to(limit // 2)
    head, data = [f"file {row.header}", *(f"note: {note}" for note in notes)], {**row.data, "notes": notes}
    room = limit - SPARE - max(size("\n".join(head)), json_size(data))
    end = start
    while end < len(lines) and (room := room - lines[end].size) >= 0:
        end += 1
    if end == start:  # of a line that does not fit, the beginning is shown
        end += 1
        line = lines[start]
        lines[start] = line._replace(text=shorten(line.text, max(room + line.size - 40, 0) // 4))
    before = [f"{GAP} from line {first + start}]"] if start else []
    remaining = len(lines) - end
    after = [f'{GAP} {remaining} of {len(lines)} lines follow: the same call with cursor "{end}"]'] if remaining else []
    shown, cursor = lines[start:end], str(end) if remaining else None
    structured = {**data, "code": "\n".join(line.text for line in shown), "next_cursor": cursor}
    return Page("\n".join([*head, *before, *map(str, shown), *after]), structured)


def _head_size(notes: Sequence[str], data: Mapping[str, Any]) -> int:
    return max(sum(size(note) + len("note: \n") for note in notes), json_size({**data, "notes": notes}))


def _fit_rows(rows: Sequence[Row], room: int, for_code: int) -> tuple[list[Row], list[list[Line]]]:
    """The first rows that fit, and the code of each. for_code: bytes that rows after the first leave for code."""
    fitting = [rows[0].cut_to(room)] if rows else []
    left = room - sum(row.size for row in fitting)
    of_code = sum(row.size_of_code for row in fitting)
    for row in rows[1:]:
        of_code += row.size_of_code
        if row.size > left - min(for_code, of_code):
            break
        fitting.append(row)
        left -= row.size
    return fitting, _codes(fitting, left)


def _codes(rows: Sequence[Row], room: int) -> list[list[Line]]:
    """The lines of code of each row: each may take twice its share of what the ones before left."""
    codes, left = list[list[Line]](), sum(bool(row.code) for row in rows)
    for row in rows:
        code = list[Line]()
        if row.code:
            share = min(1.0, 2 / left) * room - row.size_beside_code
            left -= 1
            reached = sum(line.size for line in row.code[: row.at + 1]) <= share
            for line in row.code if reached else row.code[row.at :]:
                share -= line.size
                if share < 0:
                    break
                code.append(line)
            while code and code[-1].number is None:
                code.pop()
            room -= sum(line.size for line in code) + (row.size_beside_code if code else 0)
        codes.append(code)
    return codes
