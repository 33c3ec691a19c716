"""Code in coloured pieces for the page: kinds of words by Pygments, and what hides made visible."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from ncs.types import Document

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_SHOWN = 60_000
"""Characters of a function that are shown."""
MOST_COLOURED = 20_000
"""Characters that are coloured."""
MOST_SECONDS = 0.5
"""What colouring may take, the rest stays plain: 20,000 line ends take Pygments' Java 13 s."""
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""What cannot be seen or turns the order of letters (trojan source); tab and line end are not among it."""
_KINDS = (
    ("Comment", "comment"), ("Literal.String", "string"), ("Literal.Number", "number"), ("Keyword.Type", "type"),
    ("Keyword", "keyword"), ("Name.Function", "name"), ("Name.Class", "type"), ("Name.Builtin", "type"),
    ("Name.Decorator", "type"),
)  # fmt: skip
_CALLED = {"c_sharp": "csharp", "template": "text", "module": "text"}
Piece = tuple[str, str]
"""Kind (a class of the page; "" for plain), text."""


def pieces(document: Document) -> tuple[list[Piece], bool]:
    """The code, cut at MOST_SHOWN characters, and whether it was cut.

    Pieces of kind `hidden` say which character stands there (U+202E); all others put together are the code.
    """
    code = document.code.replace("\r\n", "\n")
    return list(_pieces(code[:MOST_SHOWN], document.language)), len(code) > MOST_SHOWN


@lru_cache(64)
def _pieces(code: str, language: str) -> tuple[Piece, ...]:
    visible = (piece for kind, text in _coloured(code, language) for piece in _revealed(kind, text))
    grouped = groupby(visible, key=lambda piece: piece[0])
    return tuple((kind, "".join(text for _, text in same)) for kind, same in grouped)


def _revealed(kind: str, text: str) -> Iterator[Piece]:
    end = 0
    for match in HIDDEN.finditer(text):
        yield kind, text[end : match.start()]
        yield "hidden", f"U+{ord(match[0]):04X}"
        end = match.end()
    if end < len(text):
        yield kind, text[end:]


def _coloured(code: str, language: str) -> Iterator[Piece]:
    """Plain where Pygments does not know the language, or a lexer fails: people can still judge the code."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    done, end = 0, time.monotonic() + MOST_SECONDS
    try:
        lexer = get_lexer_by_name(_CALLED.get(language, language), stripnl=False, ensurenl=False, **_options(language))
        for token, text in lexer.get_tokens(code[:MOST_COLOURED]):
            if time.monotonic() > end or not code.startswith(text, done):
                break
            yield _kind(str(token)), text
            done += len(text)
    except (ClassNotFound, RecursionError):
        pass
    yield "", code[done:]


def _options(language: str) -> dict[str, bool]:
    return {"startinline": True} if language == "php" else {}


def _kind(token: str) -> str:
    name = token.removeprefix("Token.")
    return next((kind for start, kind in _KINDS if name == start or name.startswith(f"{start}.")), "")
