"""The best rows of some questions by exact search, while chunks of vectors go by, and how many a search finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix

BEST = 10


class Searches(Protocol):
    """What finds rows: ncs.storage.approximate.Approximate."""

    def nearest(
        self, query: Matrix, n: int, selector: Any, share: float
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...


class Best:
    """questions: [m, dim]; tell it of all rows in their order."""

    KEPT = 4 * BEST

    def __init__(self, questions: Matrix) -> None:
        self.questions = np.ascontiguousarray(questions, np.float32)
        self._scores = np.full((len(questions), self.KEPT), -np.inf, np.float32)
        self._rows = np.full((len(questions), self.KEPT), -1, np.int64)
        self._seen = 0

    def see(self, chunk: Matrix) -> None:
        """The next rows."""
        if not len(self.questions) or not len(chunk):
            return
        scores = np.concatenate([self._scores, self.questions @ chunk.T], axis=1)
        at = np.arange(self._seen, self._seen + len(chunk))
        rows = np.concatenate([self._rows, np.broadcast_to(at, (len(scores), len(at)))], axis=1)
        order = np.argpartition(-scores, self.KEPT - 1, axis=1)[:, : self.KEPT]
        self._scores, self._rows = np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)
        self._seen += len(chunk)

    def recall(self, searcher: Searches) -> float:
        """The share of the best ten that it finds, what ties with the tenth counted alike; -1 without questions."""
        if not len(self.questions) or self._seen < BEST:
            return -1.0
        tenth = np.partition(self._scores, -BEST, axis=1)[:, -BEST]
        met = 0
        for query, scores, rows, least in zip(self.questions, self._scores, self._rows, tenth, strict=True):
            found = searcher.nearest(query, BEST, None, 1.0)[1]
            met += np.count_nonzero(np.isin(found, rows[scores >= least - 1e-6]))
        return float(met / (BEST * len(self.questions)))
