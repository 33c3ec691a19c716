"""Word tables for tests, from plain text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ncs.storage.words import WordTable, WordTableBuilder, batch_words
from ncs.types import FIELDS, Field


def table(*documents: str, field: Field = "doc") -> WordTable:
    """A document a string, all its words in one field; `name: read file; doc: reads it` spreads them over fields."""
    builder = WordTableBuilder()
    builder.add(*batch_words([_fields(document, field) for document in documents]))
    return builder.finish()


def _fields(document: str, field: Field) -> Sequence[Sequence[str]]:
    words: dict[str, list[str]] = {name: [] for name in FIELDS}
    for part in document.split(";"):
        name, colon, text = part.partition(":")
        words[name.strip() if colon else field] += (text if colon else part).split()
    return [words[name] for name in FIELDS]


def topics(documents: int = 400, seed: int = 0) -> WordTable:
    """Documents about files or about networks; each word stands beside words of its own topic only."""
    draw = np.random.default_rng(seed)
    words = [
        ["open", "read", "write", "close", "file", "path", "folder", "disk"],
        ["socket", "send", "port", "listen", "host", "packet", "wire", "peer"],
    ]
    return table(*(" ".join(draw.choice(words[i % 2], 12)) for i in range(documents)))


def id_of(words: WordTable, word: str) -> int:
    """The id of a word that must be there."""
    id = words.vocabulary.id(word)
    if id is None:
        raise LookupError(word)
    return id
