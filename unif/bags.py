"""Encoders that do not see a word's neighbours: UNIF's sides (Cambronero et al. 2019, section 3), bags of tokens.

Words come as ids [n, l]; id 0 is no word, wherever it stands. A row without words gives zeros.
Shapes stand at line ends: n texts, l words a text, V words of the vocabulary, d dimensions, h heads.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

Weighing = Literal["mean", "attention", "weighted", "words", "max"]


def token_table(start: Tensor) -> nn.Embedding:
    """Vectors of tokens [V + 1, d] that start from [V, d], the row of no token first: zeros that learn nothing."""
    first = torch.cat([start.new_zeros(1, start.shape[1]), start])
    return nn.Embedding(len(first), first.shape[1], padding_idx=0, _weight=first)


class Bag(nn.Module):
    """The weighted mean of word vectors, made a unit vector. The weight of a word is exp(its score):

    mean: score 0. attention: a . e_w, UNIF's; of several heads the means are averaged. weighted: log sigmoid(a . e_w +
    b), CodeSearchNet's weighted mean. words: a learnt number of the word itself. A prior [V] is added to the score.
    max: no mean but the highest number of each dimension. longest: words that are read of a text, None for all.
    """

    kind = "bag"
    prior: Tensor | None

    def __init__(
        self,
        start: Tensor,
        weighing: Weighing = "mean",
        prior: Tensor | None = None,
        *,
        heads: int = 1,
        dropout: float = 0.0,
        longest: int | None = None,
    ) -> None:
        super().__init__()
        self.longest = longest
        self.table = token_table(start)  # [V + 1, d]
        self.register_buffer("prior", None if prior is None else F.pad(prior, (1, 0)), persistent=False)  # [V + 1]
        self.weighing, self.dropout, bound = weighing, nn.Dropout(dropout), start.shape[1] ** -0.5
        if weighing in ("attention", "weighted"):
            self.attention = nn.Parameter(torch.empty(heads, start.shape[1]).uniform_(-bound, bound))  # [h, d]
        if weighing == "weighted":
            self.bias = nn.Parameter(torch.zeros(1))
        if weighing == "words":
            self.words = nn.Embedding(len(start) + 1, 1, padding_idx=0)  # [V + 1, 1]
            nn.init.zeros_(self.words.weight)

    def scores(self, table: Tensor) -> Tensor:
        """The logarithm of the weight of every word of a table [V + 1, d], [V + 1, h]."""
        scores = table.new_zeros(len(table), 1)
        if self.weighing in ("attention", "weighted"):
            scores = (table @ self.attention.T).to(table.dtype)  # [V + 1, h]
        if self.weighing == "weighted":
            scores = F.logsigmoid(scores + self.bias)
        if self.weighing == "words":
            scores = self.words.weight
        return scores if self.prior is None else scores + self.prior.unsqueeze(-1)

    def weights(self, ids: Tensor, table: Tensor) -> Tensor:
        """Softmax of the scores over the words that are there, averaged over heads, [n, l]; zeros without words."""
        there = (ids > 0).unsqueeze(-1)
        each = self.scores(table).to(torch.promote_types(table.dtype, torch.float32))  # [V + 1, h]
        scores = each.index_select(0, ids.reshape(-1)).view(*ids.shape, each.shape[1])  # embedding is slow back
        scores = scores.masked_fill(~there, -torch.inf)  # [n, l, h]
        highest = scores.detach().amax(dim=1, keepdim=True).clamp(min=-1e30)  # [n, 1, h]
        weights = torch.exp(scores - highest)  # [n, l, h]; exp(-inf) = 0
        return (weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-30)).mean(dim=2).to(table.dtype)

    def forward(self, ids: Tensor) -> Tensor:
        """Unit vectors [n, d] of texts [n, l]; [n, l, d] is made for the maximum only. A word is dropped out of all."""
        table: Tensor = self.dropout(self.table.weight)  # [V + 1, d]
        if self.longest is not None and ids.shape[1] > self.longest:
            ids = front(ids)[:, : self.longest]
        if not ids.shape[1]:
            return table.new_zeros(len(ids), table.shape[1])
        if self.weighing == "max":
            return F.normalize(highest(F.embedding(ids, table, padding_idx=0), ids > 0), dim=1)
        weights = self.weights(ids, table)  # [n, l]
        pooled = F.embedding_bag(ids, table, mode="sum", per_sample_weights=weights, padding_idx=0)  # [n, d]
        return F.normalize(pooled, dim=1)

    def settings(self) -> dict[str, object]:
        """What `unif.forward.encode` needs beside the arrays."""
        return {"pooling": "max" if self.weighing == "max" else "scores", "longest": self.longest}

    @torch.no_grad()
    def arrays(self) -> dict[str, Tensor]:
        """table [V + 1, d] and scores [V + 1, h]: one score a word, whatever gave it."""
        table = self.table.weight.detach()
        if self.weighing == "max":
            return {"table": table}
        return {"table": table, "scores": self.scores(table)}


def highest(vectors: Tensor, there: Tensor) -> Tensor:
    """The maximum [n, d] of the vectors [n, l, d] that are there [n, l]; zeros where none is."""
    there = there.unsqueeze(-1)
    found = vectors.masked_fill(~there, torch.finfo(vectors.dtype).min).amax(dim=1)  # [n, d]
    return found.masked_fill(~there.any(dim=1), 0)


def front(ids: Tensor) -> Tensor:
    """Every row's tokens moved to its front [n, l], and cut where the longest row ends."""
    there = ids > 0
    order = there.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    longest = int(there.sum(dim=1).max()) if ids.numel() else 0
    return ids.gather(1, order)[:, :longest]
