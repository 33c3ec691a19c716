"""What IPython adds to Python (`%matplotlib inline`, `!pip install`, `hide?`), made comments so that cells parse."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"(?P<string>\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}(?:\\.|[^\\])*?(?:'{3}|\Z)"
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<comment>#[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<joined>\\\n)|(?P<line>\n)",
    re.DOTALL,
)
_MAGIC = re.compile(r"[ \t]*(?:[%!?]|,(?=\w)|;(?=\w)|[^\W\d][\w.]*\?{1,2}[ \t]*$)")
_ASSIGNED = re.compile(r"([ \t]*[\w.\[\]'\", ]+=[ \t]*)([!%].*)", re.DOTALL)
_CELL = re.compile(r"\s*%%(\w+)[ \t]*([^\n]*)(?:\n|\Z)")

CELL_LANGUAGES = {
    **dict.fromkeys(("bash", "sh", "script", "cmd"), "bash"),
    **dict.fromkeys(("javascript", "js"), "javascript"),
    **dict.fromkeys(("ruby", "perl", "sql", "r", "julia", "cython"), ""),
    **dict.fromkeys(("html", "svg", "latex", "markdown", "file", "writefile"), None),
}
"""Cell magics whose cell is of another language: "" of the one named so; None: by the file named there, or no code."""


def cell_language(code: str) -> tuple[str, str]:
    """The language that a cell magic gives to a cell ("" where none does), and the argument of `%%writefile`.

    >>> cell_language("%%bash\\nls"), cell_language("%%time\\nf()"), cell_language("%%writefile a.py\\nx = 1")
    (('bash', ''), ('', ''), ('writefile', 'a.py'))
    """
    match = _CELL.match(code)
    if match is None:
        return "", ""
    magic = match[1].lower()
    language = CELL_LANGUAGES.get(magic, magic)
    if magic not in CELL_LANGUAGES:
        return "", ""
    if language is None:
        return ("writefile", match[2].split()[-1]) if magic in ("writefile", "file") and match[2] else ("none", "")
    return language or magic, ""


def plain(code: str) -> str:
    """The same lines, those that only IPython understands as comments; what a command's result is put into stays.

    >>> plain("%matplotlib inline\\nx = !ls\\nprint('a'\\n  % x)")
    "#%matplotlib inline\\nx = None  # !ls\\nprint('a'\\n  % x)"
    """
    return "".join(map(_statement, _statements(code)))


def _statements(code: str) -> Iterator[str]:
    """Pieces that begin where a statement may begin: at a line's start outside of brackets and strings."""
    start = depth = 0
    at = 0
    while (match := _TOKEN.search(code, at)) is not None:
        at = match.end()
        if _MAGIC.match(code, start) and depth == 0:  # its quotes and brackets are a shell's
            at = _end(code, start)
            yield code[start:at]
            start = at
        elif match.lastgroup == "open":
            depth += 1
        elif match.lastgroup == "close":
            depth = max(0, depth - 1)
        elif match.lastgroup == "line" and not depth:
            yield code[start:at]
            start = at
    yield code[start:]


def _end(code: str, start: int) -> int:
    """Behind a magic's line; it goes on after a backslash."""
    at = code.find("\n", start)
    while at > 0 and code[at - 1] == "\\":
        at = code.find("\n", at + 1)
    return len(code) if at < 0 else at + 1


def _statement(code: str) -> str:
    if _MAGIC.match(code):
        indent = len(code) - len(code.lstrip(" \t"))
        lines = code[indent:].split("\n")
        commented = "\n".join("#" + line if line else line for line in lines)
        return f"{code[:indent]}pass  {commented}" if indent else commented  # indented it may be all of a block
    if (match := _ASSIGNED.match(code)) is not None:
        command, end, rest = match[2].partition("\n")
        return f"{match[1]}None  # {command}{end}{rest}"
    return code
