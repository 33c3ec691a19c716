"""Queries made of documents, which answer them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from ncs.search.hybrid import Parts
from ncs.storage.document_facts import DocumentFacts
from ncs.storage.documents import Documents
from ncs.storage.file_roles import SOURCE
from ncs.storage.names import Symbol
from ncs.storage.words import WordTable
from ncs.text.tokens import content_words, tokenize
from ncs.types import FIELDS, Document, Field, Rows

Kind = Literal["doc", "name"]
"""The first sentence of a doc comment; a name in words."""
MAX_QUERIES: Mapping[Kind, int] = {"doc": 140, "name": 60}
FIELDS_ASKED: Mapping[Kind, Field] = {"doc": "doc", "name": "name"}
"""Kind -> the field of its document that the query is from."""
LARGE, MIN_SHARE = 25_000, 0.3
"""Documents from which on all queries are made; the share of them for the smallest index, so that they take less than a
fifth of its build."""
MIN_WORDS, MAX_WORDS = 3, 25
"""Words of a comment's first sentence; for the former, stop words do not count."""
HEAD = 8
"""Words of a comment that are compared to find comments that several documents have."""


@dataclass(frozen=True, slots=True)
class SyntheticQuery:
    """A query made of the document in `row`."""

    kind: Kind
    text: str
    row: int


def word_table(parts: Parts) -> WordTable:
    """The words of a new index, which has one segment."""
    return cast(WordTable, parts.facts.words.table())


def synthetic_queries(parts: Parts, documents: Documents) -> list[SyntheticQuery]:
    """At most MAX_QUERIES of each kind, from documents in a random order, which is always the same."""
    words, facts, rng = word_table(parts), parts.facts, np.random.default_rng(0)
    product = np.flatnonzero(facts.file_roles.roles_of(np.arange(len(words))) == SOURCE)
    commented = rng.permutation(np.intersect1d(product, _own_comments(words)))
    shuffled = rng.permutation(product)
    rows: Mapping[Kind, Rows] = {
        "doc": commented[: 2 * len(commented) // 3],
        "name": shuffled[: len(shuffled) // 2],
    }
    share = min(1.0, max(MIN_SHARE, len(words) / LARGE))
    return [
        query
        for kind, most in MAX_QUERIES.items()
        for query in _queries(kind, rows[kind], int(most * share), words, documents, facts)
    ]


def _own_comments(words: WordTable) -> Rows:
    """Rows with a comment that no other row has."""
    at = FIELDS.index("doc") + len(FIELDS) * np.arange(len(words))
    begins, lengths = words.offsets[at], words.offsets[at + 1] - words.offsets[at]
    rows = np.flatnonzero(lengths >= MIN_WORDS)
    heads = np.full((len(rows), HEAD), -1, np.int32)
    for n in range(HEAD):
        longer = lengths[rows] > n
        heads[longer, n] = words.ids[begins[rows[longer]] + n]
    _, first, counts = np.unique(heads, axis=0, return_index=True, return_counts=True)
    return np.sort(rows[first[counts == 1]])


def _queries(
    kind: Kind, rows: Rows, most: int, words: WordTable, documents: Documents, facts: DocumentFacts
) -> Iterator[SyntheticQuery]:
    """Queries from the first rows that yield one, among the first 4 * `most` candidates."""
    candidates, n = rows[: 4 * most].tolist(), 0
    for document, row in zip(documents.documents(candidates), candidates, strict=True):
        text = _name(document, facts) if kind == "name" else _sentence(document, words, row)
        if text and n < most:
            n += 1
            yield SyntheticQuery(kind, text, row)


def _sentence(document: Document, words: WordTable, row: int) -> str:
    """The first sentence of a comment, "" where it says too little; its words where the index keeps no code."""
    comment = " ".join(document.words.get("doc", ()))
    comment = comment or " ".join(words.vocabulary.word(int(id)) for id in words.ids_of(row, "doc")[:12])
    text = " ".join(re.split(r"(?<=[.!?:])\s|\n\s*\n", comment.strip())[0].split()[:MAX_WORDS])
    return text if len(set(content_words(tokenize(text)))) >= MIN_WORDS else ""


def _name(document: Document, facts: DocumentFacts) -> str:
    """The words of a name of several that only one document has."""
    split = tokenize(document.name)
    if not 2 <= len(split) <= 6 or document.name.startswith("__"):
        return ""
    if len(facts.definitions.match(Symbol(document.name))[0]) != 1:
        return ""
    return " ".join(split)
