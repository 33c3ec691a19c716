"""stdout and stderr as people and programs read them: JSON, messages, and what a terminal can show."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 80
"""Columns of what is wrapped where stdout is no terminal."""
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_UNSEEN = [*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)]
_VISIBLE = {**_PICTURES, **dict.fromkeys(_UNSEEN, 0xFFFD)}
"""Controls, and what turns the direction of text around: indexed code must not steer a terminal or hide in it."""
LIGHT = ("7", "15")
"""Background colours of $COLORFGBG that are light."""


def visible(text: str) -> str:
    r"""Text in which controls are to be seen instead of obeyed, character for character; line ends and tabs stay.

    >>> visible("\x1b[2Jclear\r\n")
    '␛[2Jclear␍\n'
    """
    return text.translate(_VISIBLE)


def fancy(stream: TextIO) -> bool:
    """Whether this stream takes colours: a terminal does, and what FORCE_COLOR says does."""
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def light_background() -> bool:
    """Whether the terminal says that it is light; most say nothing, and are dark."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in LIGHT


def terminal(*, stderr: bool = False) -> Console:
    """Where coloured text goes: as wide as the terminal; rich itself heeds NO_COLOR, FORCE_COLOR and TERM=dumb."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Let the command say how it ends where the reader has left."""
            raise BrokenPipeError

    return Terminal(highlight=False, soft_wrap=False, emoji=False, stderr=stderr)


def say(message: str) -> None:
    """A message for people: stderr, plain."""
    print(visible(message), file=sys.stderr)


def show_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout, UTF-8 as it is."""
    print(json.dumps(value, ensure_ascii=False, indent=indent))
