"""Git's ignore patterns as regular expressions, exactly: a test compares them with git itself.

pathspec and its like also say that what lies below an ignored folder is ignored; a walk from above
asks for each folder by itself, and only so does `!` mean what it means to git.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

_WILD = re.compile(r"[*?\[\\]")
_STARS = re.compile(r"\*+")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\ \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\ \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file.

    source: an expression that is to match all of a path (without a slash at its end), or all of its
    last name where the line has no slash but at its end.
    """

    source: str
    of_name: bool
    ignored: bool
    folders_only: bool


def parse_line(line: str, number: int = 0) -> Pattern | None:
    r"""The pattern on a line; None for a comment, an empty line, or what can match nothing.

    number: tells the named groups of one line from those of another.

    >>> parse_line("!/src/*.py")
    Pattern(source='src/[^/]*\\.py', of_name=False, ignored=False, folders_only=False)
    """
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    line = _without_trailing_spaces(line)
    ignored = not line.startswith("!")
    pattern = line if ignored else line[1:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    pieces = _translate(pattern, anchored) if pattern else None
    if pieces is None:
        return None
    return Pattern(_join(pieces, number), not anchored, ignored, folders_only)


def _without_trailing_spaces(line: str) -> str:
    """Spaces at the end do not count, unless a backslash stands before them."""
    kept = len(line.rstrip(" "))
    backslashes = kept - len(line[:kept].rstrip("\\"))
    return line[: kept + 1] if backslashes % 2 else line[:kept]


class _Star(NamedTuple):
    """A `*`, or a `**` that crosses folders; slash: it stands for nothing or ends in one."""

    crosses: bool = False
    slash: bool = False


def _translate(pattern: str, anchored: bool) -> list[str | _Star] | None:
    """The pattern in pieces; None where a bracket or backslash is left open: that matches nothing."""
    wild = _WILD.search(pattern)
    # git compares what stands before the first special character apart, so `a**/b` acts as `**/b` after an a
    start = at = wild.start() if wild else len(pattern)
    pieces: list[str | _Star] = [re.escape(pattern[:start])]
    while at < len(pattern):
        if stars := _STARS.match(pattern, at):
            star = _star(pattern, stars, anchored and (at == start or pattern[at - 1] == "/"))
            pieces.append(star)
            at = stars.end() + star.slash
        elif pattern[at] == "[":
            bracket = _translate_bracket(pattern, at + 1)
            if bracket is None:
                return None
            pieces.append(bracket[0])
            at = bracket[1]
        elif pattern[at] == "?":
            pieces.append("[^/]")
            at += 1
        else:
            at += pattern[at] == "\\"
            if at == len(pattern):
                return None
            pieces.append(re.escape(pattern[at]))
            at += 1
    return pieces


def _star(pattern: str, stars: re.Match[str], at_border: bool) -> _Star:
    """`**` alone between slashes crosses folders, and with its slash may stand for nothing."""
    after = pattern[stars.end() : stars.end() + 2]
    if at_border and stars.end() - stars.start() > 1:
        if after in ("", "\\/"):
            return _Star(crosses=True)
        if after.startswith("/"):
            return _Star(crosses=True, slash=True)
    return _Star()


def _join(pieces: list[str | _Star], number: int) -> str:
    """One expression, in which no star but the last is tried at more than one place.

    What stands between two `*` of a folder, or between two `**`, is taken where it is found first: a
    later place never helps. Without that a line such as `*a*a*a*a*a*a*b` could take hours.
    """
    names = (f"n{number}_{n}" for n in count())

    def first_place(source: str) -> str:
        name = next(names)
        return f"(?=(?P<{name}>{source}))(?P={name})"

    def join_folder_stars(pieces: list[str | _Star], last: bool) -> str:
        begin, *rest = _split(pieces, crossing=False)
        stars = [first_place("[^/]*?" + "".join(map(str, block))) for _, block in rest]
        if last and rest:
            stars[-1] = "[^/]*" + "".join(map(str, rest[-1][1]))
        return "".join(map(str, begin[1])) + "".join(stars)

    begin, *rest = _split(pieces, crossing=True)
    source = join_folder_stars(begin[1], not rest)
    for star, block in rest:
        last = block is rest[-1][1]
        inside = join_folder_stars(block, last)
        if last:
            source += ("(?:.*/)?" if star.slash else ".*") + inside
        else:
            source += first_place(("(?:.*?/)??" if star.slash else ".*?") + inside)
    return source


def _split(pieces: list[str | _Star], *, crossing: bool) -> list[tuple[_Star, list[str | _Star]]]:
    """Each star of that kind with the pieces up to the next; what comes before the first has a star of no meaning."""
    blocks: list[tuple[_Star, list[str | _Star]]] = [(_Star(), [])]
    for piece in pieces:
        if isinstance(piece, _Star) and piece.crosses == crossing:
            blocks.append((piece, []))
        else:
            blocks[-1][1].append(piece)
    return blocks


def _translate_bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """The set that begins at `at`, behind its bracket, as an expression and where it ends; None if it never does."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    before = ""  # the character that a range may begin with
    first = at
    while True:
        if at >= len(pattern):
            return None
        char = pattern[at]
        if char == "]" and at > first:
            break
        if char == "[" and pattern[at + 1 : at + 2] == ":" and (end := pattern.find("]", at + 2)) > 0:
            name = pattern[at + 2 : end]
            if name.endswith(":"):
                if name[:-1] not in _CLASSES:
                    return None
                items.append(_CLASSES[name[:-1]])
                before, at = "", end + 1
                continue
        is_range = char == "-" and before and pattern[at + 1 : at + 2] not in ("", "]")
        at += bool(is_range)
        at += pattern[at] == "\\"
        if at >= len(pattern):
            return None
        char = pattern[at]
        if not is_range:
            items.append(re.escape(char))
        elif before <= char:
            items.append(f"{re.escape(before)}-{re.escape(char)}")
        before, at = ("" if is_range else char), at + 1
    if not items:  # only ranges that hold nothing: [b-a]
        return ("[^/]", at + 1) if negated else None
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", at + 1
