"""What a training is told: which network, which loss, how long; without torch, so that it can be shown anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from ncs.errors import BadInput

Encoder = Literal["unif", "nbow"]
QueryWeights = Literal["mean", "words", "idf"]
Prior = Literal["none", "idf"]
RareWords = Literal["drop", "random"]
Loss = Literal["softmax", "margin"]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which network. The defaults are UNIF as published.

    query_weights: "mean", "words" (one learnt weight a word) or "idf". prior: "idf" weighs a function's words by idf
    before anything is learnt. rare_words: those of the index without a vector are dropped, or start from a random one,
    the same on both sides, as long as the others are. shared: one table for both sides.
    """

    encoder: Encoder = "unif"
    query_weights: QueryWeights = "mean"
    prior: Prior = "none"
    rare_words: RareWords = "drop"
    shared: bool = False

    def __post_init__(self) -> None:
        """Raise BadInput for names that there are not."""
        _check_choice("encoder", self.encoder, Encoder)
        _check_choice("query_weights", self.query_weights, QueryWeights)
        _check_choice("prior", self.prior, Prior)
        _check_choice("rare_words", self.rare_words, RareWords)


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How it is trained. Lengths, rate and margin are those of Nokia's replication (Heyman and Van Cutsem 2020).

    loss: "softmax" over the batch with a learnt temperature, or UNIF's "margin" against one other code of the batch.
    patience: epochs without a better validation MRR before it stops. valid: share of the questions kept for that.
    word_dropout: share of words left out of a batch at random. stay: weight of the squared distance of a batch's
    words from where they started. unique: a repeated word of a function counts once.
    """

    loss: Loss = "softmax"
    epochs: int = 20
    batch: int = 256
    rate: float = 1e-3
    margin: float = 0.05
    patience: int = 3
    word_dropout: float = 0.0
    stay: float = 0.0
    unique: bool = False
    query_words: int = 25
    code_words: int = 200
    valid: float = 0.05
    seed: int = 0
    model: ModelConfig = field(default_factory=ModelConfig)

    def __post_init__(self) -> None:
        """Raise BadInput for numbers that make no training."""
        _check_choice("loss", self.loss, Loss)
        least = {"epochs": 1, "batch": 2, "patience": 1, "query_words": 1, "code_words": 1, "seed": 0}
        for name, low in least.items():
            if (value := getattr(self, name)) < low:
                raise BadInput(f"{name} is {value}; it must be at least {low}")
        for name, good in (
            ("rate", self.rate > 0),
            ("margin", self.margin >= 0),
            ("stay", self.stay >= 0),
            ("word_dropout", 0 <= self.word_dropout < 1),
            ("valid", 0 < self.valid < 1),
        ):
            if not good:
                raise BadInput(f"{name} is {getattr(self, name)}; give a number in its range, as the default")


def _check_choice(name: str, value: str, known: Any) -> None:
    if value not in get_args(known):
        raise BadInput(f"{name} is {value!r}; it is one of {', '.join(get_args(known))}")


def given(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """Of these values those that are settings of this dataclass and not None."""
    return {each.name: values[each.name] for each in fields(kind) if values.get(each.name) is not None}
