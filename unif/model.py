"""The networks by name: a query encoder and a code encoder each, made, trained through one interface, exported alike.

A new encoder is a class with `forward`, `settings` and `arrays`, as those of `unif.bags` and `unif.sequences`
are, a numpy function in `unif.forward`, and a row in ENCODERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from unif.bags import Bag, Weighing
from unif.beginning import DIM, Beginning
from unif.head import Head, Side
from unif.sequences import Sequence
from unif.settings import Encoder, ModelConfig
from unif.tokenization import Tokens

LONGEST_QUERY, LONGEST_CODE = 30, 200
"""Tokens of a text that CodeSearchNet's encoders read."""


class Tower(Protocol):
    """One of the two encoders: token ids [n, l] into unit vectors [n, d], zeros for a row without tokens."""

    kind: str
    table: nn.Embedding

    def __call__(self, ids: Tensor) -> Tensor: ...

    def settings(self) -> dict[str, object]:
        """What `unif.forward.encode` needs beside the arrays."""
        ...

    def arrays(self) -> dict[str, Tensor]:
        """What it has learnt, under the names that `unif.forward` reads."""
        ...


class Towers(nn.Module):
    """A query encoder and a code encoder whose unit vectors are compared by cosine; scale: the inverse temperature."""

    def __init__(self, query: Bag | Sequence, code: Bag | Sequence) -> None:
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


def _unif(beginning: Beginning, config: ModelConfig) -> Towers:
    """T_query and T_code start from the same matrix and part from there."""
    start, log_idf = (torch.from_numpy(np.array(each)) for each in (beginning.vectors, beginning.log_idf))
    rare = log_idf.clone()  # without idf only n-grams have a prior: all of a word's weigh as much as one word
    rare[: len(rare) - config.buckets] = 0
    rare[len(rare) - config.buckets :] -= log_idf[: len(rare) - config.buckets].max() if config.buckets else 0
    plain = rare if config.buckets else None
    weighing: Weighing = "words" if config.query_weights == "words" else "mean"
    query = Bag(start, weighing, log_idf if config.query_weights == "idf" else plain)
    code = Bag(start, "attention", log_idf if config.prior == "idf" else plain, heads=config.heads)
    if config.shared:
        query.table = code.table
    return Towers(query, code)


def _bag(tokens: Tokens, longest: int, config: ModelConfig) -> Bag:
    return Bag(_random(tokens), config.pooling, dropout=config.dropout, longest=longest)


def _reading(kind: str) -> Callable[[Tokens, int, ModelConfig], Sequence]:
    def make(tokens: Tokens, longest: int, config: ModelConfig) -> Sequence:
        return Sequence(_random(tokens), kind, longest, pooling=config.pooling, dropout=config.dropout)

    return make


def _random(tokens: Tokens) -> Tensor:
    return torch.empty(len(tokens), DIM).normal_(std=DIM**-0.5)


Maker = Callable[[Tokens, int, ModelConfig], "Bag | Sequence"]


def _two(query: Maker, code: Maker) -> Callable[[Beginning, ModelConfig], Towers]:
    """CodeSearchNet's: nothing is shared but what the loss compares."""

    def make(beginning: Beginning, config: ModelConfig) -> Towers:
        return Towers(query(beginning.query, LONGEST_QUERY, config), code(beginning.code, LONGEST_CODE, config))

    return make


ENCODERS: Mapping[Encoder, Callable[[Beginning, ModelConfig], Towers]] = {
    "unif": _unif,
    "nbow": _two(_bag, _bag),
    "cnn": _two(_reading("cnn"), _reading("cnn")),
    "birnn": _two(_reading("birnn"), _reading("birnn")),
    "selfatt": _two(_reading("selfatt"), _reading("selfatt")),
    "mixed": _two(_reading("selfatt"), _bag),
}
"""name -> what makes both sides; `mixed` reads questions by self-attention and code as a bag."""


def create(config: ModelConfig, beginning: Beginning, *, seed: int = 0) -> Towers:
    """The network before training; the seed decides what is random in it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ENCODERS[config.encoder](beginning, config)


def export(towers: Towers, beginning: Beginning, about: Mapping[str, object]) -> Head:
    """What was learnt as plain arrays, served without torch; about: for the record, and {"unique": ...} (`Head`)."""
    query, code = (
        _side(cast(Tower, tower), tokens)
        for tower, tokens in ((towers.query, beginning.query), (towers.code, beginning.code))
    )
    return Head(query, code, beginning.reads, about)


def _side(tower: Tower, tokens: Tokens) -> Side:
    arrays = {name: array.detach().float().cpu().numpy().copy() for name, array in tower.arrays().items()}
    return Side(tower.kind, tokens, arrays, tower.settings())
