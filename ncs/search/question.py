"""What kind of question this is, and the words of it that say something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ncs.storage.definitions import Symbol, asked_symbols
from ncs.text.stopwords import STOP_WORDS, content_words
from ncs.text.tokens import tokenize

Kind = Literal["symbol", "how-to", "keywords", "code"]

PROSE = 0.3
"""Share of grammar from which on a text with signs of code is about code: prose has a third, code a tenth."""
ASKED = 3
"""Names that a question may ask the definitions of."""
_CODE = re.compile(r"[;{}]|\)\s*\.|\w\(.*\)|[=!<>]=|->|=>|\breturn\b.+;|\w\s=\s\w|^[ \t]{2,}\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Intent:
    """A question as a ranker reads it. words: what to look for, in order; symbols: names it asks the definitions of."""

    kind: Kind
    words: tuple[str, ...]
    symbols: tuple[Symbol, ...]


def read_intent(text: str, languages: Iterable[str] = ()) -> Intent:
    """languages: those that nearly all documents are written in; naming them says nothing and is left out.

    >>> read_intent("how do I read a file in python", ["python"])
    Intent(kind='how-to', words=('read', 'file', 'in'), symbols=())
    >>> read_intent("View.setPadding").kind, read_intent("read json file").kind, read_intent("x = f(a); g(x);").kind
    ('symbol', 'keywords', 'code')
    """
    tokens = tokenize(text)
    content = content_words(tokens)
    said = [word for word in content if word not in set(languages)]
    symbols = asked_symbols(text)
    kind = _kind(text, tokens, symbols)
    return Intent(kind, tuple(said or content), () if _uses(kind, text, symbols) else tuple(symbols))


def _uses(kind: Kind, text: str, symbols: Sequence[Symbol]) -> bool:
    """Whether the names that a text spells are used in it, not asked for: one line of code may ask for what it calls,
    lines do not, and who spells many names asks for none of them."""
    return (kind == "code" and "\n" in text.strip()) or sum(symbol.certain for symbol in symbols) > ASKED


def _kind(text: str, tokens: list[str], symbols: list[Symbol]) -> Kind:
    if len(text.split()) == 1 and symbols:
        return "symbol"
    grammar = sum(token in STOP_WORDS for token in tokens)
    if len(_CODE.findall(text)) > 1 and grammar < PROSE * len(tokens):
        return "code"
    return "how-to" if grammar or len(tokens) > 5 else "keywords"
