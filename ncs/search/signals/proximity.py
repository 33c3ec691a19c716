"""Words of the question that stand near each other in a document: `parse` beside `date`, not one at each end.

For every two words that follow each other in the question, weighed by their idf, whether a document's code has both
within WINDOW words of each other, in any order; its fields are read one after the other, so a name stands beside its
class. Comments and literals are left out: who writes about a thing says its words together without doing it.
Only the best candidates are read, as order is what postings do not keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ncs.types import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.text.stems import Stems

WINDOW = 4
"""Words; 2 and 8 are no better."""
DEPTH = 150
"""Candidates that are read; 400 give the same."""
READ: tuple[Field, ...] = ("name", "scope", "calls", "enums", "identifiers", "types", "parameters")


def agreement(
    table: WordTable, stems: Stems, rows: NDArray[np.int64], words: Sequence[str], idf: Mapping[str, float]
) -> NDArray[np.float64]:
    """The share of the question's pairs that each row has near each other, 0 to 1, [len(rows)]; rows: best first.

    words: stems of the question, in its order; idf: of each.
    """
    found, distinct = np.zeros(len(rows)), list(dict.fromkeys(words))
    pairs = {(min(a, b), max(a, b)) for a, b in pairwise(map(distinct.index, words)) if a != b}
    if not pairs:
        return found
    at, asked, owners = _met(table, stems, rows[:DEPTH], distinct)
    met = np.zeros((min(len(rows), DEPTH), len(distinct), len(distinct)), np.bool_)
    for step in range(1, WINDOW + 1):  # two that are near have fewer than WINDOW others between them
        near = (at[step:] - at[:-step] <= WINDOW) & (owners[step:] == owners[:-step])
        met[owners[step:][near], asked[step:][near], asked[:-step][near]] = True
    weights = {(a, b): idf[distinct[a]] + idf[distinct[b]] for a, b in pairs}
    total = sum(weights.values())
    for (a, b), weight in weights.items():
        found[: len(met)] += weight / total * (met[:, a, b] | met[:, b, a]) if total else 0.0
    return found


def _met(
    table: WordTable, stems: Stems, rows: NDArray[np.int64], distinct: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where the rows' words are words of the question: positions, ascending; which of the distinct ones; which row."""
    ids, offsets = table.select_rows(READ, rows)
    known = stems.of_stems(distinct)
    order = np.argsort(known)
    numbers = stems.numbers(ids)
    near = np.minimum(np.searchsorted(known[order], numbers), len(order) - 1)
    at = np.flatnonzero(known[order][near] == numbers)
    return at, order[near[at]], np.searchsorted(offsets, at, side="right") - 1
