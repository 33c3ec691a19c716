"""Code whose meaning hangs on its layout: what the layout says, apart from how it is written."""

from __future__ import annotations

import re

_PLAIN = rb"""[^()\[\]{}\n"'\\]*"""
_SIMPLE = rb"""(?:"(?!"")[^"\\\n]*"|'(?!'')[^'\\\n]*')"""
_FLAT = rb"[(\[{]" + _PLAIN + rb"(?:" + _SIMPLE + _PLAIN + rb")*[)\]}]"
_TOKEN = re.compile(
    rb"""(?:(?P<string>(?P<quotes>\"{3}|'{3})(?:\\.|[^\\])*?(?P=quotes)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    rb"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<joined>\\\n)|(?P<line>\n[\s\0]*))"
    # and what follows on its line up to the next that matters: names, strings, brackets that close at once
    + _PLAIN + rb"(?:(?:" + _FLAT + rb"|" + _SIMPLE + rb")" + _PLAIN + rb")*",
    re.DOTALL,
)  # fmt: skip
_SAME, _DEEPER, _LESS = 0x0E, 0x0F, 0x10
"""Marks: control characters, no white space; _LESS and up for one level less and more."""
_MOST = 15


def marked(code: bytes) -> bytes:
    r"""Code of the same length, a mark for every line end that ends a statement and says how the depth changes.

    code: comments and docstrings blanked out by NULs. Line ends in brackets, in strings, after a backslash and of
    blank lines get no mark; depth counts blocks, so the width of indentation does not matter.

    >>> marked(b"if a:\n  b(\n  c)\nd")
    b'if a:\x0f  b(\n  c)\x10d'
    """
    marks = bytearray(code)
    brackets = 0
    columns = [0]
    for token in _TOKEN.finditer(code):
        what = token.lastgroup
        if what == "open":
            brackets += 1
        elif what == "close":
            brackets = max(brackets - 1, 0)
        elif what == "joined":
            marks[token.start()] = 0
        elif what == "line" and not brackets and token.end("line") < len(code):
            space = token["line"]
            at = space.rindex(b"\n")
            indent = space[at + 1 :].partition(b"\0")[0]
            marks[token.start() + at] = _change(columns, len(indent.expandtabs()))
    return bytes(marks)


def _change(columns: list[int], column: int) -> int:
    """The mark of a line that starts at a column; columns: where the open blocks start."""
    left = len(columns)
    while len(columns) > 1 and columns[-1] > column:
        columns.pop()
    left -= len(columns)
    if column > columns[-1]:
        columns.append(column)
        return _DEEPER if not left else _LESS + _MOST  # between two levels: an error in the file
    return _LESS + min(left, _MOST) - 1 if left else _SAME
