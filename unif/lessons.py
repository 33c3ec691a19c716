"""What a teacher's lists say of a batch: candidates of its questions, how much of each, and which are no negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from unif.batches import Padded
from unif.data import NOWHERE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.data import Ids, Pairs, Texts
    from unif.settings import TrainConfig
    from unif.teacher import Lists

LEADING = 8
"""Candidates that are always looked at; the others of a list are drawn."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Of n questions: word ids [c, l] of functions, the share [n, c] of each by the teacher, zeros for a question that
    it was not asked; near: bool [n, n + c], functions of the batch's codes and of these that its list holds. The last
    `strangers` of the functions are in no list of these questions' candidates: they stand for all of the index."""

    code: Tensor
    shares: Tensor
    near: Tensor
    strangers: int = 0


class Lessons:
    """Draws lessons. shares: softmax of the teacher's scores by the temperature `soft`."""

    def __init__(self, lists: Lists, functions: Texts, pairs: Pairs, config: TrainConfig, device: torch.device) -> None:
        self.lists, self.pairs, self.config, self.device = lists, pairs, config, device
        self.functions = Padded(functions, device)

    def lesson(self, rows: Ids, draw: np.random.Generator) -> Lesson | None:
        """Of these rows of pairs; None where none of them was answered by the teacher."""
        taught = np.asarray(self.pairs.taught[rows], np.int64)
        at = np.flatnonzero(taught >= 0)
        if not len(at):
            return None
        listed, scores = np.asarray(self.lists.rows[taught[at]]), np.asarray(self.lists.scores[taught[at]])
        picked = _picked((listed >= 0).sum(axis=1), min(self.config.candidates, listed.shape[1]), draw)
        chosen, said = np.take_along_axis(listed, picked, 1), np.take_along_axis(scores, picked, 1)
        strangers = draw.integers(0, len(self.functions), self.config.strangers)
        known, inverse = np.unique(chosen, return_inverse=True)
        columns = np.concatenate([known, np.setdiff1d(strangers, known)]).astype(np.int64)
        place = inverse.reshape(chosen.shape)  # [taught, candidates]
        shares = np.zeros((len(rows), len(columns)), np.float32)
        np.add.at(shares, (at[:, None], place), _softmax(said / self.config.soft))
        near = self._near(rows, at, listed, columns)
        near[:, len(rows) :] &= shares == 0
        code = self.functions(columns, self.config.code_words, unique=self.config.unique)
        told, near_by = (torch.from_numpy(each).to(self.device) for each in (shares, near))
        return Lesson(code, told, near_by, len(columns) - len(known))

    def _near(self, rows: Ids, at: Ids, listed: NDArray[np.int32], columns: Ids) -> NDArray[np.bool_]:
        """Which of the batch's codes, and of these functions, are in the list of each question, or are its own code."""
        own = np.asarray(self.pairs.row[rows])
        near = np.zeros((len(rows), len(rows) + len(columns)), np.bool_)
        place = np.full(len(self.functions) + 1, NOWHERE, np.int64)  # the last is NOWHERE's
        place[columns] = np.arange(len(columns))
        found = place[listed]
        question, _ = np.nonzero(found >= 0)
        near[at[question], len(rows) + found[found >= 0]] = True
        same = (own[:, None] == columns) & (own[:, None] >= 0)
        near[:, len(rows) :] |= same
        member = np.zeros(len(self.functions) + 1, np.bool_)
        for question, functions in zip(at, listed, strict=True):
            member[functions] = True
            near[question, : len(rows)] = member[own] & (own >= 0)
            member[functions] = False
        return near


def _picked(lengths: Ids, wanted: int, draw: np.random.Generator) -> Ids:
    """Places [n, wanted] in lists of these lengths: the first LEADING, and draws of the rest, which may repeat."""
    leading = np.minimum(np.arange(min(LEADING, wanted)), lengths[:, None] - 1)
    rest = np.maximum(lengths[:, None] - LEADING, 1)
    drawn = LEADING + (draw.random((len(lengths), max(0, wanted - LEADING))) * rest).astype(np.int64)
    return np.concatenate([leading, np.minimum(drawn, lengths[:, None] - 1)], axis=1)


def _softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.float32] = raised / raised.sum(axis=1, keepdims=True)
    return shares
