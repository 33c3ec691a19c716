"""Words of code that go with a word of the question in this corpus: a function that lacks the word may have those.

No pairs of questions and answers are read, only the corpus: of the documents whose name or comments have the word a,
the share whose code has the word b, shrunk towards none, and how much more often than in all documents:

    p(b | a) = documents with both / (documents with a + SHRINK)        lift(b, a) = p(b | a) / (df(b) / N)

b goes with a where they share LEAST documents and lift is LIFT; so a small corpus has no such words. A row is worth the
sum, over the words of the question that it lacks, of their share of the question's idf times the best p of its words.
Opposites are never taken: they stand in the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncs.search.signals.direction import OPPOSITES
from ncs.storage.postings import stem_all
from ncs.types import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.postings import Postings, Term
    from ncs.storage.words import WordTable

SAID: tuple[Field, ...] = ("name", "doc", "comments")
CODED: tuple[Field, ...] = ("name", "calls", "enums", "literals", "identifiers", "types", "parameters")
SHRINK, LEAST, LIFT = 5.0, 10, 2.0
STRONGEST = 20
LOOKED_AT = 2_000
"""Documents with a word that are looked at, evenly spread."""


def associated(table: WordTable, postings: Postings, term: Term) -> list[tuple[int, float]]:
    """Stem ids of code that go with a word, each with p, the most telling (p * log lift) first; at most STRONGEST."""
    if term.id is None:
        return []
    rows = _saying(table, postings, term)
    ids, offsets = table.select_rows(CODED, rows)
    owners = np.repeat(np.arange(len(rows)), np.diff(offsets))
    pairs = np.unique(ids.astype(np.int64) * max(1, len(rows)) + owners)
    words, counts = np.unique(pairs // max(1, len(rows)), return_counts=True)
    often = counts >= LEAST
    spelled = [table.vocabulary.word(int(id)) for id in words[often]]
    best: dict[int, tuple[float, float]] = {}
    for other, count in zip(postings.terms(spelled), counts[often].tolist(), strict=True):
        if other.id is None or other.stem in (term.stem, OPPOSITES.get(term.stem)):
            continue
        p = count / (len(rows) + SHRINK)
        lift = p * len(postings) / other.documents
        if lift >= LIFT:
            best[other.id] = max(best.get(other.id, (0.0, 0.0)), (p * float(np.log(lift)), p))
    order = sorted(best.items(), key=lambda each: (-each[1][0], each[0]))
    return [(id, p) for id, (_, p) in order[:STRONGEST]]


def _saying(table: WordTable, postings: Postings, term: Term) -> NDArray[np.int64]:
    """Rows whose name or comments have the word, of at most LOOKED_AT that have it anywhere."""
    rows = postings.having(term.id) if term.id is not None else np.zeros(0, np.int64)
    if len(rows) > LOOKED_AT:
        rows = rows[np.linspace(0, len(rows) - 1, LOOKED_AT).astype(np.int64)]
    ids, offsets = table.select_rows(SAID, rows)
    known, numbers = np.unique(ids, return_inverse=True)
    stems = stem_all(table.vocabulary.word(int(id)) for id in known)
    same = np.array([stem == term.stem for stem in stems], np.bool_)[numbers]
    return rows[np.unique(np.repeat(np.arange(len(rows)), np.diff(offsets))[same])]


def agreement(
    table: WordTable, postings: Postings, words: Sequence[str], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How much of the question each row lacks in words and has in words that go with them, 0 to 1, [len(rows)]."""
    idf = postings.idf(words)
    total, found = max(sum(idf.values()), 1e-9), np.zeros(len(rows))
    for term in {term.stem: term for term in postings.terms(words)}.values():
        best = np.zeros(len(rows))
        for id, p in associated(table, postings, term):
            best = np.maximum(best, p * (postings.scores([id], rows) > 0))
        if term.id is not None:
            best[postings.scores([term.id], rows) > 0] = 0.0
        found += idf[term.stem] / total * best
    return found
