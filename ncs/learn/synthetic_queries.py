"""Questions made from the documents themselves: the first sentence of a comment, a name in words or as spelled.

Each asks for one document; from most of them the field it was taken from is to be hidden (HIDDEN,
ncs.learn.field_ablation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ncs.storage.definitions import Symbol
from ncs.storage.file_roles import SOURCE
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.documents import Store
    from ncs.storage.words import WordTable
    from ncs.types import Document

Kind = Literal["doc", "seen", "name", "symbol"]
"""From a comment that is hidden, from one that is not, a name in words that is hidden, a name as spelled."""

MOST: Mapping[Kind, int] = {"doc": 140, "seen": 60, "name": 60, "symbol": 40}
LARGE, FEWEST, SOME = 25_000, 0.15, 0.3
"""Documents from which on there are so many questions; the part of them that the smallest index is asked: few, so that
they are less than a fifth of its build, and some where there is more to decide."""
HIDDEN: Mapping[Kind, Field] = {"doc": "doc", "name": "name"}
"""Kind -> the field that its questions must not see."""
SHORTEST, LONGEST = 3, 25
"""Words of a comment's first sentence, those that are grammar not counted among the former."""
SAME = 8
"""Words of a comment that are compared to find comments that stand in several places."""
SEED = 0


@dataclass(frozen=True, slots=True)
class Sampled:
    """A question made from a document, and that document's row."""

    kind: Kind
    text: str
    row: int


def sample(
    words: WordTable, store: Store, facts: DocumentFacts, *, seed: int = SEED, fewest: float | None = None
) -> list[Sampled]:
    """At most MOST questions of each kind, in an order that the seed decides. fewest: in place of FEWEST."""
    rng = np.random.default_rng(seed)
    places = facts.file_roles
    product = np.flatnonzero(places.role[places.file] == SOURCE)
    said = rng.permutation(np.intersect1d(product, _own_comments(words)))
    names = rng.permutation(product)
    third, half = 2 * len(said) // 3, len(names) // 2
    rows: Mapping[Kind, NDArray[np.int64]] = {
        "doc": said[:third],
        "seen": said[third:],
        "name": names[:half],
        "symbol": names[half:],
    }
    part = min(1.0, max(FEWEST if fewest is None else fewest, len(words) / LARGE))
    return [each for kind in rows for each in _questions(kind, rows[kind], int(MOST[kind] * part), facts, store)]


def _own_comments(words: WordTable) -> NDArray[np.int64]:
    """Rows with a comment that no other row has."""
    at = FIELDS.index("doc") + len(FIELDS) * np.arange(len(words))
    begins, lengths = words.offsets[at], words.offsets[at + 1] - words.offsets[at]
    rows = np.flatnonzero(lengths >= SHORTEST)
    heads = np.full((len(rows), SAME), -1, np.int32)
    for n in range(SAME):
        longer = lengths[rows] > n
        heads[longer, n] = words.ids[begins[rows[longer]] + n]
    _, first, counts = np.unique(heads, axis=0, return_index=True, return_counts=True)
    return np.sort(rows[first[counts == 1]])


def _questions(kind: Kind, rows: NDArray[np.int64], most: int, facts: DocumentFacts, store: Store) -> Iterator[Sampled]:
    """The first that are any good of the rows given; four times as many are looked at."""
    words, found = facts.words, 0
    for document, row in _documents(store, rows[: 4 * most]):
        text = _name(document, facts, kind) if kind in ("name", "symbol") else _sentence(document, words, row)
        if text and found < most:
            found += 1
            yield Sampled(kind, text, row)


def _documents(store: Store, rows: NDArray[np.int64]) -> Iterator[tuple[Document, int]]:
    return zip(store.documents(rows.tolist()), rows.tolist(), strict=True)


def _sentence(document: Document, words: WordTable, row: int) -> str:
    """The first sentence of a comment, "" where it says too little; its words where the index keeps no code."""
    said = " ".join(document.words.get("doc", ()))
    said = said or " ".join(words.vocabulary.word(int(id)) for id in words.ids_of(row, "doc")[:12])
    text = " ".join(re.split(r"(?<=[.!?:])\s|\n\s*\n", said.strip())[0].split()[:LONGEST])
    return text if len(set(content_words(tokenize(text)))) >= SHORTEST else ""


def _name(document: Document, facts: DocumentFacts, kind: Kind) -> str:
    """A name of several words that one document alone has: split for "name", as spelled for "symbol"."""
    split = tokenize(document.name)
    if not 2 <= len(split) <= 6 or document.name.startswith("__"):
        return ""
    if len(facts.definitions.match(Symbol(document.name))[0]) != 1:
        return ""
    return " ".join(split) if kind == "name" else document.name
