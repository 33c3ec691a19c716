"""Tokens: code and queries are split into words by the same function; stop words are dropped from queries.

Dropped are punctuation; numbers of more than four digits and runs of numbers (tables of data: without numbers NCS's MRR
on Java functions doubles); string literals over 300 characters (NCS section 3.1), their escapes and placeholders
(`literal_tokens`); words over 64 letters (encoded data).

Stop words are dropped from queries, never from documents. They do not include words with a meaning in code: directions
and opposites ("int to string" is not "string to int"), logic and loops (`if`, `not`, `all`, `each`), and verbs of names
(`get`, `set`, `find`). `to` is dropped in "how to" and "a way to" only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ncs.types import Field

MAX_LITERAL = 300  # characters; NCS, section 3.1
MAX_WORD = 64  # letters; a longer one is base64 or a hash
MAX_DIGITS = 4  # digits; `sha256`, `utf8`, `http 404`, years

# 0xFF | URLs -> urls | HTTP in HTTPResponse | Response, read | HTTP | 64
_ASCII = re.compile(
    r"(?<![A-Za-z0-9])0[xX][0-9a-fA-F]+|[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"
)
_RUN = re.compile(r"[^\W_]+")
_NO_WORD = re.compile(
    r"\\(?:x[0-9a-fA-F]{1,2}|u\{[0-9a-fA-F]*\}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)"  # \n, \x1b, \u00e9
    r"|%(?:\(\w+\))?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|z|j|t|L)?[a-zA-Z@](?![a-zA-Z])"  # %s, %5.2f, %(name)s
    r"|\{\w?\d*(?:[:,!][^{}\s]{0,20})?\}",  # {}, {0}, {:?}, {s}; a longer name is a word
    re.DOTALL,
)
"""Escapes in a string literal, and placeholders for the values of a message."""


def tokenize(text: str) -> list[str]:
    """Words of code or of a query, lower case, in order.

    >>> tokenize("readHTTPResponse from_the URLs of base64Decode()")
    ['read', 'http', 'response', 'from', 'the', 'urls', 'of', 'base', '64', 'decode']
    >>> tokenize("{0x00, 17, 4, 2048} pxToDp")
    ['px', 'to', 'dp']
    """
    words = _ASCII.findall(text) if text.isascii() else _split_unicode(text)
    if not words:
        return []
    words = [w.lower() for w in words if len(w) <= MAX_WORD]
    return _drop_number_runs(words) if any(w[0].isdigit() for w in words) else words


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """The positions of words in a text, as (start, end, lower-case word), for highlighting.

    >>> list(spans("hideKeyboard()"))
    [(0, 4, 'hide'), (4, 12, 'keyboard')]
    """
    for match in _ASCII.finditer(text):
        yield match.start(), match.end(), match.group().lower()


def _drop_number_runs(words: list[str]) -> list[str]:
    left: list[str] = []
    for is_number, group in groupby(words, key=lambda word: word[0].isdigit()):
        run = list(group)
        if not is_number or (len(run) == 1 and len(run[0]) <= MAX_DIGITS):
            left += run
    return left


def _split_unicode(text: str) -> list[str]:
    """Like the ASCII pattern, for letters of any script: breaks before an upper-case letter that starts a word."""
    words = []
    for match in _RUN.finditer(text):
        run = match.group()
        if run.isascii():
            words += _ASCII.findall(run)
            continue
        start = 0
        for i in range(1, len(run)):
            before, here = run[i - 1], run[i]
            after = run[i + 1] if i + 1 < len(run) else ""
            hump = here.isupper() and (not before.isupper() or after.islower())
            if hump or before.isdecimal() != here.isdecimal():
                words.append(run[start:i])
                start = i
        words.append(run[start:])
    return words


def literal_tokens(literal: str) -> list[str]:
    r"""Words of a string literal, without its escapes and placeholders; none if it is long, which is data.

    >>> literal_tokens(r"cannot open %s\n"), literal_tokens("expected {0} but got {:?}")
    (['cannot', 'open'], ['expected', 'but', 'got'])
    """
    if len(literal) > MAX_LITERAL:
        return []
    return tokenize(_NO_WORD.sub(" ", literal))


def field_tokens(field: Field, spellings: Iterable[str]) -> list[str]:
    """Words of one field of a document, from its source spellings."""
    split = literal_tokens if field == "literals" else tokenize
    return [token for spelling in spellings for token in split(spelling)]


_GRAMMAR = """
a an the this that these those it its there here
i me my we us our you your one
is are was were be been being am do does did can could should would will shall may might must
and or of at as by for with so then than also just very
how what when where which who why whether
want need like please help possible way ways programmatically
don doesn didn isn aren wasn won couldn shouldn wouldn s t m ve ll
"""
STOP_WORDS: frozenset[str] = frozenset(_GRAMMAR.split())
"""Function words, words of question phrases ("how do I", "what is the best way to", "programmatically"),
and what the tokenizer leaves of contractions ("don't" -> don, t)."""

_BEFORE_TO = frozenset({"how", "way", "ways", "want", "need", "like", "possible"})


def content_words(words: Sequence[str]) -> list[str]:
    """The words of a query without stop words, in order; all of them if nothing else is left.

    >>> content_words("how to convert int to string".split())
    ['convert', 'int', 'to', 'string']
    >>> content_words("what is this".split())
    ['what', 'is', 'this']
    """
    content = [
        word
        for at, word in enumerate(words)
        if word not in STOP_WORDS and not (word == "to" and at and words[at - 1] in _BEFORE_TO)
    ]
    return content or list(words)
