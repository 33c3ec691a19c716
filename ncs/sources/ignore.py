"""Ignore files (.gitignore, .ncsignore): which paths the owner of a tree wants left out.

Patterns mean exactly what they mean to git; a test compares random trees with `git ls-files`. pathspec does not: on
the corpus of that test it differs from git in 30 of 150 trees (a pattern of it also matches all that lies below, so
that `!` means something else), it takes three times as long for a path, and a hostile line such as `*a*a*a*a*ab`
keeps it busy for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from errno import EFBIG
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ncs.errors import SourceError
from ncs.files import read_regular

GITIGNORE = ".gitignore"
NCSIGNORE = ".ncsignore"
MAX_BYTES, MAX_PATTERNS = 1 << 19, 10_000
"""Of one ignore file; as many special characters as patterns. git itself leaves out those over 100 MB."""
MAX_WORK = 1 << 20
"""Special characters of all patterns in force, times characters of a path. A path beyond it counts as ignored."""
_SPECIAL = frozenset("*?[\\")
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
STAR, FOLDERS, FOLDERS_SLASH = "*", "**", "**/"
"""Pieces of a pattern besides regular expressions: inside a name, across folders, and with a slash or nothing."""
_GREEDY = {STAR: "[^/]*", FOLDERS: ".*", FOLDERS_SLASH: "(?:.*/)?"}
_LAZY = {STAR: "[^/]*?", FOLDERS: ".*?", FOLDERS_SLASH: "(?:.*?/)??"}


class Pattern(NamedTuple):
    """One line of an ignore file as a regular expression over the whole path, without a slash at its end.

    literal: the expression is a text to compare with. of_name: the line has no slash but at its end, so it is matched
    against the last name of the path.
    """

    expression: str
    literal: bool
    of_name: bool
    ignored: bool
    folders_only: bool

    def matches(self, text: str) -> bool:
        """Whether it matches a path, or of_name a name, without a slash at its end."""
        return text == self.expression if self.literal else _compile(self.expression).fullmatch(text) is not None


@lru_cache(MAX_PATTERNS)
def _compile(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL)


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one ignore file, for paths relative to the root of a walk.

    special: how many special characters it has. base: the folder of the root that holds the file, "" or "a/b/".
    above: where the file lies above the root, the root's path below it, "" or "c/d/".
    """

    patterns: tuple[Pattern, ...]
    literals: frozenset[str]
    any_name: re.Pattern[str]
    any_path: re.Pattern[str]
    special: int
    base: str = ""
    above: str = ""

    def decide(self, path: str) -> bool | None:
        """True: ignored, False: re-included by a `!` pattern, None: not mentioned. Folders end in a slash."""
        is_folder = path.endswith("/")
        path = self.above + path[len(self.base) :].removesuffix("/")
        name = path[path.rfind("/") + 1 :]
        literals = self.literals
        if not (name in literals or path in literals or self.any_name.fullmatch(name) or self.any_path.fullmatch(path)):
            return None  # most paths
        for pattern in reversed(self.patterns):
            if (is_folder or not pattern.folders_only) and pattern.matches(name if pattern.of_name else path):
                return pattern.ignored
        return None


@dataclass(frozen=True, slots=True)
class Ignores:
    """The ignore files that hold in a folder, outermost first.

    As in git, the deepest file decides, and in it the last pattern that matches; as in ripgrep, the tool's own file
    takes precedence over every .gitignore. A .gitignore holds up to the border of its repository, an .ncsignore also
    in the repositories below it.
    """

    git: tuple[IgnoreFile, ...] = ()
    ncs: tuple[IgnoreFile, ...] = ()

    def by_ncsignore(self, path: str) -> bool | None:
        """Whether .ncsignore ignores the path; False keeps it whatever other rules say, None: not mentioned."""
        return _decide(self.ncs, path) if self.ncs else None

    def by_gitignore(self, path: str) -> bool:
        """Whether .gitignore ignores this path."""
        return _decide(self.git, path) is True

    def with_git(self, file: IgnoreFile | None) -> Ignores:
        """These rules with one more .gitignore, deeper than the others."""
        return self if file is None else replace(self, git=(*self.git, file))

    def with_ncs(self, file: IgnoreFile | None) -> Ignores:
        """These rules with one more .ncsignore, deeper than the others."""
        return self if file is None else replace(self, ncs=(*self.ncs, file))

    def without_git(self) -> Ignores:
        """The rules that still hold inside another repository."""
        return replace(self, git=())


NO_IGNORES = Ignores()


def _decide(files: tuple[IgnoreFile, ...], path: str) -> bool | None:
    if sum(file.special for file in files) * len(path) > MAX_WORK:
        return True
    for file in reversed(files):
        if (decision := file.decide(path)) is not None:
            return decision
    return None


def load(path: Path, *, base: str = "", above: str = "") -> IgnoreFile | None:
    """The ignore file at `path`; None where none can be read. Links are not followed, as in git.

    Raises TooLarge.
    """
    try:
        data = read_regular(path, MAX_BYTES, follow=False)
    except OSError as error:
        if error.errno == EFBIG:
            raise TooLarge(path) from error
        return None
    return parse(data, base=base, above=above, path=path)


class TooLarge(SourceError):
    """An ignore file is over the limits; rules that nobody wrote by hand take longer than reading the files."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(
            f"{path} has more than {MAX_BYTES:,} bytes or {MAX_PATTERNS:,} patterns; write fewer and wider ones"
        )


def parse(data: bytes | None, *, base: str = "", above: str = "", path: Path | str = "") -> IgnoreFile | None:
    """The patterns of an ignore file; None where it has none. data: None where it is too large to be read.

    Raises TooLarge.
    """
    special = sum(map(data.count, (b"*", b"?", b"[", b"\\"))) if data is not None else 0
    if data is None or len(data) > MAX_BYTES or special > MAX_PATTERNS:
        raise TooLarge(path or base + NCSIGNORE)
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    parsed = (pattern for number, line in enumerate(lines) if (pattern := parse_line(line, number)) is not None)
    patterns = tuple(islice(parsed, MAX_PATTERNS + 1))
    if len(patterns) > MAX_PATTERNS:
        raise TooLarge(path or base + NCSIGNORE)
    literals = frozenset(pattern.expression for pattern in patterns if pattern.literal)
    any_name, any_path = (_any_of(patterns, of_name) for of_name in (True, False))
    return IgnoreFile(patterns, literals, any_name, any_path, special, base, above) if patterns else None


def _any_of(patterns: Sequence[Pattern], of_name: bool) -> re.Pattern[str]:
    """The patterns with special characters."""
    sources = [f"(?:{each.expression})" for each in patterns if not each.literal and each.of_name == of_name]
    return re.compile("|".join(sources) or "(?!)", re.DOTALL)


def parse_line(line: str, number: int = 0) -> Pattern | None:
    r"""The pattern on a line; None for a comment, an empty line, or what can match nothing.

    number: makes the named groups of each line of a file different.

    >>> parse_line("!/src/*.py")
    Pattern(expression='src/[^/]*\\.py', literal=False, of_name=False, ignored=False, folders_only=False)
    """
    line = line.removesuffix("\r")
    if not line or line[0] == "#":
        return None
    line = _without_trailing_spaces(line)
    ignored = not line.startswith("!")
    pattern = line if ignored else line[1:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    if not _SPECIAL.intersection(pattern):
        return Pattern(pattern, True, not anchored, ignored, folders_only)
    pieces = _translate(pattern, anchored)
    if pieces is None:
        return None
    return Pattern(_join(pieces, f"n{number}_"), False, not anchored, ignored, folders_only)


def _without_trailing_spaces(line: str) -> str:
    """Without spaces at the end, unless a backslash escapes the first."""
    end = len(line.rstrip(" "))
    backslashes = end - len(line[:end].rstrip("\\"))
    return line[: end + 1] if backslashes % 2 else line[:end]


def _translate(pattern: str, anchored: bool) -> list[str] | None:
    """The pattern in pieces; None where a bracket or backslash is left open, which matches nothing."""
    # git compares the text before the first special character separately, so `a**/b` acts as `**/b` after an a
    start = at = next(at for at, char in enumerate(pattern) if char in _SPECIAL)
    pieces = [re.escape(pattern[:start])]
    while at < len(pattern):
        if stars := _STARS.match(pattern, at):
            at_border = anchored and (at == start or pattern[at - 1] == "/")
            pieces.append(_star(stars, pattern[stars.end() : stars.end() + 2], at_border))
            at = stars.end() + (pieces[-1] == FOLDERS_SLASH)
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


def _star(stars: re.Match[str], after: str, at_border: bool) -> str:
    """`**` alone between slashes crosses folders, and with its slash may stand for nothing."""
    if at_border and len(stars[0]) > 1:
        if after in ("", "\\/"):
            return FOLDERS
        if after.startswith("/"):
            return FOLDERS_SLASH
    return STAR


def _join(
    pieces: Sequence[str],
    prefix: str,
    levels: Sequence[Sequence[str]] = ((FOLDERS, FOLDERS_SLASH), (STAR,)),
    last: bool = True,
) -> str:
    """One expression, in which no star but the last backtracks; prefix: of the names of its groups.

    The text between two `*` of a folder, or between two `**`, is matched where it occurs first: a later occurrence
    never helps. Without that, a line such as `*a*a*a*a*a*a*b` could take hours.
    """
    if not levels:
        return "".join(pieces)
    blocks: list[tuple[str, list[str]]] = [("", [])]  # a star and what follows it
    for piece in pieces:
        if piece in levels[0]:
            blocks.append((piece, []))
        else:
            blocks[-1][1].append(piece)
    source = ""
    for number, (star, block) in enumerate(blocks):
        group, is_last = f"{prefix}{number}", last and number == len(blocks) - 1
        inside = _join(block, f"{group}_", levels[1:], is_last)
        if not star:
            source = inside
        elif is_last:
            source += _GREEDY[star] + inside
        else:
            source += f"(?=(?P<{group}>{_LAZY[star]}{inside}))(?P={group})"
    return source


def _translate_bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """The character set that begins at `at`, after its bracket, and where it ends; None if it never does."""
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
