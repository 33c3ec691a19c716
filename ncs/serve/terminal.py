"""Hits as text for a terminal: their name, place and copies, and indexed text made safe to show."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ncs.storage.file_roles import OUTLINES

MAX_COPIES = 3
MARK = "bold underline"
"""The style of words of the query."""
NAME_MARK = "bold"
"""The style of names that an explanation mentions."""
TAB = 4
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_REPLACED = [*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)]
_VISIBLE = {**_PICTURES, **dict.fromkeys(_REPLACED, 0xFFFD)}
"""Control and bidi characters: indexed code must not steer a terminal or hide in it."""
LIGHT = ("7", "15")
"""Background colors of $COLORFGBG that are light."""


def visible(text: str) -> str:
    r"""Text in which control characters are shown instead of obeyed, one for one; newlines and tabs stay.

    >>> visible("\x1b[2Jclear\r\n")
    '␛[2Jclear␍\n'
    """
    return text.translate(_VISIBLE)


def light_background() -> bool:
    """Whether the terminal says that it is light; most say nothing, and are dark."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in LIGHT


def place(hit: Mapping[str, Any]) -> str:
    """repository/path:line."""
    return visible(f"{hit['repository']}/{hit['path']}:{hit['start_line']}")


def heading(hit: Mapping[str, Any]) -> str:
    """The name of a hit; for anything but a function its kind, too."""
    name: str = hit["qualified_name"]
    return visible(f"{hit['kind']} {name}" if hit["kind"] in OUTLINES else name)


def copies_line(hit: Mapping[str, Any]) -> str | None:
    """Where copies of a hit are, and whether it is a copy of the function in the query."""
    exact = ["exact copy"] if hit.get("exact_copy") else []
    near = _places("nearly the same at", hit.get("near_copies", ()))
    return "; ".join([*exact, *_places("also at", hit["copies"]), *near]) or None


def _places(label: str, copies: Sequence[Mapping[str, Any]]) -> list[str]:
    more = f" and {len(copies) - MAX_COPIES} more" if len(copies) > MAX_COPIES else ""
    return [f"{label} " + ", ".join(place(copy) for copy in copies[:MAX_COPIES]) + more] if copies else []


def explained_names(hit: Mapping[str, Any]) -> list[str]:
    """The names that the explanation of a hit mentions."""
    from ncs.search.explain_table import NAMES

    return [used["name"] for used in hit.get("explanation", {}).get("names", ())[:NAMES]]
