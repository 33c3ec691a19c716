"""What a patch of git changes in the files that were there before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

_SECTION = re.compile(r"^(?=diff --git )", re.M)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+")


def edited_files(patch: str) -> dict[str, tuple[int, ...]]:
    r"""Path of each file that is edited, renamed or removed -> its edited lines; new files and copies are left out.

    Lines are numbered from 1 as before the patch: those removed, and the line before what is inserted.
    Raises ValueError for a path whose quotes are wrong.

    >>> edited_files("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -2,3 +2,3 @@\n a\n-b\n+c\n d\n+e\n")
    {'x': (3, 4)}
    """
    edited: dict[str, tuple[int, ...]] = {}
    for section in _SECTION.split(patch):
        lines = section.split("\n")
        head = list(takewhile(lambda line: not line.startswith("@@ "), lines))
        if path := _old_path(head):
            edited[path] = tuple(dict.fromkeys(_edited_lines(lines[len(head) :])))
    return edited


def _old_path(head: Sequence[str]) -> str | None:
    """The path before the patch; None where there was none."""
    if not head[0].startswith("diff --git ") or any(line.startswith(("new file mode ", "copy from ")) for line in head):
        return None
    for line in head:
        if line.startswith("rename from "):
            return _unquoted(line.removeprefix("rename from "))
        if line.startswith("--- "):
            path = _unquoted(line.removeprefix("--- ").removesuffix("\t"))
            return None if path == "/dev/null" else path.removeprefix("a/")
    both = head[0].removeprefix("diff --git ")  # nothing else says it of binary files and changed modes
    return _unquoted(both[: len(both) // 2]).removeprefix("a/")


def _unquoted(path: str) -> str:
    """A path as it is; git puts those with unusual characters in quotes, bytes as octal numbers."""
    if not path.startswith('"'):
        return path
    return path[1:-1].encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")


def _edited_lines(hunks: Sequence[str]) -> Iterator[int]:
    old = 0
    for line in hunks:
        if hunk := _HUNK.match(line):
            old = int(hunk[1]) + (hunk[2] == "0")  # of no lines: the one after which lines are inserted
        elif line.startswith("-"):
            yield old
            old += 1
        elif line.startswith("+"):
            yield old - 1
        elif not line.startswith("\\"):
            old += 1
