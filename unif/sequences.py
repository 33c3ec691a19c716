"""CodeSearchNet's encoders that read tokens in their order (Husain et al. 2019, section 4.1): 1D-CNN, GRU, attention.

Sizes are those of the released code: 128 dimensions; 3 convolutions of width 16; 2 layers of GRU with 64 units a
direction; 3 layers of self-attention with 8 heads and 512 units between. Tokens come as ids [n, l]; id 0 is no token,
wherever it stands; a row without tokens gives zeros.
Shapes stand at line ends: n texts, l tokens a text, V tokens, d dimensions, h heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from unif.bags import front, highest, token_table
from unif.settings import Pooling

TOGETHER = 32
"""Texts of like length that a CPU encodes at a time: of a drawn batch of 200 tokens more than half is padding."""


class Sequence(nn.Module):
    """Vectors of tokens, a body that sees them in their context, and pooling into one unit vector.

    longest: tokens that are read of a text. Arrays are named `table`, `body. ...` and `pool. ...`.
    """

    def __init__(self, start: Tensor, kind: str, longest: int, *, pooling: Pooling, dropout: float) -> None:
        super().__init__()
        self.table = token_table(start)  # [V + 1, d]
        self.kind, self.longest, self.dropout = kind, longest, nn.Dropout(dropout)
        self.body = BODIES[kind](start.shape[1], longest, dropout)
        self.pool = Pool(pooling, start.shape[1])

    def forward(self, ids: Tensor) -> Tensor:
        """Unit vectors [n, d] of texts [n, l]."""
        ids = front(ids)[:, : self.longest]
        if not ids.shape[1]:
            return self.table.weight.new_zeros(len(ids), self.table.embedding_dim)
        if ids.device.type != "cpu" or len(ids) <= TOGETHER:
            return self._encoded(ids)
        lengths = (ids > 0).sum(dim=1)
        order = lengths.argsort(stable=True)
        groups = (order[start : start + TOGETHER] for start in range(0, len(ids), TOGETHER))
        parts = [ids[some, : max(1, int(lengths[some[-1]]))] for some in groups]
        return torch.cat([self._encoded(part) for part in parts])[order.argsort()]

    def _encoded(self, ids: Tensor) -> Tensor:
        there = ids > 0  # [n, l]
        vectors = self.body(self.dropout(self.table(ids)), there)  # [n, l, d]
        return F.normalize(self.pool(vectors, there), dim=1)

    def settings(self) -> dict[str, object]:
        """What `unif.forward.encode` needs beside the arrays."""
        body = cast("Convolutions | Recurrent | SelfAttention", self.body)
        return {"pooling": self.pool.kind, "longest": self.longest, **body.settings}

    def arrays(self) -> dict[str, Tensor]:
        """Every parameter under its name in here."""
        found = {name: parameter.detach() for name, parameter in self.named_parameters()}
        return {"table": found.pop("table.weight"), **found}


class Pool(nn.Module):
    """Vectors [n, l, d] into [n, d]: mean, max, or the mean weighted by sigmoid(a . v + b)."""

    def __init__(self, kind: Pooling, dim: int) -> None:
        super().__init__()
        self.kind = kind
        if kind == "weighted":
            self.attention = nn.Parameter(torch.empty(dim).uniform_(-(dim**-0.5), dim**-0.5))  # [d]
            self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, vectors: Tensor, there: Tensor) -> Tensor:
        """Zeros for a row without tokens; there: [n, l]."""
        if self.kind == "max":
            return highest(vectors, there)
        weights = there.to(vectors.dtype)  # [n, l]
        if self.kind == "weighted":
            weights = weights * torch.sigmoid(vectors @ self.attention + self.bias)
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-8)
        return (weights.unsqueeze(-1) * vectors).sum(dim=1)  # [n, d]


class Convolutions(nn.Module):
    """1D-CNN (Kim 2014): learnt positions are added, then tanh of a convolution, from the second on plus its input."""

    def __init__(self, dim: int, longest: int, dropout: float, *, layers: int = 3, width: int = 16) -> None:
        super().__init__()
        self.settings = {"layers": layers}
        self.positions = nn.Parameter(torch.empty(longest, dim).normal_(std=0.02))  # [longest, d]
        self.layers = nn.ModuleList(nn.Conv1d(dim, dim, width) for _ in range(layers))
        self.around, self.dropout = ((width - 1) // 2, width // 2), nn.Dropout(dropout)

    def forward(self, vectors: Tensor, there: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; what is not there is zero before every layer, so padding changes nothing."""
        mask = there.unsqueeze(-1)  # [n, l, 1]
        x = (vectors + self.positions[: vectors.shape[1]]) * mask  # [n, l, d]
        for at, layer in enumerate(self.layers):
            y = layer(F.pad(x.transpose(1, 2), self.around)).transpose(1, 2)  # [n, l, d]
            x = self.dropout(torch.tanh(y + x if at else y)) * mask
        return x


class Recurrent(nn.Module):
    """Bidirectional GRU (Cho et al. 2014); the second layer reads both directions of the first.

    Each direction of a layer is run by itself over rows whose tokens stand in front, turned round for the backward one:
    packed sequences take three times as long to learn from on a CPU.
    """

    def __init__(self, dim: int, longest: int, dropout: float, *, layers: int = 2) -> None:
        super().__init__()
        self.settings = {"layers": layers}
        self.gru = nn.GRU(dim, dim // 2, layers, batch_first=True, dropout=2 * dropout, bidirectional=True)

    def forward(self, vectors: Tensor, there: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; what stands behind a row's tokens is nothing that they see."""
        lengths = there.sum(dim=1, keepdim=True)  # [n, 1]
        places = torch.arange(vectors.shape[1], device=vectors.device).expand_as(there)  # [n, l]
        turned = torch.where(there, lengths - 1 - places, places).unsqueeze(2)  # [n, l, 1]
        for layer in range(self.gru.num_layers):
            onward = self._layer(vectors, f"l{layer}")
            back = self._layer(_taken(vectors, turned), f"l{layer}_reverse")
            vectors = torch.cat([onward, _taken(back, turned)], dim=2)
            if layer + 1 < self.gru.num_layers:
                vectors = F.dropout(vectors, self.gru.dropout, self.training)
        return vectors

    def _layer(self, vectors: Tensor, name: str) -> Tensor:
        """One layer in one direction, [n, l, d] -> [n, l, d / 2]."""
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights: list[Tensor] = [self.gru.get_parameter(f"{part}_{name}") for part in parts]
        state = vectors.new_zeros(1, len(vectors), self.gru.hidden_size)
        found: Tensor = torch.gru(vectors, state, weights, True, 1, 0.0, self.training, False, True)[0]
        return found


def _taken(vectors: Tensor, places: Tensor) -> Tensor:
    """The rows [n, l, d] in another order of tokens [n, l, 1]."""
    return vectors.gather(1, places.expand_as(vectors))


class SelfAttention(nn.Module):
    """Self-attention (Vaswani et al. 2017) as BERT stacks it: learnt positions, normalised after every residual."""

    def __init__(self, dim: int, longest: int, dropout: float, *, layers: int = 3, heads: int = 8) -> None:
        super().__init__()
        self.settings = {"layers": layers, "heads": heads}
        self.positions = nn.Parameter(torch.empty(longest, dim).normal_(std=0.02))  # [longest, d]
        self.norm, self.dropout = nn.LayerNorm(dim), nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(dim, heads, dropout) for _ in range(layers))

    def forward(self, vectors: Tensor, there: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; the tokens of a row see each other and no padding."""
        x = self.dropout(self.norm(vectors + self.positions[: vectors.shape[1]]))  # [n, l, d]
        seen = there.clone()  # [n, l]
        seen[:, 0] = True  # an empty row sees its first zero, not nothing: that would be NaN
        for layer in self.layers:
            x = layer(x, seen[:, None, None, :])
        return cast(Tensor, x)


class Layer(nn.Module):
    """One layer of it: attention, then 4 * d units in between."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.inputs, self.output = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)  # q, k and v at once
        self.wide, self.narrow = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """[n, l, d] -> [n, l, d]; seen: [n, 1, 1, l]."""
        n, length, dim = x.shape
        split = self.inputs(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # [3, n, h, l, d / h]
        query, key, value = split.unbind()
        mixed = F.scaled_dot_product_attention(
            query, key, value, attn_mask=seen, dropout_p=self.dropout.p * self.training
        )
        mixed = mixed.transpose(1, 2).reshape(n, length, dim)  # [n, l, d]
        x = self.norm1(x + self.dropout(self.output(mixed)))
        return cast(Tensor, self.norm2(x + self.dropout(self.narrow(F.gelu(self.wide(x))))))


BODIES: Mapping[str, Callable[[int, int, float], nn.Module]] = {
    "cnn": Convolutions,
    "birnn": Recurrent,
    "selfatt": SelfAttention,
}
"""kind -> the class, made of dimensions, longest text and dropout; `unif.forward.BODIES` has its numpy twin."""
