"""Queries made of documents, which answer them: the first sentence of a comment, a name in words or as spelled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from ncs.storage.definitions import Symbol
from ncs.storage.file_roles import SOURCE
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.words import WordTable
    from ncs.types import Document

    Rows = NDArray[np.int64]

Kind = Literal["doc", "seen", "name", "symbol"]
"""Of a comment that is hidden, of one that is not, of a name in words that is hidden, of a name as spelled."""
MOST: Mapping[Kind, int] = {"doc": 140, "seen": 60, "name": 60, "symbol": 40}
LARGE, LEAST_SHARE = 25_000, 0.15
"""Documents from which on there are so many queries; the share of them that the smallest index is asked, so that they
are less than a fifth of its build."""
HIDDEN: Mapping[Kind, Field] = {"doc": "doc", "name": "name"}
"""Kind -> the field of its document that ranking must not see."""
SHORTEST, LONGEST = 3, 25
"""Words of a comment's first sentence; stop words do not count among the former."""
HEAD = 8
"""Words of a comment that are compared to find comments that several documents have."""


class ReadsDocuments(Protocol):
    """ncs.storage.documents."""

    def documents(self, rows: Sequence[int]) -> list[Document]: ...


@dataclass(frozen=True, slots=True)
class SyntheticQuery:
    """A query made of the document in `row`."""

    kind: Kind
    text: str
    row: int


def synthetic_queries(
    words: WordTable,
    documents: ReadsDocuments,
    facts: DocumentFacts,
    *,
    seed: int = 0,
    least_share: float = LEAST_SHARE,
) -> list[SyntheticQuery]:
    """At most MOST queries of each kind, in an order that the seed decides."""
    rng = np.random.default_rng(seed)
    product = np.flatnonzero(facts.file_roles.roles_of(np.arange(len(words))) == SOURCE)
    commented = rng.permutation(np.intersect1d(product, _own_comments(words)))
    named = rng.permutation(product)
    third, half = 2 * len(commented) // 3, len(named) // 2
    rows: Mapping[Kind, Rows] = {
        "doc": commented[:third],
        "seen": commented[third:],
        "name": named[:half],
        "symbol": named[half:],
    }
    share = min(1.0, max(least_share, len(words) / LARGE))
    return [
        query for kind in rows for query in _queries(kind, rows[kind], int(MOST[kind] * share), words, documents, facts)
    ]


def _own_comments(words: WordTable) -> Rows:
    """Rows with a comment that no other row has."""
    at = FIELDS.index("doc") + len(FIELDS) * np.arange(len(words))
    begins, lengths = words.offsets[at], words.offsets[at + 1] - words.offsets[at]
    rows = np.flatnonzero(lengths >= SHORTEST)
    heads = np.full((len(rows), HEAD), -1, np.int32)
    for n in range(HEAD):
        longer = lengths[rows] > n
        heads[longer, n] = words.ids[begins[rows[longer]] + n]
    _, first, counts = np.unique(heads, axis=0, return_index=True, return_counts=True)
    return np.sort(rows[first[counts == 1]])


def _queries(
    kind: Kind, rows: Rows, most: int, words: WordTable, documents: ReadsDocuments, facts: DocumentFacts
) -> Iterator[SyntheticQuery]:
    """Of the first rows that make one; four times as many are looked at."""
    some, n = rows[: 4 * most].tolist(), 0
    for document, row in zip(documents.documents(some), some, strict=True):
        text = _name(document, facts, kind) if kind in ("name", "symbol") else _sentence(document, words, row)
        if text and n < most:
            n += 1
            yield SyntheticQuery(kind, text, row)


def _sentence(document: Document, words: WordTable, row: int) -> str:
    """The first sentence of a comment, "" where it says too little; its words where the index keeps no code."""
    comment = " ".join(document.words.get("doc", ()))
    comment = comment or " ".join(words.vocabulary.word(int(id)) for id in words.ids_of(row, "doc")[:12])
    text = " ".join(re.split(r"(?<=[.!?:])\s|\n\s*\n", comment.strip())[0].split()[:LONGEST])
    return text if len(set(content_words(tokenize(text)))) >= SHORTEST else ""


def _name(document: Document, facts: DocumentFacts, kind: Kind) -> str:
    """A name of several words that one document alone has: split for "name", as spelled for "symbol"."""
    split = tokenize(document.name)
    if not 2 <= len(split) <= 6 or document.name.startswith("__"):
        return ""
    if len(facts.definitions.match(Symbol(document.name))[0]) != 1:
        return ""
    return " ".join(split) if kind == "name" else document.name
