"""Hard negatives: codes near a question, by the head as it is now, that are neither its answer nor nearly the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ncs.storage.minhash import ALIKE
from unif.data import NOWHERE, Texts
from unif.objective import centred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.batches import Padded, Source
    from unif.data import Ids, Pairs
    from unif.model import Towers

POOL = 200_000
"""Codes that are looked through at most, and drawn anew each time."""
DEEP = 4
"""So many times the negatives wanted are looked at: some are answers, or nearly."""
BLOCK = 256
"""Texts at once: of questions their cosines with all codes are in memory."""


@torch.no_grad()
def mine(
    towers: Towers, source: Source, pairs: Pairs, pool: Texts | None, rows: Ids, draw: np.random.Generator
) -> NDArray[np.int32]:
    """int32 [len(pairs), mined]: for `rows` the nearest wrong codes, nearest first, NOWHERE where there are fewer.

    They are places in `pool`, the functions of the index, or without it rows of pairs. What has a Jaccard similarity of
    ALIKE or more to the answer, in sets of words, is a near duplicate; rows of one question answer each other.
    """
    mined = source.config.mined
    codes = pairs.code if pool is None else pool
    places = rows if pool is None else np.arange(len(pool))
    places = np.sort(draw.choice(places, POOL, replace=False)) if len(places) > POOL else places
    vectors = torch.cat([_code(towers, source.pool, source, some) for some in _blocks(places)])  # [pool, d]
    vectors = centred(vectors, vectors) if source.config.centre else vectors
    found = np.full((len(pairs), mined), NOWHERE, np.int32)
    for some in _blocks(rows):
        asked = towers.query(source.query(some, source.config.query_words))
        near = (asked @ vectors.T).topk(min(len(places), DEEP * mined), dim=1).indices.cpu().numpy()
        near = places[near]  # [block, deep]
        same = pairs.row[some][:, None] == near if pool is not None else (
            pairs.question[some][:, None] == pairs.question[near.reshape(-1)].reshape(near.shape)
        )  # fmt: skip
        wrong = ~(same | (similarities(pairs.code, some, codes, near, source.config.code_words) >= ALIKE))
        order = np.argsort(~wrong, axis=1, kind="stable")[:, :mined]
        kept = np.where(np.take_along_axis(wrong, order, 1), np.take_along_axis(near, order, 1), NOWHERE)
        found[some, : kept.shape[1]] = kept
    return found


def similarities(ours: Texts, rows: Ids, theirs: Texts, near: Ids, longest: int) -> NDArray[np.float64]:
    """Jaccard similarities [n, k] of the word sets of rows [n] of one with rows [n, k] of another."""
    mine, others = _sets(*ours.cut(rows, longest)), _sets(*theirs.cut(near.reshape(-1), longest))
    size = max(mine.shape[1], others.shape[1])
    mine.resize(len(rows), size)
    others.resize(near.size, size)
    at = np.repeat(np.arange(len(rows)), near.shape[1])
    both = np.asarray(mine[at].multiply(others).sum(axis=1)).reshape(-1)
    either = np.diff(mine.indptr)[at] + np.diff(others.indptr) - both
    return np.asarray(both / np.maximum(either, 1)).reshape(near.shape)


def _sets(ids: Ids, lengths: Ids) -> csr_array:
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    found = csr_array((np.ones(len(ids), np.float32), ids, bounds), shape=(len(lengths), int(ids.max(initial=0)) + 1))
    found.sum_duplicates()
    found.data[:] = 1
    return found


def _code(towers: Towers, padded: Padded, source: Source, rows: Ids) -> Tensor:
    vectors: Tensor = towers.code(padded(rows, source.config.code_words, unique=source.config.unique))
    return vectors


def _blocks(rows: Ids) -> Iterator[Ids]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


def mined_file(folder: Path, epoch: int) -> Path:
    """Where the negatives that were found before this epoch lie."""
    return folder / f"mined-{epoch}.npy"
