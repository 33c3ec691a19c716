"""What a head that translates learns: vectors of questions and functions, then the tables of `unif.translation`.

Rows of pairs come as CSR on the CPU (unif.fielded); the tables may lie on another device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs.errors import BadInput
from unif.head import Head, Side
from unif.tokenization import Stems
from unif.translation import Translation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.data import Ids
    from unif.fielded import Fielded
    from unif.settings import TranslationConfig

LEAST_MET, SHIFT = 2, float(np.log(2))
"""How often two words meet to be told of each other; what is taken off the logarithm of how much more than chance."""
LEAST_LENGTH = 0.3
"""A vector as short as this at the start stays short: little is known of its word."""
LIGHT, HEAVY = -6.0, 4.0
"""Bounds of the logarithm of a word's weight."""
MET_IN = 1_000_000
"""Pairs in which words are counted together, drawn evenly where there are more."""


def beginning(pairs: Fielded, rows: Ids, config: TranslationConfig) -> tuple[Tensor, Tensor]:
    """T_q and T_c [V, d]: singular vectors of the positive logarithms of how much more than chance words meet in the
    undocumented ones of these rows."""
    from scipy.sparse import csr_matrix
    from sklearn.utils.extmath import randomized_svd

    rows = rows[~pairs.documented[rows]]
    rows = rows[np.unique(np.linspace(0, max(0, len(rows) - 1), min(MET_IN, len(rows))).astype(np.int64))]
    met = (pairs.query[rows].T @ (pairs.code[rows] > 0).astype(np.float32)).tocoo()
    if met.shape[0] <= config.dim or not met.nnz:
        raise BadInput(f"the pairs have {met.shape[0]} words; more than {config.dim}, of undocumented code, are needed")
    asked, said = (np.bincount(ids, met.data, met.shape[0]) for ids in (met.row, met.col))
    more = np.log(met.data * met.data.sum() / (asked[met.row] * said[met.col])) - SHIFT
    kept = (more > 0) & (met.data >= LEAST_MET)
    table = csr_matrix((more[kept].astype(np.float32), (met.row[kept], met.col[kept])), met.shape)
    left, values, right = randomized_svd(table, config.dim, n_iter=2, random_state=config.seed)
    draw = np.random.default_rng(config.seed)
    found = []
    for each in (left * np.sqrt(values), right.T * np.sqrt(values)):
        each = each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), LEAST_LENGTH)
        found.append(torch.from_numpy(each + draw.normal(size=each.shape, scale=0.02 * config.dim**-0.5)).float())
    return found[0], found[1]


def _table(start: Tensor) -> nn.Embedding:
    """Rows that start from these, of which a step moves those of its words."""
    return nn.Embedding(len(start), start.shape[1], sparse=True, _weight=start)


class Vectors(nn.Module):
    """Questions and functions as unit vectors: sums of word vectors, by impact and a learnt weight of the word."""

    def __init__(self, query: Tensor, code: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.query, self.code = _table(query), _table(code)
        self.asked, self.counted = (_table(weights[:, None].clone()) for _ in range(2))
        self.log_scale = nn.Parameter(torch.tensor(2.7))

    def forward(self, query: Any, code: Any) -> Tensor:
        """Scores [a, b] of functions, CSR [b, V], to questions, CSR [a, V]."""
        near = _bag(query, self.query, self.asked) @ _bag(code, self.code, self.counted).T
        return near * self.log_scale.clamp(max=float(np.log(100))).exp()


def _bag(rows: Any, table: nn.Embedding, weight: nn.Embedding) -> Tensor:
    """Unit vectors [n, d]; zeros for an empty row."""
    device = table.weight.device
    ids, starts = _on(rows.indices, device), _on(rows.indptr[:-1], device)
    weights = torch.from_numpy(rows.data).to(device) * weight(ids)[:, 0].clamp(LIGHT, HEAVY).exp()
    summed = F.embedding_bag(ids, table.weight, starts, mode="sum", per_sample_weights=weights, sparse=True)
    return F.normalize(summed, dim=1)


def _on(ids: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(ids.astype(np.int64)).to(device)


class WordByWord(nn.Module):
    """The translation of `unif.translation`, from where the vectors of words have come to."""

    def __init__(self, start: Vectors, config: TranslationConfig) -> None:
        super().__init__()
        self.query, self.code = (_table(F.normalize(each.weight.detach(), dim=1)) for each in (start.query, start.code))
        self.asked = _table(start.asked.weight.detach().clone())
        self.counted = _table(torch.zeros_like(start.asked.weight))
        self.limit, self.same = (nn.Parameter(torch.tensor(float(np.log(each)))) for each in (config.half, config.same))
        self.log_scale, self.power = nn.Parameter(torch.tensor(3.0)), config.power

    def forward(self, query: Any, code: Any) -> Tensor:
        """Scores [a, b]; made once for every word of the batch, not for every place where it stands."""
        device = self.query.weight.device
        asked, at = np.unique(query.indices, return_inverse=True)
        there, places = np.unique(code.indices, return_inverse=True)
        t, u, place = _on(asked, device), _on(there, device), _on(at, device)
        table = F.relu(self.query(t) @ self.code(u).T) ** self.power  # [t, u]
        table = table + self.same.exp() * (t[:, None] == u[None])
        weights = torch.from_numpy(code.data).to(device) * self.counted(_on(code.indices, device))[:, 0].exp()
        cells = _on(np.stack([_rows(code), places]), device)
        sparse = torch.sparse_coo_tensor(cells, weights, (code.shape[0], len(u)), check_invariants=False)
        found = torch.sparse.mm(sparse, table.T)  # [b, t]
        weighed = self.asked(t)[:, 0].clamp(LIGHT, HEAVY).exp()[place]
        shares = torch.zeros(query.shape[0], len(t), device=device)
        shares = shares.index_put((_on(_rows(query), device), place), weighed)  # [a, t]
        shares = shares / shares.sum(dim=1, keepdim=True).clamp(min=1e-6)
        scores: Tensor = shares @ (found / (found + self.limit.exp())).T * self.log_scale.exp()
        return scores


def _rows(rows: Any) -> NDArray[np.int64]:
    """The row of each entry of a CSR."""
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def exported(
    vectors: Vectors, words: WordByWord, pairs: Fielded, config: TranslationConfig, about: Mapping[str, object]
) -> Head:
    """Plain arrays, the row of no token first."""
    tokens = Stems(pairs.stems)
    settings = {"pooling": "scores", "longest": None}

    def array(table: nn.Embedding, change: Callable[[Tensor], Tensor] = lambda each: each) -> NDArray[np.float32]:
        return np.asarray(F.pad(change(table.weight.detach().cpu()), (0, 0, 1, 0)).numpy(), np.float32)

    def weights(table: nn.Embedding) -> NDArray[np.float32]:
        return array(table, lambda each: each.clamp(LIGHT, HEAVY))

    query, code = (
        Side("bag", tokens, {"table": array(table), "scores": weights(weight)}, settings)
        for table, weight in ((vectors.query, vectors.asked), (vectors.code, vectors.counted))
    )
    unit = [array(table, lambda each: F.normalize(each, dim=1)) for table in (words.query, words.code)]
    numbers = [float(each.detach().exp()) for each in (words.limit, words.same)]
    flat = weights(words.asked)[:, 0], array(words.counted)[:, 0]
    return Head(query, code, "fields", about, Translation(unit[0], unit[1], *flat, config.power, *numbers))
