"""Losses: in-batch softmax (CodeSearchNet's) and the margin of UNIF's paper.

Both take scores [m, k] of m questions with k codes, `own`: [m], the place of each question's code, and `twins`, bool
[m, k]: codes that are no negatives of a question: equal to its own, or of the same question.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)


def softmax_loss(scores: Tensor, own: Tensor, twins: Tensor) -> Tensor:
    """Choosing the right code among all: the cross entropy of each question, [m]."""
    is_own = torch.zeros_like(twins).scatter_(1, own[:, None], True)
    return F.cross_entropy(scores.masked_fill(twins & ~is_own, -torch.inf), own, reduction="none")


def margin_loss(cosines: Tensor, own: Tensor, other: Tensor, margin: float) -> Tensor:
    """max(0, margin - cos(q, c+) + cos(q, c-)) of each question, [m]; other: [m], the places of c-."""
    positive, negative = (cosines.gather(1, place[:, None])[:, 0] for place in (own, other))
    return (margin - positive + negative).clamp(min=0)


def find_twins(query: Tensor, code: Tensor, negatives: Tensor | None = None) -> Tensor:
    """bool [n, n]: which rows have the same question or code; with negatives [n, n + n]: and which are no negatives.

    All are ids, [n, l] each.
    """
    queries, codes = row_hashes(query), row_hashes(code)
    twins = (queries[:, None] == queries) | (codes[:, None] == codes)
    if negatives is None:
        return twins
    return torch.cat([twins, (codes[:, None] == row_hashes(negatives)) | ~(negatives > 0).any(dim=1)], dim=1)


def row_hashes(ids: Tensor) -> Tensor:
    """A hash of each row of ids [n, l], int64 [n], that does not depend on padding at the end.

    >>> one, other, same = row_hashes(torch.tensor([[1, 2, 0], [2, 1, 0], [1, 2, 0]])).tolist()
    >>> one == same, one == other
    (True, False)
    """
    places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
    factors = _mix_bits(places * -7046029254386353131) | 1  # odd: no bit of an id is lost
    return _mix_bits((ids * factors).sum(dim=1))


def _mix_bits(numbers: Tensor) -> Tensor:
    """Mix the bits: multiplications modulo 2^64 and shifts."""
    numbers = (numbers ^ (numbers >> 30)) * -4658895280553007687
    return numbers ^ (numbers >> 27)
