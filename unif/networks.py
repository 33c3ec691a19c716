"""The networks of UNIF and CodeSearchNet, as pairs of towers, and their export to plain arrays.

Tokens are ids [n, l]; id 0 is padding, at any position; a row without tokens gives zeros. A new encoder is a
module here, its numpy function in `ncs.learn.heads.BODIES`, and a row in ENCODERS.
Shapes are at line ends: n texts, l tokens a text, V tokens, d dimensions, h attention heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs.learn.heads import Head
from ncs.learn.heads import Tower as ServedTower
from ncs.learn.tokenization import Tokenizer
from unif.config import Encoder, Pooling, TrainConfig
from unif.data import DIM, Inputs

LONGEST_QUERY, LONGEST_CODE = 30, 200
"""Tokens of a text that CodeSearchNet's encoders read."""
GROUP = 32
"""Texts of like length that a CPU encodes at a time: random batches of 200 tokens are more than half padding."""


class Bag(nn.Module):
    """The mean of word vectors weighted by softmax of a score per word, as a unit vector (UNIF, section 3; NBoW).

    mean: score 0. attention: a . e_w, UNIF's. weighted: log sigmoid(a . e_w + b), CodeSearchNet's weighted mean.
    max: no mean but the maximum of each dimension. longest: words that are read of a text, None for all.
    """

    kind = "bag"

    def __init__(
        self,
        start: Tensor,
        weighting: Literal["mean", "attention", "weighted", "max"] = "mean",
        *,
        dropout: float = 0.0,
        longest: int | None = None,
    ) -> None:
        super().__init__()
        self.weighting, self.longest, self.dropout = weighting, longest, nn.Dropout(dropout)
        self.table = token_table(start)  # [V + 1, d]
        if weighting in ("attention", "weighted"):
            bound = start.shape[1] ** -0.5
            self.attention = nn.Parameter(torch.empty(start.shape[1]).uniform_(-bound, bound))  # [d]
        if weighting == "weighted":
            self.bias = nn.Parameter(torch.zeros(1))

    def scores(self, table: Tensor) -> Tensor:
        """The logarithm of the weight of every word of a table [V + 1, d], [V + 1]."""
        if self.weighting not in ("attention", "weighted"):
            return table.new_zeros(len(table))
        scores = (table @ self.attention).to(table.dtype)
        return F.logsigmoid(scores + self.bias) if self.weighting == "weighted" else scores

    def forward(self, ids: Tensor) -> Tensor:
        """Unit vectors [n, d] of texts [n, l]; [n, l, d] is made for the maximum only."""
        table: Tensor = self.dropout(self.table.weight)  # [V + 1, d]
        if self.longest is not None and ids.shape[1] > self.longest:
            ids = move_to_front(ids)[:, : self.longest]
        if not ids.shape[1]:
            return table.new_zeros(len(ids), table.shape[1])
        if self.weighting == "max":
            return F.normalize(masked_max(F.embedding(ids, table, padding_idx=0), ids > 0), dim=1)
        scores = self.scores(table).to(torch.promote_types(table.dtype, torch.float32))  # [V + 1]
        scores = scores.index_select(0, ids.reshape(-1)).view_as(ids)  # F.embedding has a slow backward
        scores = scores.masked_fill(ids == 0, -torch.inf)  # [n, l]
        highest = scores.detach().amax(dim=1, keepdim=True).clamp(min=-1e30)
        weights = torch.exp(scores - highest)  # [n, l]; exp(-inf) = 0
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-30)
        # CUDA has no backward of embedding_bag's weights in bfloat16.
        pooled = F.embedding_bag(ids, table.float(), mode="sum", per_sample_weights=weights.float(), padding_idx=0)
        return F.normalize(pooled, dim=1)  # [n, d]

    def settings(self) -> dict[str, object]:
        """The settings that `ncs.learn.heads` needs beside the arrays."""
        return {"pooling": "max" if self.weighting == "max" else "scores", "longest": self.longest}

    @torch.no_grad()
    def arrays(self) -> dict[str, Tensor]:
        """table [V + 1, d] and scores [V + 1, 1]: one score per word, whatever gave it."""
        table = self.table.weight.detach()
        return {"table": table} | ({} if self.weighting == "max" else {"scores": self.scores(table)[:, None]})


class Sequence(nn.Module):
    """Token vectors, a body that puts them in context, and pooling into a unit vector (Husain et al. 2019, 4.1).

    Sizes are those of CodeSearchNet's released code. longest: tokens that are read of a text.
    """

    def __init__(self, start: Tensor, kind: str, longest: int, *, pooling: Pooling, dropout: float) -> None:
        super().__init__()
        self.table = token_table(start)  # [V + 1, d]
        self.kind, self.longest, self.dropout = kind, longest, nn.Dropout(dropout)
        self.body = BODIES[kind](start.shape[1], longest, dropout)
        self.pool = Pool(pooling, start.shape[1])

    def forward(self, ids: Tensor) -> Tensor:
        """Unit vectors [n, d] of texts [n, l]."""
        ids = move_to_front(ids)[:, : self.longest]
        if not ids.shape[1]:
            return self.table.weight.new_zeros(len(ids), self.table.embedding_dim)
        return encode_by_length(self._encode, GROUP, ids)

    def _encode(self, ids: Tensor) -> Tensor:
        present = ids > 0  # [n, l]
        vectors = self.body(self.dropout(self.table(ids)), present)  # [n, l, d]
        return F.normalize(self.pool(vectors, present), dim=1)

    def settings(self) -> dict[str, object]:
        """The settings that `ncs.learn.heads` needs beside the arrays."""
        body = cast("Convolutions | Recurrent | SelfAttention", self.body)
        return {"pooling": self.pool.kind, "longest": self.longest, **body.settings}

    def arrays(self) -> dict[str, Tensor]:
        """Every parameter under its name in here."""
        arrays = {name: parameter.detach() for name, parameter in self.named_parameters()}
        return {"table": arrays.pop("table.weight"), **arrays}


class Pool(nn.Module):
    """Vectors [n, l, d] into [n, d]: mean, max, or the mean weighted by sigmoid(a . v + b)."""

    def __init__(self, kind: Pooling, dim: int) -> None:
        super().__init__()
        self.kind = kind
        if kind == "weighted":
            self.attention = nn.Parameter(torch.empty(dim).uniform_(-(dim**-0.5), dim**-0.5))  # [d]
            self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, vectors: Tensor, present: Tensor) -> Tensor:
        """Zeros for a row without tokens; present: [n, l]."""
        if self.kind == "max":
            return masked_max(vectors, present)
        weights = present.to(vectors.dtype)  # [n, l]
        if self.kind == "weighted":
            weights = weights * torch.sigmoid(vectors @ self.attention + self.bias)
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-8)
        return (weights.unsqueeze(-1) * vectors).sum(dim=1)  # [n, d]


class Convolutions(nn.Module):
    """1D-CNN (Kim 2014): learned positions are added, then tanh of a convolution, from the second on plus its input."""

    def __init__(self, dim: int, longest: int, dropout: float, *, layers: int = 3, width: int = 16) -> None:
        super().__init__()
        self.settings = {"layers": layers}
        self.positions = nn.Parameter(torch.empty(longest, dim).normal_(std=0.02))  # [longest, d]
        self.layers = nn.ModuleList(nn.Conv1d(dim, dim, width) for _ in range(layers))
        self.around, self.dropout = ((width - 1) // 2, width // 2), nn.Dropout(dropout)

    def forward(self, vectors: Tensor, present: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; padding is zero before every layer, so it changes nothing."""
        mask = present.unsqueeze(-1)  # [n, l, 1]
        x = (vectors + self.positions[: vectors.shape[1]]) * mask  # [n, l, d]
        for at, layer in enumerate(self.layers):
            y = layer(F.pad(x.transpose(1, 2), self.around)).transpose(1, 2)  # [n, l, d]
            x = self.dropout(torch.tanh(y + x if at else y)) * mask
        return x


class Recurrent(nn.Module):
    """Bidirectional GRU (Cho et al. 2014); the second layer reads both directions of the first.

    Each direction of a layer runs by itself over left-aligned rows, reversed for the backward one: packed sequences
    take three times as long to train on a CPU.
    """

    def __init__(self, dim: int, longest: int, dropout: float, *, layers: int = 2) -> None:
        super().__init__()
        self.settings = {"layers": layers}
        self.gru = nn.GRU(dim, dim // 2, layers, batch_first=True, dropout=2 * dropout, bidirectional=True)

    def forward(self, vectors: Tensor, present: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; padding does not affect tokens."""
        lengths = present.sum(dim=1, keepdim=True)  # [n, 1]
        places = torch.arange(vectors.shape[1], device=vectors.device).expand_as(present)  # [n, l]
        back = torch.where(present, lengths - 1 - places, places).unsqueeze(2).expand_as(vectors)  # [n, l, d]
        for layer in range(self.gru.num_layers):
            forward = self._layer(vectors, f"l{layer}")
            backward = self._layer(vectors.gather(1, back), f"l{layer}_reverse")
            vectors = torch.cat([forward, backward.gather(1, back[:, :, : backward.shape[2]])], dim=2)
            if layer + 1 < self.gru.num_layers:
                vectors = F.dropout(vectors, self.gru.dropout, self.training)
        return vectors

    def _layer(self, vectors: Tensor, name: str) -> Tensor:
        """One layer in one direction, [n, l, d] -> [n, l, d / 2]."""
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights: list[Tensor] = [self.gru.get_parameter(f"{part}_{name}") for part in parts]
        state = vectors.new_zeros(1, len(vectors), self.gru.hidden_size)
        states: Tensor = torch.gru(vectors, state, weights, True, 1, 0.0, self.training, False, True)[0]
        return states


class SelfAttention(nn.Module):
    """Self-attention (Vaswani et al. 2017) as BERT stacks it: learned positions, normalized after every residual."""

    def __init__(self, dim: int, longest: int, dropout: float, *, layers: int = 3, heads: int = 8) -> None:
        super().__init__()
        self.settings = {"layers": layers, "heads": heads}
        self.positions = nn.Parameter(torch.empty(longest, dim).normal_(std=0.02))  # [longest, d]
        self.norm, self.dropout = nn.LayerNorm(dim), nn.Dropout(dropout)
        self.layers = nn.ModuleList(AttentionLayer(dim, heads, dropout) for _ in range(layers))

    def forward(self, vectors: Tensor, present: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; the tokens of a row see each other and no padding."""
        x = self.dropout(self.norm(vectors + self.positions[: vectors.shape[1]]))  # [n, l, d]
        mask = present.clone()  # [n, l]
        mask[:, 0] = True  # an empty row sees its first zero; attending to nothing would be NaN
        for layer in self.layers:
            x = layer(x, mask[:, None, None, :])
        return cast(Tensor, x)


class AttentionLayer(nn.Module):
    """One layer of it: attention, then 4 * d units in between."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.inputs, self.output = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)  # q, k and v at once
        self.wide, self.narrow = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; mask: [n, 1, 1, l]."""
        mixed = attention(self.inputs(x), self.heads, mask, self.dropout.p * self.training)
        x = self.norm1(x + self.dropout(self.output(mixed)))
        return cast(Tensor, self.norm2(x + self.dropout(self.narrow(F.gelu(self.wide(x))))))


def attention(inputs: Tensor, heads: int, mask: Tensor, dropout: float = 0.0) -> Tensor:
    """What each token gathers from those that the mask [n, 1, 1, l] lets it see, [n, l, d].

    inputs: [n, l, 3 * d], the queries, keys and values of all heads.
    """
    n, length, _ = inputs.shape
    query, key, value = inputs.view(n, length, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind()  # [n, h, l, d / h]
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    return mixed.transpose(1, 2).reshape(n, length, -1)


BODIES: Mapping[str, Callable[[int, int, float], nn.Module]] = {
    "cnn": Convolutions,
    "birnn": Recurrent,
    "selfatt": SelfAttention,
}
"""kind -> the class, made of dimensions, longest text and dropout; `ncs.learn.heads.BODIES` serves it."""


def token_table(start: Tensor) -> nn.Embedding:
    """Vectors of tokens [V + 1, d] that start from [V, d]; the row of padding comes first and stays zero."""
    table = torch.cat([start.new_zeros(1, start.shape[1]), start])
    return nn.Embedding(len(table), table.shape[1], padding_idx=0, _weight=table)


def masked_max(vectors: Tensor, present: Tensor) -> Tensor:
    """The maximum [n, d] of the vectors [n, l, d] that are present [n, l]; zeros where none is."""
    present = present.unsqueeze(-1)
    highest = vectors.masked_fill(~present, torch.finfo(vectors.dtype).min).amax(dim=1)  # [n, d]
    return highest.masked_fill(~present.any(dim=1), 0)


def encode_by_length(encode: Callable[..., Tensor], group: int, ids: Tensor, *others: Tensor) -> Tensor:
    """The vectors [n, d] of texts [n, l] with their tokens in front; on a CPU so many texts of like length at a time.

    others: what else is known of each token, [n, l].
    """
    if ids.device.type != "cpu" or len(ids) <= group:
        return encode(ids, *others)
    lengths = (ids > 0).sum(dim=1)
    order = lengths.argsort(stable=True)
    parts = []
    for rows in torch.split(order, group):
        longest = max(1, int(lengths[rows[-1]]))
        parts.append(encode(*(each[rows, :longest] for each in (ids, *others))))
    return torch.cat(parts)[order.argsort()]


def move_to_front(ids: Tensor) -> Tensor:
    """Every row's tokens moved to its front [n, l], and cut where the longest row ends."""
    present = ids > 0
    order = present.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    longest = int(present.sum(dim=1).max()) if ids.numel() else 0
    return ids.gather(1, order)[:, :longest]


class Towers(nn.Module):
    """A query encoder and a code encoder whose unit vectors are compared by cosine; scale: the inverse temperature."""

    def __init__(self, query: Bag | Sequence, code: Bag | Sequence) -> None:
        super().__init__()
        self.query, self.code = query, code
        self.log_scale = nn.Parameter(torch.tensor(3.0))  # e^3 = 20, a temperature of .05

    @property
    def scale(self) -> Tensor:
        """The scale, at most 100, as in CLIP."""
        return self.log_scale.clamp(max=np.log(100.0)).exp()

    def dense_parameters(self) -> list[nn.Parameter]:
        """All but the two token tables, of which a step moves only the rows of its words."""
        tables = (self.query.table.weight, self.code.table.weight)
        return [each for each in self.parameters() if not any(each is table for table in tables)]


ENCODERS: Mapping[Encoder, tuple[str, str] | None] = {
    "unif": None,
    "nbow": ("bag", "bag"),
    "cnn": ("cnn", "cnn"),
    "birnn": ("birnn", "birnn"),
    "selfatt": ("selfatt", "selfatt"),
    "mixed": ("selfatt", "bag"),
}
"""name -> the kinds of query tower and code tower, from random vectors; None: two bags from given ones."""


def create(config: TrainConfig, inputs: Inputs) -> Towers:
    """The network before training, initialized by the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        kinds = ENCODERS[config.encoder]
        if kinds is None:  # T_query and T_code start from the same matrix
            start = torch.from_numpy(np.array(inputs.vectors))
            return Towers(Bag(start), Bag(start, "attention"))
        query = _tower(kinds[0], inputs.query, LONGEST_QUERY, config)
        return Towers(query, _tower(kinds[1], inputs.code, LONGEST_CODE, config))


def _tower(kind: str, tokens: Tokenizer, longest: int, config: TrainConfig) -> Bag | Sequence:
    start = torch.empty(len(tokens), DIM).normal_(std=DIM**-0.5)
    if kind == "bag":
        return Bag(start, config.pooling, dropout=config.dropout, longest=longest)
    return Sequence(start, kind, longest, pooling=config.pooling, dropout=config.dropout)


def export(towers: Towers, inputs: Inputs, about: Mapping[str, object]) -> Head:
    """The network as plain arrays, served without torch; about: for the record."""
    return Head(_export(towers.query, inputs.query), _export(towers.code, inputs.code), inputs.reads, about)


def _export(tower: Bag | Sequence, tokens: Tokenizer) -> ServedTower:
    arrays = {name: array.detach().float().cpu().numpy().copy() for name, array in tower.arrays().items()}
    return ServedTower(tower.kind, tokens, arrays, tower.settings())
