"""Blanks unclosed quotes and comments, on which patterns of strings and comments would take quadratic time: from each
they would search to the end of the line or of the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import AnyStr

FEW = 20
"""Up to this number of unclosed ones is left as it is."""
_BLANK = "\1"


def blank_quotes(code: str, quotes: Iterable[str] = ('"', "'"), *, lines: bool = True) -> str:
    r"""The code without escaped quotes in strings that are not closed. lines: strings end with their line.

    >>> blank_quotes(r'x = "\"' + 30 * r"\"" + "\ny = 'closed'") == r'x = "' + 31 * "\\\1" + "\ny = 'closed'"
    True
    """
    character, end = (r"[^\\\n]", r"(?m:$)") if lines else (r"[^\\]", r"\Z")
    for quote in quotes:

        def blank(match: re.Match[str], quote: str = quote) -> str:
            return match[0] if match["open"] is None else quote + match[0][len(quote) :].replace(quote, _BLANK)

        if code.count(f"\\{quote}") > FEW:
            string = rf"{quote}(?:\\.|{character})*?(?:{quote}|(?P<open>\\?\Z|{end}))"
            code = re.sub(string, blank, code, flags=re.DOTALL)
    return code


def blank_openings(code: AnyStr, opening: AnyStr, closing: AnyStr, blank: AnyStr) -> AnyStr:
    """The code with another text in place of the openings behind the last closing.

    >>> blank_openings("/* a */" + 30 * " /*", "/*", "*/", "//") == "/* a */" + 30 * " //"
    True
    """
    start = max(0, code.rfind(closing) - len(opening) + 1)
    if code.count(opening, start) <= FEW:
        return code
    return code[:start] + code[start:].replace(opening, blank)
