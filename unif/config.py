"""Settings of trainings, without torch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from ncs.errors import BadInput

Encoder = Literal["unif", "nbow", "cnn", "birnn", "selfatt", "mixed"]
Pooling = Literal["mean", "max", "weighted"]
Loss = Literal["softmax", "margin"]
Precision = Literal["auto", "float32", "bfloat16"]
CHOICES: dict[str, Any] = {
    "encoder": Encoder, "pooling": Pooling, "loss": Loss, "precision": Precision
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a curriculum: epochs over some sources (none: all) at a learning rate (None: the run's)."""

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
    """A training. Lengths, rate and margin are those of Nokia's replication of UNIF (Heyman and Van Cutsem 2020).

    encoder: UNIF over the words of an index, or one of CodeSearchNet's encoders; pooling and dropout are options of
    the latter. loss: "softmax" over the batch with a learned temperature, or UNIF's "margin" against one other code
    of the batch. patience: epochs without a better validation MRR before it stops. valid: share of the questions that
    is validated on. stages: a curriculum in place of `epochs`; validated on are the sources of the last one.
    word_dropout: share of words left out of a batch at random.
    centre: subtract the mean of all functions' vectors, in training and at search.
    precision: auto is bfloat16 on CUDA devices that have it, float32 elsewhere.
    """

    encoder: Encoder = "unif"
    pooling: Pooling = "weighted"
    dropout: float = 0.1
    loss: Loss = "softmax"
    epochs: int = 20
    batch: int = 256
    rate: float = 1e-3
    margin: float = 0.05
    patience: int = 3
    word_dropout: float = 0.0
    query_words: int = 25
    code_words: int = 200
    valid: float = 0.05
    stages: tuple[Stage, ...] = ()
    centre: bool = False
    precision: Precision = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise BadInput for names and numbers out of their range."""
        for name, kind in CHOICES.items():
            if (value := getattr(self, name)) not in get_args(kind):
                raise BadInput(f"{name} is {value!r}; it is one of {', '.join(get_args(kind))}")
        least = {"epochs": 1, "batch": 2, "patience": 1, "query_words": 1, "code_words": 1, "seed": 0}
        for name, low in least.items():
            if (value := getattr(self, name)) < low:
                raise BadInput(f"{name} is {value}; it must be at least {low}")
        ranges = {"rate": self.rate > 0, "margin": self.margin >= 0, "valid": 0 < self.valid < 1}
        ranges |= {"word_dropout": 0 <= self.word_dropout < 1, "dropout": 0 <= self.dropout < 1}
        for name, good in ranges.items():
            if not good:
                raise BadInput(f"{name} is {getattr(self, name)}, which is out of its range")

    @property
    def curriculum(self) -> tuple[Stage, ...]:
        """The stages; without any, one over all sources."""
        return self.stages or (Stage(self.epochs),)


@dataclass(frozen=True, slots=True)
class TranslationConfig:
    """A training of a head with a translation (`unif.translation`).

    dim: of the vectors. epochs: of the vectors; passes: of the translation after them, with half the batch at a third
    of the rate. word_dropout: share of the words of functions left out of a batch. rounds: over the judged lists, if
    any. valid: share of the questions that is validated on.
    """

    dim: int = 128
    epochs: int = 2
    passes: int = 1
    rounds: int = 3
    batch: int = 512
    rate: float = 3e-3
    word_dropout: float = 0.2
    valid: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise BadInput for numbers out of their range."""
        least = min(self.dim, self.epochs, self.passes, self.rounds) >= 1 and self.batch >= 4 and self.seed >= 0
        if not (least and 0 <= self.word_dropout < 1 and 0 < self.valid < 1 and self.rate > 0):
            raise BadInput(f"{self}: one of these numbers is out of its range")


def settings_of(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """The values that are fields of this dataclass and not None."""
    return {each.name: values[each.name] for each in fields(kind) if values.get(each.name) is not None}
