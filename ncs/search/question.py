"""What kind of query this is, which of its words to look for, and which symbols it spells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ncs.storage.definitions import Symbol, query_symbols
from ncs.text.stopwords import STOP_WORDS, content_words
from ncs.text.tokens import tokenize

Kind = Literal["symbol", "how-to", "keywords", "code"]

PROSE = 0.3
"""Share of stop words from which on a text with signs of code is about code: prose has a third, code a tenth."""
SYMBOLS = 3
"""Certain symbols up to which a query asks for their definitions."""
_CODE = re.compile(r"[;{}]|\)\s*\.|\w\(.*\)|[=!<>]=|->|=>|\breturn\b.+;|\w\s=\s\w|^[ \t]{2,}\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Intent:
    """A query as a ranker reads it. words: what to look for, in order; symbols: those whose definitions it asks for."""

    kind: Kind
    words: tuple[str, ...]
    symbols: tuple[Symbol, ...]


def read_intent(text: str, languages: Iterable[str] = ()) -> Intent:
    """languages: those that nearly all documents are written in; their names are left out of the words.

    >>> read_intent("how do I read a file in python", ["python"])
    Intent(kind='how-to', words=('read', 'file', 'in'), symbols=())
    >>> read_intent("View.setPadding").kind, read_intent("read json file").kind, read_intent("x = f(a); g(x);").kind
    ('symbol', 'keywords', 'code')
    """
    tokens = tokenize(text)
    content = content_words(tokens)
    words = [word for word in content if word not in set(languages)]
    symbols = query_symbols(text)
    kind = _kind(text, tokens, symbols)
    return Intent(kind, tuple(words or content), () if _only_uses(kind, text, symbols) else tuple(symbols))


def _only_uses(kind: Kind, text: str, symbols: Sequence[Symbol]) -> bool:
    """Whether a text uses its symbols and asks for no definition: one line of code may ask for what it calls, several
    lines do not, nor does a text of more than SYMBOLS."""
    return (kind == "code" and "\n" in text.strip()) or sum(symbol.certain for symbol in symbols) > SYMBOLS


def _kind(text: str, tokens: list[str], symbols: list[Symbol]) -> Kind:
    if len(text.split()) == 1 and symbols:
        return "symbol"
    stop_words = sum(token in STOP_WORDS for token in tokens)
    if len(_CODE.findall(text)) > 1 and stop_words < PROSE * len(tokens):
        return "code"
    return "how-to" if stop_words or len(tokens) > 5 else "keywords"
