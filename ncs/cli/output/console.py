"""stdout and stderr: JSON, messages, and what a terminal can show."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from ncs.serve.terminal import visible

if TYPE_CHECKING:
    from rich.console import Console


def say(message: str) -> None:
    """A message on stderr."""
    print(visible(message), file=sys.stderr)


def show_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout, in UTF-8."""
    print(json.dumps(value, ensure_ascii=False, indent=indent))


def is_fancy(stream: TextIO) -> bool:
    """Whether this stream takes colors: a terminal, or with FORCE_COLOR."""
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def rich_console(*, stderr: bool = False) -> Console:
    """For colored text, as wide as the terminal; rich itself heeds NO_COLOR, FORCE_COLOR and TERM=dumb."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Let the command exit where the reader has."""
            raise BrokenPipeError

    return Terminal(highlight=False, soft_wrap=False, emoji=False, stderr=stderr)
