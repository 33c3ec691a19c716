"""The postings of a base and its delta as one; the base's counts of documents and stems stand behind all scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.rows import GONE, Stack
from ncs.build.delta.vocabulary import StackedVocabulary
from ncs.storage.postings import Postings, counts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask

    Posting = tuple[NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class StackedPostings(Postings):
    """Stems of the base keep their numbers, new ones come behind. Of the arrays of Postings only lengths are there."""

    base: Postings | None = None
    delta: Postings | None = None
    own: NDArray[np.int32] | None = None
    """[stems of all]: which of the delta's stems it is, -1 for none."""
    stack: Stack | None = None

    @classmethod
    def of_rooms(cls, folder: Path, room: Path) -> StackedPostings:
        """folder: of the base's postings; room: of the delta."""
        base, delta = Postings.of_folder(folder), Postings.of_folder(room / folder.name)
        stems = StackedVocabulary.load(folder, room / folder.name)
        own = np.full(len(stems), -1, np.int32)
        own[stems.numbers] = np.arange(len(delta.stems), dtype=np.int32)
        stack = Stack.load(room, len(base), len(delta))
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
        lengths = np.concatenate([base.lengths, delta.lengths])[stack.held]
        return cls(stems, *nothing, lengths, None, None, base.counts(), base, delta, own, stack)

    def df(self, id: int) -> int:
        """How many documents have a stem: as they were counted; of one that is new since, now."""
        base, delta, own, _ = self._parts()
        if id < len(base.stems):
            return base.df(id)
        return delta.df(int(own[id]))

    def share_in_code(self, id: int) -> float:
        """The share of a stem's documents that have it in code."""
        base, delta, own, _ = self._parts()
        return base.share_in_code(id) if id < len(base.stems) else delta.share_in_code(int(own[id]))

    def scores(self, ids: Sequence[int] | Mapping[int, float], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """What `search_ids` would score these rows, [len(rows)]."""
        base, delta, own, stack = self._parts()
        late, early, others = stack.split(rows)
        found, counts = np.zeros(len(rows)), self._ordered(ids)
        for id, count in counts.items():  # in the order of all stems, so that sums are the same to the bit
            if id < len(base.stems):
                found[~late] += base.scores({id: count}, early)
            if own[id] >= 0:
                found[late] += delta.scores({int(own[id]): count}, others)
        return found

    def split(
        self, rows: NDArray[np.int64]
    ) -> tuple[Mask, tuple[Postings, NDArray[np.int64]], tuple[Postings, NDArray[np.int64]]]:
        """Which of these rows the delta holds; then both postings, with the numbers that they have there."""
        base, delta, _, stack = self._parts()
        late, early, others = stack.split(rows)
        return late, (base, early), (delta, others)

    def _ordered(self, ids: Sequence[int] | Mapping[int, float]) -> dict[int, float]:
        counts = counts_of(ids)
        order = np.argsort(self.stems.ranks(np.array(list(counts), np.int64)), kind="stable").tolist()
        found = list(counts.items())
        return dict(found[at] for at in order)

    def posting(self, id: int) -> Posting:
        """Of rows as they are numbered here."""
        base, delta, own, stack = self._parts()
        rows, impacts = np.zeros(0, np.int32), np.zeros(0, np.float32)
        if id < len(base.stems):
            rows, impacts = _living(base.posting(id), stack.row)
        if own[id] < 0:
            return rows, impacts
        late_rows, late_impacts = _living(delta.posting(int(own[id])), stack.row[stack.base :])
        at = np.searchsorted(rows, late_rows)
        return np.insert(rows, at, late_rows), np.insert(impacts, at, late_impacts)

    def _parts(self) -> tuple[Postings, Postings, NDArray[np.int32], Stack]:
        if self.base is None or self.delta is None or self.own is None or self.stack is None:
            raise ValueError("open with of_rooms")
        return self.base, self.delta, self.own, self.stack

    def flat(self) -> Postings:
        """In arrays of its own, as a build makes them."""
        found = [self.posting(id) for id in range(len(self.stems))]
        offsets = np.zeros(len(found) + 1, np.int64)
        np.cumsum([len(rows) for rows, _ in found], out=offsets[1:])
        rows, impacts = (np.concatenate(part) for part in zip(*found, strict=True))
        return Postings(self.stems, offsets, rows, impacts, self.lengths)


def _living(posting: Posting, row: NDArray[np.int32]) -> Posting:
    rows = row[posting[0]]
    living = rows != GONE
    return (rows, posting[1]) if living.all() else (rows[living], posting[1][living])
