"""Text of indexed code made safe to show: no control characters, no endless lines, no surrogates."""

from __future__ import annotations

import re

LINE = 240
"""Characters of a line that are shown."""
_HIDDEN = r"\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
_UNSAFE = re.compile(rf"[^\t -~\u00a1-\U0010ffff]|[{_HIDDEN}]")


def clean(text: str) -> str:
    r"""One line of text: what a terminal or a reader would not show as it is, becomes its number.

    >>> clean("a\x1b[2Jb\u202ec\n")
    'a\\x1b[2Jb\\u202ec\\x0a'
    """
    return _UNSAFE.sub(_number, text)


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def short(text: str, most: int = LINE) -> str:
    """Clean, and cut to so many characters, said so.

    >>> short("x" * 300, 20)
    'xxxxxxxxxxxxxxxxxxxx... (280 characters more)'
    """
    if len(text) <= most:
        return clean(text)
    return f"{clean(text[:most])}... ({len(text) - most:,} characters more)"


def lines_of(code: str) -> list[str]:
    """Lines of code, each clean and short; a carriage return at their ends is no part of them."""
    return [short(line.removesuffix("\r")) for line in code.split("\n")]
