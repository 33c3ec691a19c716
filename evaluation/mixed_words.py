"""Word tables of any size, mixed from a real one: what document vectors at a size are made of, without documents.

As in evaluation/synthetic.py, but by arrays, and only the words that vectors are made of: five million take a minute.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.words import WordTable, ranges
from ncs.types import FIELDS, NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAR, NEAR_RATE, RATES = 0.1, 0.04, (0.25, 0.75)
"""As in evaluation/synthetic.py."""
NEARBY = 250
"""Rows before and after a document, of its repository, that give it words."""
CHUNK = 1 << 16


def mixed(words: WordTable, owners: NDArray[np.int32], rows: int, folder: Path, seed: int = 0) -> WordTable:
    """A table of `rows` documents, written into a folder; owners: the repository of each real one, [len(words)]."""
    folder.mkdir(parents=True, exist_ok=True)
    words.vocabulary.save(folder)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(owners)) + 1, [len(words)]])
    rng = np.random.default_rng(seed)
    offsets = np.lib.format.open_memmap(folder / "words.offsets.npy", "w+", np.int64, (rows * len(FIELDS) + 1,))
    raw, at = folder / "words.ids.raw", 0
    with raw.open("wb") as file:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            ids, lengths = _chunk(words, edges, count, rng)
            offsets[start * len(FIELDS) + 1 : (start + count) * len(FIELDS) + 1] = at + np.cumsum(lengths)
            at += len(ids)
            file.write(ids.tobytes())
    return WordTable(words.vocabulary, np.memmap(raw, np.int32, "r", shape=(at,)), np.asarray(offsets))


def _chunk(
    words: WordTable, edges: NDArray[np.int64], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Ids of so many documents, and the lengths of all their fields; those that vectors do not hold are empty."""
    rows = rng.integers(0, len(words), count)
    owner = np.searchsorted(edges, rows, "right") - 1
    low, high = np.maximum(edges[owner], rows - NEARBY), np.minimum(edges[owner + 1], rows + NEARBY)
    donors = (low + rng.random(count) * (high - low)).astype(np.int64)
    rate = np.where(rng.random(count) < NEAR, NEAR_RATE, rng.uniform(*RATES, count))
    read = np.isin(FIELDS, NCS_FIELDS)
    cells, others = (_cells(words, each) for each in (rows, donors))
    lengths = (cells[1] - cells[0]) * read
    ours = words.ids[ranges(cells[0].ravel(), lengths.ravel())]
    theirs = np.repeat((others[1] - others[0]).ravel(), lengths.ravel())
    at = np.repeat(others[0].ravel(), lengths.ravel()) + (rng.random(len(ours)) * theirs).astype(np.int64)
    taken = (rng.random(len(ours)) < np.repeat(np.repeat(rate, len(FIELDS)), lengths.ravel())) & (theirs > 0)
    return np.where(taken, words.ids[np.minimum(at, len(words.ids) - 1)], ours).astype(np.int32), lengths.ravel()


def _cells(words: WordTable, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each field of these documents begins and ends in the ids, [len(rows), fields] both."""
    at = rows[:, None] * len(FIELDS) + np.arange(len(FIELDS))
    return words.offsets[at], words.offsets[at + 1]
