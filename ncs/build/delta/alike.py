"""Near duplicates after an update: only rows with a name that came or went are compared again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta import ROOM, room_of
from ncs.build.delta.rows import GONE, Stack
from ncs.storage.minhash import ALONE, CODE, cluster, hashed_names, marks_of
from ncs.storage.duplicates import NAMES, NearDuplicates
from ncs.storage.file_roles import OUTLINES
from ncs.storage.documents import NAME, Store
from ncs.storage.words import WordTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.build.delta.making import Made

    Numbers = NDArray[np.int64]
    Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Before:
    """How the rows stood: held by what, the clusters, the names of the delta that was. row: of what is held now, the
    row it was, GONE for what was none; held: the other way round, GONE for what is no more."""

    clusters: NDArray[np.int32]
    names: Hashes
    row: Numbers
    held: Numbers

    @classmethod
    def of(cls, data: Path, made: Made) -> _Before:
        n, room = len(made.base.file), room_of(data)
        if room is None:
            clusters = NearDuplicates.load(data, n).clusters
            row = np.concatenate([np.arange(n), np.full(len(made.delta.file), GONE)])
            return cls(clusters, np.zeros(0, np.uint64), row, np.arange(n))
        names = np.load(room / NAMES, allow_pickle=False)
        stack = Stack.load(room, n, len(names))
        row = np.full(n + len(made.delta.file), GONE, np.int64)
        row[:n] = stack.row[:n]
        kept = made.before >= 0
        row[n:][kept] = stack.row[n + made.before[kept]]
        now = np.full(n + len(names), GONE, np.int64)
        now[:n], now[n + made.before[kept]] = np.arange(n), n + np.flatnonzero(kept)
        return cls(NearDuplicates.load(data, len(stack)).clusters, names[now[n:] == GONE], row, now[stack.held])


def save_near_duplicates(data: Path, path: Path, made: Made, *, wanted: bool) -> None:
    """Of all rows, into the delta at `path`. data: the folder that stands, whose clusters hold where no name did."""
    room, held = path / ROOM, made.stack.held
    late = _late_names(room, made)
    np.save(room / NAMES, late)
    if not wanted:
        NearDuplicates.none(len(held)).save(room)
        return
    names = np.concatenate([np.load(path / NAMES, mmap_mode="r", allow_pickle=False), late])
    before = _Before.of(data, made)
    changed = (before.row != GONE) != (made.stack.row != GONE)
    again = np.flatnonzero(np.isin(names[held], np.unique(np.concatenate([names[changed], before.names]))))
    clusters = _carried(before, made)
    clusters[again] = ALONE
    words = WordTable.load(path)
    cluster(words, _marks(words, again), again, names[held][again], clusters)
    NearDuplicates.clustered(clusters).save(room)


def _late_names(room: Path, made: Made) -> Hashes:
    """Of the delta's documents."""
    words = made.collected.words
    with Store(room / NAME) as store:
        outline = store.of_kinds(OUTLINES)
    return hashed_names(words, marks_of(words.vocabulary), outline)


def _carried(before: _Before, made: Made) -> NDArray[np.int32]:
    """The clusters that were, of the rows that are."""
    held = made.stack.held
    row = before.row[held]
    head = np.where(row == GONE, ALONE, before.clusters[np.maximum(row, 0)])
    now = before.held[np.maximum(head, 0)]
    found = np.where((head == ALONE) | (now == GONE), ALONE, made.stack.row[np.maximum(now, 0)])
    return found.astype(np.int32)


def _marks(words: WordTable, rows: Numbers) -> Hashes:
    """Of the words of these rows; zeros for others, which nobody asks for."""
    ids = np.unique(words.select_rows(CODE, rows)[0])
    marks = np.zeros(len(words.vocabulary), np.uint64)
    marks[ids] = marks_of(words.vocabulary.word(int(id)) for id in ids)
    return marks
