"""The proximity signal: words of the query that are near each other in a document.

For every two words that follow each other in the query, weighted by their idf, whether a document's code has both
within WINDOW words of each other, in any order; its fields are read one after the other, so a name is beside its
class. Comments and literals are left out.
Only the best candidates are read, as postings hold no positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ncs.types import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordReader
    from ncs.text.stems import Stems

WINDOW = 4
"""Window in words; 2 and 8 are no better."""
DEPTH = 150
"""Candidates that are read; 400 are no better."""
READ: tuple[Field, ...] = ("name", "scope", "calls", "enums", "identifiers", "types", "parameters")


def agreement(
    table: WordReader, stems: Stems, rows: NDArray[np.int64], words: Sequence[str], idf: Mapping[str, float]
) -> NDArray[np.float64]:
    """The share of the query's pairs that each row has near each other, 0 to 1, [len(rows)]; rows: best first.

    words: stems of the query, in its order; idf: of each.
    """
    result, terms = np.zeros(len(rows)), list(dict.fromkeys(words))
    pairs = {(min(a, b), max(a, b)) for a, b in pairwise(map(terms.index, words)) if a != b}
    if not pairs:
        return result
    at, term, owners = _positions(table, stems, rows[:DEPTH], terms)
    near = np.zeros((min(len(rows), DEPTH), len(terms), len(terms)), np.bool_)
    for step in range(1, WINDOW + 1):  # near: fewer than WINDOW words in between
        close = (at[step:] - at[:-step] <= WINDOW) & (owners[step:] == owners[:-step])
        near[owners[step:][close], term[step:][close], term[:-step][close]] = True
    weights = {(a, b): idf[terms[a]] + idf[terms[b]] for a, b in pairs}
    total = sum(weights.values())
    for (a, b), weight in weights.items():
        result[: len(near)] += weight / total * (near[:, a, b] | near[:, b, a]) if total else 0.0
    return result


def _positions(
    table: WordReader, stems: Stems, rows: NDArray[np.int64], terms: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where the rows' words are terms of the query: positions, ascending; which term; which row."""
    ids, offsets = table.select_rows(READ, rows)
    term_stems = stems.of_stems(terms)
    order = np.argsort(term_stems)
    numbers = stems.numbers(ids)
    nearest = np.minimum(np.searchsorted(term_stems[order], numbers), len(order) - 1)
    at = np.flatnonzero(term_stems[order][nearest] == numbers)
    return at, order[nearest[at]], np.searchsorted(offsets, at, side="right") - 1
