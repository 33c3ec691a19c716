"""The networks: UNIF (Cambronero et al. 2019, section 3) and CodeSearchNet's neural bag of words (Husain et al. 2019).

Words come as ids [n, l]; id 0 is no word: padding, or a word without a vector. A row without words gives zeros.
Shapes stand at line ends: n texts, l words a text, V words of the vocabulary, d dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from unif.head import Side
from unif.settings import Encoder, ModelConfig

if TYPE_CHECKING:
    from ncs.types import Matrix

Pooling = Literal["mean", "attention", "gate", "words"]
LEAST_IDF = 0.01  # of a word that every document has: its prior is small, not minus infinity
NBOW_DIM = 128  # CodeSearchNet's


class Bag(nn.Module):
    """A weighted mean of word vectors, made a unit vector. The weight of a word is exp(its score):

    mean: score 0. attention: a . e_w, UNIF's; the softmax over a document's words. gate: log sigmoid(a . e_w + b),
    CodeSearchNet's weighted sum. words: a learnt number of the word itself. A prior [V] is added to the score.
    """

    start: Tensor
    prior: Tensor | None

    def __init__(self, start: Tensor, pooling: Pooling = "mean", prior: Tensor | None = None) -> None:
        super().__init__()
        first = torch.cat([start.new_zeros(1, start.shape[1]), start])  # [V + 1, d]
        n, dim = first.shape
        self.table = nn.Embedding(n, dim, padding_idx=0, sparse=True, _weight=first.clone())  # [V + 1, d]
        self.register_buffer("start", first, persistent=False)  # [V + 1, d]
        self.register_buffer("prior", None if prior is None else F.pad(prior, (1, 0)), persistent=False)  # [V + 1]
        self.pooling, bound = pooling, dim**-0.5
        if pooling in ("attention", "gate"):
            self.attention = nn.Parameter(torch.empty(dim).uniform_(-bound, bound))  # [d]
        if pooling == "gate":
            self.bias = nn.Parameter(torch.zeros(1))
        if pooling == "words":
            self.words = nn.Embedding(n, 1, padding_idx=0, sparse=True)  # [V + 1, 1]
            nn.init.zeros_(self.words.weight)

    def scores(self, ids: Tensor, vectors: Tensor) -> Tensor:
        """The logarithm of each word's weight, of the shape of ids."""
        scores = vectors.new_zeros(ids.shape)
        if self.pooling in ("attention", "gate"):
            scores = vectors @ self.attention  # [n, l]
        if self.pooling == "gate":
            scores = F.logsigmoid(scores + self.bias)
        if self.pooling == "words":
            scores = self.words(ids).squeeze(-1)
        return scores if self.prior is None else scores + self.prior[ids]

    def weights(self, ids: Tensor, vectors: Tensor) -> Tensor:
        """Softmax of the scores over the words that are there, [n, l]; zeros in a row without words."""
        there = ids > 0
        scores = self.scores(ids, vectors).masked_fill(~there, -torch.inf)  # [n, l]
        highest = scores.detach().amax(dim=1, keepdim=True).clamp(min=-1e30)  # [n, 1]
        weights = torch.exp(scores - highest)  # [n, l]; exp(-inf) = 0
        return weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-30)

    def forward(self, ids: Tensor) -> Tensor:
        """Unit vectors [n, d] of texts [n, l]."""
        if not ids.shape[1]:
            return self.start.new_zeros(len(ids), self.start.shape[1])
        vectors = self.table(ids)  # [n, l, d]
        pooled = (self.weights(ids, vectors).unsqueeze(-1) * vectors).sum(dim=1)  # [n, d]
        return F.normalize(pooled, dim=1)

    def moved(self, ids: Tensor) -> Tensor:
        """The mean squared distance of these words' vectors from where they started."""
        there = torch.unique(ids[ids > 0])
        if not len(there):
            return self.start.new_zeros(())
        moved: Tensor = self.table(there) - self.start[there]  # [words, d]
        return moved.square().sum(dim=1).mean()

    @torch.no_grad()
    def side(self) -> Side:
        """As plain arrays, the row of id 0 left out."""
        table = self.table.weight.detach()
        ids = torch.arange(len(table), device=table.device)
        scores = self.scores(ids[None], table[None])[0]
        return Side(table[1:].cpu().numpy().copy(), scores[1:].float().cpu().numpy().copy())


class Towers(nn.Module):
    """A query encoder and a code encoder whose unit vectors are compared by cosine; scale: the inverse temperature."""

    def __init__(self, query: Bag, code: Bag) -> None:
        super().__init__()
        self.query, self.code = query, code
        self.log_scale = nn.Parameter(torch.tensor(3.0))  # e^3 = 20, a temperature of .05

    @property
    def scale(self) -> Tensor:
        """At most 100, as CLIP caps it."""
        return self.log_scale.clamp(max=np.log(100.0)).exp()

    def sparse_parameters(self) -> list[nn.Parameter]:
        """Tables: a step moves only the rows of the words in its batch."""
        tables = {id(module.weight) for module in self.modules() if isinstance(module, nn.Embedding)}
        return [parameter for parameter in self.parameters() if id(parameter) in tables]

    def dense_parameters(self) -> list[nn.Parameter]:
        """All the others."""
        tables = {id(table) for table in self.sparse_parameters()}
        return [parameter for parameter in self.parameters() if id(parameter) not in tables]


def _unif(start: Tensor, idf: Tensor, config: ModelConfig) -> Towers:
    """T_query and T_code start from the same matrix and part from there."""
    log_idf = idf.clamp(min=LEAST_IDF).log()  # [V]
    weighing: Pooling = "words" if config.query_weights == "words" else "mean"
    query = Bag(start, weighing, log_idf if config.query_weights == "idf" else None)
    code = Bag(start, "attention", log_idf if config.prior == "idf" else None)
    return _towers(query, code, config)


def _nbow(start: Tensor, idf: Tensor, config: ModelConfig) -> Towers:
    """Both sides from random vectors and with weighted pooling: nothing of the index but its words."""
    size = (len(start), NBOW_DIM)
    query, code = (Bag(torch.empty(size).normal_(std=NBOW_DIM**-0.5), "gate") for _ in range(2))
    return _towers(query, code, config)


def _towers(query: Bag, code: Bag, config: ModelConfig) -> Towers:
    if config.shared:
        query.table = code.table
        query.start = code.start
    return Towers(query, code)


ENCODERS: Mapping[Encoder, Callable[[Tensor, Tensor, ModelConfig], Towers]] = {"unif": _unif, "nbow": _nbow}
"""name -> what makes it of the word vectors [V, d] of an index and the idf [V] of its words."""


def create(config: ModelConfig, start: Matrix, idf: Matrix, *, seed: int = 0) -> Towers:
    """The network before training; the seed decides what is random in it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tensors = (torch.from_numpy(np.array(array, np.float32)) for array in (start, idf))
        return ENCODERS[config.encoder](*cast("tuple[Tensor, Tensor]", tuple(tensors)), config)
