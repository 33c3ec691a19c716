"""Batches of padded word ids as tensors, of texts that lie on the device where they fit, else in their mapped files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from unif.data import Ids, Pairs, Texts
    from unif.settings import TrainConfig

SHARE = 0.25
"""Of a device's free memory that texts may take."""


class Padded:
    """Texts as tensors: on CUDA where they fit, else where they are mapped; nothing is read before it is used."""

    def __init__(self, texts: Texts, device: torch.device) -> None:
        self.device = device
        place = device if _fit(texts, device) else torch.device("cpu")
        self.ids, self.offsets = (torch.from_numpy(each).to(place) for each in (texts.ids, texts.offsets))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __call__(self, rows: Ids, longest: int, *, unique: bool = False) -> Tensor:
        """The first `longest` words of these rows, int64 [n, l], zeros behind; unique: repeated words as zeros."""
        at = torch.from_numpy(np.ascontiguousarray(rows, np.int64)).to(self.offsets.device)
        begins = self.offsets[at]
        lengths = (self.offsets[at + 1] - begins).clamp(max=longest)
        places = torch.arange(int(lengths.max()) if len(at) else 0, device=at.device)  # [l]
        there = places < lengths[:, None]  # [n, l]
        found = torch.zeros(there.shape, dtype=torch.int64, device=at.device)
        found[there] = self.ids[(begins[:, None] + places)[there]].long()
        return (_once(found) if unique else found).to(self.device)


def _fit(texts: Texts, device: torch.device) -> bool:
    if device.type != "cuda":
        return False
    free, _ = torch.cuda.mem_get_info(device)
    return texts.ids.nbytes + texts.offsets.nbytes < SHARE * free


def _once(ids: Tensor) -> Tensor:
    """Every word but the first of its kind in each row set to 0."""
    ordered, order = ids.sort(dim=1, stable=True)
    again = torch.zeros_like(ids, dtype=torch.bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return torch.zeros_like(ids).scatter_(1, order, ordered.masked_fill(again, 0))


@dataclass(frozen=True, slots=True)
class Batch:
    """Word ids [n, l] of questions, their codes, and a hard negative of each or None; as they are, nothing dropped.

    listed: word ids [c, l] of the functions that a teacher's lists are of, or None.
    """

    query: Tensor
    code: Tensor
    negatives: Tensor | None = None
    listed: Tensor | None = None


class Source:
    """Where a training takes its batches from. hard: [n_rows, mined], rows of `pool`, NOWHERE where there are fewer."""

    def __init__(self, pairs: Pairs, config: TrainConfig, device: torch.device, pool: Texts | None = None) -> None:
        self.config = config
        self.query, self.code = Padded(pairs.query, device), Padded(pairs.code, device)
        self.pool = self.code if pool is None else Padded(pool, device)
        self.hard: Ids | None = None

    def batch(self, rows: Ids, draw: np.random.Generator | None = None) -> Batch:
        """These rows; with `draw` and after mining, one of the hard negatives of each, none as a row of zeros."""
        query = self.query(rows, self.config.query_words)
        code = self.code(rows, self.config.code_words, unique=self.config.unique)
        if draw is None or self.hard is None:
            return Batch(query, code)
        found = np.asarray(self.hard[rows], np.int64)
        chosen = found[np.arange(len(rows)), draw.integers(0, found.shape[1], len(rows))]
        negatives = self.pool(np.maximum(chosen, 0), self.config.code_words, unique=self.config.unique)
        negatives[torch.from_numpy(chosen < 0).to(negatives.device)] = 0
        return Batch(query, code, negatives)


def dropped(ids: Tensor, share: float, random: torch.Generator) -> Tensor:
    """A share of the words left out at random."""
    if not share:
        return ids
    return ids.masked_fill(torch.rand(ids.shape, generator=random, device=ids.device) < share, 0)
