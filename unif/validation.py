"""How good a network is before and after an epoch: its reciprocal rank on questions that it does not learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from unif.drawing import one_a_question
from unif.losses import alike
from unif.objective import centred

if TYPE_CHECKING:
    from unif.batches import Source
    from unif.data import Ids, Pairs
    from unif.model import Towers

AMONG = 1_000
"""Codes among which a validation question has to find its own, as in CodeSearchNet."""


@torch.no_grad()
def validation_mrr(towers: Towers, source: Source, pairs: Pairs, rows: Ids) -> float:
    """Mean reciprocal rank of a question's code among AMONG others' at most; ties count against it, twins do not."""
    ranks = []
    order = one_a_question(pairs.question, rows, np.random.default_rng(source.config.seed))
    for some in np.array_split(order, max(1, round(len(order) / AMONG))):
        batch = source.batch(some)
        codes = towers.code(batch.code)
        cosines = towers.query(batch.query) @ (centred(codes, codes) if source.config.centre else codes).T  # [n, n]
        above = (cosines >= cosines.diagonal()[:, None]) & ~alike(batch.query, batch.code)
        ranks.append(1 / (1 + above.sum(dim=1)).double())
    return float(torch.cat(ranks).mean())
