"""What a training is told: which network, which loss, how long; without torch, so that it can be shown anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from ncs.errors import BadInput

Encoder = Literal["unif", "nbow", "cnn", "birnn", "selfatt", "mixed"]
Pooling = Literal["mean", "max", "weighted"]
QueryWeights = Literal["mean", "words", "idf"]
Prior = Literal["none", "idf"]
RareWords = Literal["drop", "random"]
Loss = Literal["softmax", "margin"]
Split = Literal["question", "repository"]
MinedFrom = Literal["index", "pairs"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
Optimiser = Literal["adam", "adagrad", "dense"]
CHOICES = {"loss": Loss, "split": Split, "mined_from": MinedFrom, "precision": Precision, "optimiser": Optimiser}
"""Settings of a training that are one of several names."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which network: UNIF over the words of an index, or one of CodeSearchNet's encoders; by default as published.

    UNIF's options. query_weights: "mean", "words" (one learnt weight a word) or "idf". prior: "idf" weighs a function's
    words by idf before anything is learnt. heads: attention vectors, whose means are averaged. rare_words: those of the
    index without a vector are dropped, or start from a random one, the same on both sides, as long as the others are.
    buckets: rows for the n-grams of words that have none, 0 to leave such words out. shared: one table for both sides.

    The other encoders' options. pooling: of a text's tokens into one vector. dropout: share of numbers left out.
    """

    encoder: Encoder = "unif"
    query_weights: QueryWeights = "mean"
    prior: Prior = "none"
    heads: int = 1
    rare_words: RareWords = "drop"
    buckets: int = 0
    shared: bool = False
    pooling: Pooling = "weighted"
    dropout: float = 0.1

    def __post_init__(self) -> None:
        """Raise BadInput for names that there are not and numbers that make no network."""
        _check_choice("encoder", self.encoder, Encoder)
        _check_choice("query_weights", self.query_weights, QueryWeights)
        _check_choice("prior", self.prior, Prior)
        _check_choice("rare_words", self.rare_words, RareWords)
        _check_choice("pooling", self.pooling, Pooling)
        if self.heads < 1 or self.buckets < 0 or not 0 <= self.dropout < 1:
            told = f"heads {self.heads}, buckets {self.buckets}, dropout {self.dropout}"
            raise BadInput(f"{told}: these are at least 1, at least 0, and from 0 to below 1")


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a curriculum: so many epochs over these sources (none named: all), at this rate (None: the run's)."""

    epochs: int
    sources: tuple[str, ...] = ()
    rate: float | None = None

    @classmethod
    def parse(cls, text: str) -> Stage:
        """EPOCHS[:SOURCE,SOURCE...][@RATE]; raises BadInput for anything else.

        >>> Stage.parse("8"), Stage.parse("4:own,so_threads@3e-4")
        (Stage(epochs=8, sources=(), rate=None), Stage(epochs=4, sources=('own', 'so_threads'), rate=0.0003))
        """
        head, _, rate = text.partition("@")
        epochs, _, names = head.partition(":")
        try:
            stage = cls(int(epochs), tuple(filter(None, names.split(","))), float(rate) if rate else None)
        except ValueError:
            stage = cls(0)
        if stage.epochs < 1 or (stage.rate is not None and not stage.rate > 0):
            raise BadInput(f"a stage is EPOCHS[:SOURCE,SOURCE...][@RATE], as 4:own@0.0003, not {text!r}")
        return stage


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How it is trained. Lengths, rate and margin are those of Nokia's replication (Heyman and Van Cutsem 2020).

    loss: "softmax" over the batch with a learnt temperature, or UNIF's "margin" against one other code of the batch.
    patience: epochs without a better validation MRR before it stops. valid: share of the questions kept for that, or of
    the repositories (split). stages: a curriculum, one after the other in place of `epochs`; what is validated on are
    the sources of the last one. unique: a repeated word of a function counts once.

    Against overfitting. word_dropout: share of words left out of a batch at random. stay: weight of the squared
    distance of a batch's words from where they started. weight_decay: AdamW's, of words lazily.

    Hard negatives. mine_every: epochs after which the nearest wrong codes are looked for anew, 0 for never; mined: how
    many a row; mined_from: among the functions of the index, or the codes of the pairs.

    centre: compare what is left of functions' vectors without the mean of all, in training and where the head serves.

    A teacher's lists (`unif.teacher`). soft: the temperature of its scores, whose softmax is what is learnt.
    candidates: of a list in a step. strangers: functions of the index drawn into a step, which no list needs to hold.

    What it costs. accumulate: parts of a batch that are encoded one after the other; the loss is that of the whole
    batch. precision: auto is half precision on CUDA and float32 elsewhere. optimiser: adam and adagrad (one number a
    row) move only the rows of a batch's words; dense is plain Adam over all. compile: by torch.compile.
    """

    loss: Loss = "softmax"
    epochs: int = 20
    batch: int = 256
    rate: float = 1e-3
    margin: float = 0.05
    patience: int = 3
    word_dropout: float = 0.0
    stay: float = 0.0
    weight_decay: float = 0.0
    unique: bool = False
    query_words: int = 25
    code_words: int = 200
    valid: float = 0.05
    split: Split = "question"
    stages: tuple[Stage, ...] = ()
    mine_every: int = 0
    mined: int = 8
    mined_from: MinedFrom = "index"
    centre: bool = False
    soft: float = 0.3
    candidates: int = 32
    strangers: int = 1024
    accumulate: int = 1
    precision: Precision = "auto"
    optimiser: Optimiser = "adam"
    compile: bool = False
    seed: int = 0
    model: ModelConfig = field(default_factory=ModelConfig)

    def __post_init__(self) -> None:
        """Raise BadInput for numbers that make no training."""
        for name, kind in CHOICES.items():
            _check_choice(name, getattr(self, name), kind)
        least = {"epochs": 1, "batch": 2, "patience": 1, "query_words": 1, "code_words": 1, "seed": 0, "accumulate": 1}
        least |= {"mine_every": 0, "mined": 1, "strangers": 0, "candidates": 1}
        for name, low in least.items():
            if (value := getattr(self, name)) < low:
                raise BadInput(f"{name} is {value}; it must be at least {low}")
        for name, good in (
            ("rate", self.rate > 0),
            ("margin", self.margin >= 0),
            ("stay", self.stay >= 0),
            ("soft", self.soft > 0),
            ("weight_decay", self.weight_decay >= 0),
            ("word_dropout", 0 <= self.word_dropout < 1),
            ("valid", 0 < self.valid < 1),
        ):
            if not good:
                raise BadInput(f"{name} is {getattr(self, name)}; give a number in its range, as the default")

    @property
    def curriculum(self) -> tuple[Stage, ...]:
        """The stages; without any, one over all sources."""
        return self.stages or (Stage(self.epochs),)


@dataclass(frozen=True, slots=True)
class TranslationConfig:
    """How a head that translates is trained (`unif.translating`, the encoder `translation`).

    dim: of the vectors. epochs: of the vectors; passes: of the words after them, with half the batch at a third of the
    rate. word_dropout, query_dropout: share of the words of functions and questions left out of a batch. alike: share
    of the pairs that stand in a batch with others that share a word. power, half, same: where `unif.translation`
    starts; power is not learnt. rounds: over the lists that answers judge (`unif.residual`), where there are any.
    valid: share of the questions that are validated on.
    """

    dim: int = 128
    epochs: int = 2
    passes: int = 1
    rounds: int = 3
    batch: int = 512
    rate: float = 3e-3
    word_dropout: float = 0.2
    query_dropout: float = 0.1
    alike: float = 0.5
    power: float = 3.0
    half: float = 0.3
    same: float = 0.5
    valid: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise BadInput for numbers that make no training."""
        shares = (self.word_dropout, self.query_dropout, self.alike, self.valid)
        least = min(self.dim, self.epochs, self.passes, self.rounds) >= 1 and self.batch >= 4 and self.seed >= 0
        least = least and self.valid > 0
        if not (least and all(0 <= share < 1 for share in shares) and min(self.rate, self.power, self.half) > 0):
            raise BadInput(f"{self}: one of these numbers is out of its range; give one as the default")


def _check_choice(name: str, value: str, known: Any) -> None:
    if value not in get_args(known):
        raise BadInput(f"{name} is {value!r}; it is one of {', '.join(get_args(known))}")


def given(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """Of these values those that are settings of this dataclass and not None."""
    return {each.name: values[each.name] for each in fields(kind) if values.get(each.name) is not None}
