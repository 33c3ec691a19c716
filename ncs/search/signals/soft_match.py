"""Embedding soft match: for each word of a question the nearest word of a document, by the cosine of their vectors.

The mean that `ncs` compares blurs a long function; here one near word is enough. Off by default: inside the default
ranker it gained nothing on any set (DESIGN.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ncs.learn.embeddings import unit_rows
from ncs.search.signals.direction import OPPOSITES
from ncs.storage.postings import stem_all
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.types import Matrix


def agreement(
    table: WordTable, vectors: Matrix, rows: NDArray[np.int64], asked: Mapping[str, float]
) -> NDArray[np.float64]:
    """The mean over the words asked, by their weights, of the best cosine among a row's words, 0 to 1, [len(rows)].

    asked: word of the question -> its idf. Words without a vector and opposites of the word asked count nothing.
    """
    ids, offsets = table.select_rows(NCS_FIELDS, rows)
    known = {word: id for word in asked if (id := table.vocabulary.id(word)) is not None}
    total, found = sum(asked.values()), np.zeros(len(rows))
    if not known or not len(ids) or total <= 0:
        return found
    distinct, places = np.unique(ids, return_inverse=True)
    cosines = unit_rows(vectors[list(known.values())]) @ unit_rows(vectors[distinct]).T
    stems = np.array(stem_all([table.vocabulary.word(int(id)) for id in distinct]))
    filled = np.flatnonzero(np.diff(offsets))
    for word, stem, near in zip(known, stem_all(list(known)), np.maximum(cosines, 0.0), strict=True):
        if opposite := OPPOSITES.get(stem):
            near[stems == opposite] = 0.0
        best = np.maximum.reduceat(near[places], offsets[:-1][filled])
        found[filled] += asked[word] / total * best
    return found
