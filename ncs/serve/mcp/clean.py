"""Text of indexed code made safe to show: no control characters, no endless lines, no surrogates."""

from __future__ import annotations

LINE = 240
"""Characters of a line that are shown."""
SPACES = "\t\u3000"
"""What is shown beside printable characters: tabs, and the space of Chinese and Japanese."""


def clean(text: str) -> str:
    r"""One line of text: what a terminal or a reader would not show as it is, becomes its number.

    >>> clean("a\x1b[2Jb\u202ec\n")
    'a\\x1b[2Jb\\u202ec\\x0a'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in SPACES else _number(letter) for letter in text)


def _number(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


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
