"""Which words of a question stand in a document, and where in its code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ncs.storage.postings import stem
from ncs.text.stopwords import content_words
from ncs.text.tokens import field_tokens, spans, tokenize
from ncs.types import Document, Field

_stem = lru_cache(maxsize=8192)(stem)


def query_stems(text: str) -> dict[str, str]:
    """stem -> the question's word, without its grammar, in the question's order."""
    stems: dict[str, str] = {}
    for word in content_words(tokenize(text)):
        stems.setdefault(_stem(word), word)
    return stems


def matched_words(document: Document, text: str) -> list[str]:
    """Words of the question that the document holds in any field, by stem, in the question's order."""
    wanted = query_stems(text)
    held: set[str] = set()
    if document.words:
        for field, spellings in document.words.items():
            for spelling in spellings:
                held |= _stems(field, spelling)
    else:
        held = set(map(_stem, tokenize(f"{document.qualified_name} {document.path} {document.code}")))
    return [word for stemmed, word in wanted.items() if stemmed in held]


@lru_cache(maxsize=1 << 16)
def _stems(field: Field, spelling: str) -> frozenset[str]:
    """Of one spelling: documents of one corpus use the same ones again and again."""
    return frozenset(map(_stem, field_tokens(field, (spelling,))))


def marks(code: str, text: str) -> list[tuple[int, int]]:
    """Where the question's words stand in the code, as (start, end) offsets, by stem.

    >>> marks("void hideKeyboard() {}", "hiding the keyboard")
    [(5, 9), (9, 17)]
    """
    wanted = query_stems(text)
    return [(start, end) for start, end, word in spans(code) if _stem(word) in wanted]


def name_marks(code: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Where whole names stand in the code, as (start, end) offsets.

    >>> name_marks("openFile(open, File.open)", ["open"])
    [(9, 13), (20, 24)]
    """
    wanted = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return [match.span() for match in re.finditer(rf"(?<!\w)(?:{wanted})(?!\w)", code)] if wanted else []
