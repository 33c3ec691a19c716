"""What training makes smaller: in-batch softmax (CodeSearchNet's) and the margin of UNIF's paper.

Both take the scores of every question of a batch with every code, [n, n], right pairs on the diagonal, and `twins`,
bool [n, n]: rows that ask the same or are the same code, which are no negatives of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

if TYPE_CHECKING:
    from unif.data import Ids


def same(query: Ids, code: Ids) -> Ids:
    """bool [n, n]: which rows ask the same or are the same code, and so are no negatives of each other."""
    numbers = [np.unique(ids, axis=0, return_inverse=True)[1].reshape(-1) for ids in (query, code)]
    equal: Ids = np.logical_or.reduce([number[:, None] == number for number in numbers])
    return equal


def softmax_loss(scores: Tensor, twins: Tensor) -> Tensor:
    """Of scores [n, n], those of right pairs on the diagonal: choosing the right code among the batch's."""
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    return F.cross_entropy(scores.masked_fill(twins & ~own, -torch.inf), own.float().argmax(dim=1))


def margin_loss(cosines: Tensor, twins: Tensor, margin: float) -> Tensor:
    """max(0, margin - cos(q, c+) + cos(q, c-)), c- the next code of the batch, whose order is drawn."""
    following = torch.arange(len(cosines), device=cosines.device).roll(-1)  # [n]
    wrong = cosines.gather(1, following[:, None])[:, 0]  # [n]
    good = ~twins.gather(1, following[:, None])[:, 0]
    losses = (margin - cosines.diagonal() + wrong).clamp(min=0) * good
    return losses.sum() / good.sum().clamp(min=1)
