"""Query analysis: the kind of a query, its words to search for, and its symbols."""

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
"""From this share of stop words on, a text with code in it is prose: prose has a third, code a tenth."""
SYMBOLS = 3
"""A query with more certain symbols than this does not ask for definitions."""
_CODE = re.compile(r"[;{}]|\)\s*\.|\w\(.*\)|[=!<>]=|->|=>|\breturn\b.+;|\w\s=\s\w|^[ \t]{2,}\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of a query. words: to search for, in order; symbols: whose definitions are asked for."""

    kind: Kind
    words: tuple[str, ...]
    symbols: tuple[Symbol, ...]


def read_intent(text: str, languages: Iterable[str] = ()) -> Intent:
    """The intent of a query. languages: of nearly all documents; their names are left out of the words.

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
    """Whether a text only uses its symbols: several lines of code, or more than SYMBOLS certain symbols."""
    return (kind == "code" and "\n" in text.strip()) or sum(symbol.certain for symbol in symbols) > SYMBOLS


def _kind(text: str, tokens: list[str], symbols: list[Symbol]) -> Kind:
    if len(text.split()) == 1 and symbols:
        return "symbol"
    stop_words = sum(token in STOP_WORDS for token in tokens)
    if len(_CODE.findall(text)) > 1 and stop_words < PROSE * len(tokens):
        return "code"
    return "how-to" if stop_words or len(tokens) > 5 else "keywords"
