"""Settings that decide the content of an index; a snapshot keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ncs.errors import BadInput, IndexVersion, unknown

if TYPE_CHECKING:
    from ncs.storage.snapshot import Description


@dataclass(frozen=True, slots=True)
class FastTextConfig:
    """The hyperparameters of fastText; raises BadInput for values it cannot run with.

    epochs, least_words: a corpus is read `epochs` times, a small one until `least_words` words were read, at most
    100 times. min_count: words in fewer places have no vector, unless sub-words are on (max_n > 0); a corpus under
    min_count * 20,000 words lowers it, down to 1. sample: words more frequent than this share are passed over at
    random, the more the more frequent. threads: more than one does not repeat exactly. seed: of the first vectors.
    pretrained: a .vec (word2vec text) or .bin (fastText) file to start from.
    """

    dim: int = 100
    window: int = 5
    epochs: int = 1
    least_words: int = 3_000_000
    min_count: int = 5
    min_n: int = 0
    max_n: int = 0
    buckets: int = 200_000
    negatives: int = 5
    sample: float = 1e-4
    learning_rate: float = 0.05
    threads: int = 1
    seed: int = 0
    pretrained: str | None = None

    def __post_init__(self) -> None:
        for name in ("dim", "window", "epochs", "min_count", "buckets", "negatives", "threads"):
            if getattr(self, name) < 1:
                raise BadInput(f"fastText needs {name} >= 1, not {getattr(self, name)}")
        if not 0 <= self.min_n <= self.max_n:
            raise BadInput(f"sub-words need 0 <= min_n <= max_n, not {self.min_n} and {self.max_n}")
        for name in ("learning_rate", "sample"):
            if not 0 < getattr(self, name) < float("inf"):
                raise BadInput(f"fastText needs {name} > 0, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class LsaConfig:
    """The hyperparameters of LSA: `dim` components at most (fewer where the corpus has fewer documents or words).

    min_count: fewest documents that must have a word. power: each component counts by its singular value to this power;
    0 makes them all equal, 1 is the matrix itself. Raises BadInput for values that it cannot run with.
    """

    dim: int = 300
    min_count: int = 1
    iterations: int = 4
    power: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.power < float("inf"):
            raise BadInput(f"LSA needs power >= 0, not {self.power}")
        for name in ("dim", "min_count", "iterations"):
            if getattr(self, name) < 1:
                raise BadInput(f"LSA needs {name} >= 1, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """The settings that decide the content of an index; raises BadInput for an unknown choice."""

    fasttext: FastTextConfig = field(default_factory=FastTextConfig)
    lsa: LsaConfig = field(default_factory=LsaConfig)
    embeddings: Literal["auto", "fasttext", "lsa"] = "auto"
    """What learns the word vectors; "auto": see ncs.learn.embeddings."""
    vectors: Literal["auto", "exact", "pq"] = "auto"
    """How document vectors are searched; "auto": see ncs.storage.vectors."""
    java_frontend: str = "tree-sitter"
    outside: bool = True
    """Classes and top-level code are documents too, beside functions."""
    texts: bool = True
    """Files without a grammar are read too, as text."""
    store_code: bool = True
    deduplicate: bool = True
    revision: str | None = None
    general: bool = True
    """The default ranker uses the general head (ncs.learn.general)."""
    rankers: tuple[str, ...] = ()
    """Rankers on request, fitted beside the default ones: `two_field`, `ncs_enhanced:pairs=pairs.jsonl.gz`."""

    def __post_init__(self) -> None:
        for name, choices in (("embeddings", ("auto", "fasttext", "lsa")), ("vectors", ("auto", "exact", "pq"))):
            if getattr(self, name) not in choices:
                raise unknown(name, getattr(self, name), choices)

    @classmethod
    def of(cls, description: Description) -> BuildConfig:
        """The configuration of an index; raises IndexVersion for settings that this ncs does not know."""
        config: Mapping[str, Any] = description.config
        try:
            fasttext, lsa = FastTextConfig(**config["fasttext"]), LsaConfig(**config["lsa"])
            return cls(**{**config, "fasttext": fasttext, "lsa": lsa, "rankers": tuple(config.get("rankers", ()))})
        except (KeyError, TypeError) as error:
            raise IndexVersion(f"the index was built with settings that this ncs does not know ({error})") from error
