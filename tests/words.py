"""Word tables for tests, from plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from ncs.storage.words import WordTable, WordTableBuilder, batch_words
from ncs.types import FIELDS, Field

Words: TypeAlias = Mapping[Field, Sequence[str]]


def table(*documents: str, field: Field = "doc") -> WordTable:
    """A document a string, all its words in one field; `name: read file; doc: reads it` spreads them over fields."""
    return table_of(_fields(document, field) for document in documents)


def _fields(document: str, field: Field) -> Words:
    words: dict[str, list[str]] = {}
    for part in document.split(";"):
        name, colon, text = part.partition(":")
        words[name.strip() if colon else field] = (text if colon else part).split()
    return cast(Words, words)


def table_of(documents: Iterable[Words], batch: int = 100, folder: Path | None = None) -> WordTable:
    """A table of the words of each document by field, built in batches; folder: built on disk."""
    rows = [[document.get(field, ()) for field in FIELDS] for document in documents]
    builder = WordTableBuilder(folder)
    for start in range(0, len(rows), batch):
        builder.add(*batch_words(rows[start : start + batch]))
    return builder.finish()


def topics(documents: int = 400) -> WordTable:
    """Documents about files or about networks; each word stands beside words of its own topic only."""
    draw = np.random.default_rng(0)
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
