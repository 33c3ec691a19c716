"""Word vectors: learned by LSA or fastText, saved with their vocabulary's statistics, taken over by later builds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ncs.config import FastTextConfig, LsaConfig
from ncs.errors import IndexDamaged
from ncs.learn.tfidf import unit_rows
from ncs.progress import Track, silent
from ncs.text.vocabulary import Vocabulary
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Description
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

Method = Literal["fasttext", "lsa", "none"]
Choice = Literal["auto", "fasttext", "lsa"]
CROSSOVER, MANY = 30_000, 6.0
"""Documents, and repositories in effect, from which on fastText's vectors are better."""
DRIFT, GROWTH = 0.02, 1.5
"""How much the share of words without a vector may rise, and the number of documents grow, until training is due."""
CHUNK = 1 << 14
"""Documents whose words are looked at at once."""


def choose(
    choice: Choice, repositories: NDArray[np.int32], fasttext: FastTextConfig, lsa: LsaConfig
) -> FastTextConfig | LsaConfig:
    """What learns from a corpus, given the repository of each of its documents.

    "auto": LSA where it is small and of few repositories: inside a project people ask for a place, over many for
    whatever does it, and fastText's neighbors are wider. Settings of fastText choose fastText.

    >>> one, many = np.zeros(500, np.int32), np.arange(500, dtype=np.int32)
    >>> [type(choose("auto", each, FastTextConfig(), LsaConfig())).__name__ for each in (one, many)]
    ['LsaConfig', 'FastTextConfig']
    """
    if choice == "auto":
        shares = np.bincount(repositories) / max(1, len(repositories))
        few = 1 / max(float(shares @ shares), 1e-9) < MANY  # inverse Simpson index
        small = few and len(repositories) < CROSSOVER
        choice = "lsa" if small and fasttext == FastTextConfig() else "fasttext"
    return lsa if choice == "lsa" else fasttext


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Word vectors, float32 [len(vocabulary), d]; a zero row is a word without one.

    method: what they were learned by. notes: a sentence for each deviation from what was asked for.
    """

    vectors: Matrix
    method: Method = "none"
    notes: tuple[str, ...] = ()

    @classmethod
    def train(
        cls,
        words: WordTable,
        config: FastTextConfig | LsaConfig | None = None,
        *,
        track: Track = silent,
        folder: Path | None = None,
    ) -> Embeddings:
        """Learn from the words of NCS_FIELDS; the kind of config chooses the method.

        Where fastText cannot learn (diverged, crashed, nothing to read) LSA does, and where that cannot all rows are
        zero; `notes` say so. folder: for temporary files. Raises BadInput for a bad pretrained file.
        """
        config = config or FastTextConfig()
        notes: tuple[str, ...] = ()
        if isinstance(config, FastTextConfig):
            from ncs.learn import fasttext

            try:
                vectors, notes = fasttext.train(words, config, track=track, folder=folder)
            except fasttext.TrainingFailedError as error:
                notes = (f"{str(error)[:1].upper()}{str(error)[1:]}: word vectors are from LSA instead.",)
                config = LsaConfig(dim=config.dim, seed=config.seed)
            else:
                return cls(vectors, "fasttext", notes)
        from ncs.learn import lsa

        vectors = lsa.train(words, config)
        if vectors.any():
            return cls(vectors, "lsa", notes)
        return cls(vectors, "none", (*notes, "No word has a vector: only the words themselves can be searched."))

    def save(self, folder: Path) -> None:
        """Write `embeddings.npy` and `embeddings.json`."""
        np.save(folder / "embeddings.npy", self.vectors)
        about = {"method": self.method, "notes": self.notes}
        (folder / "embeddings.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Embeddings:
        """Memory-mapped; raises IndexDamaged for missing, truncated or foreign files."""
        try:
            vectors = np.load(folder / "embeddings.npy", mmap_mode="r", allow_pickle=False)
            about = json.loads((folder / "embeddings.json").read_bytes())
            method, notes = about["method"], tuple(about["notes"])
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise IndexDamaged(f"cannot read the embeddings in {folder} ({error}); build the index again") from error
        if vectors.ndim != 2 or vectors.dtype != np.float32:
            raise IndexDamaged(f"{folder / 'embeddings.npy'} holds no word vectors; build the index again")
        return cls(vectors, method, notes)

    def nearest(self, vocabulary: Vocabulary, id: int, n: int = 10) -> list[tuple[str, float]] | None:
        """The n words of the most similar vectors and their cosine, by (-cosine, id); None for a word without one."""
        unit = unit_rows(self.vectors)
        if id >= len(unit) or not unit[id].any():
            return None
        similarity = unit @ unit[id]
        similarity[id] = -2
        similarity[~unit.any(axis=1)] = -2
        order = np.argsort(-similarity, kind="stable").tolist()
        known = (i for i in order if similarity[i] > -2)
        return [(vocabulary.word(i), float(similarity[i])) for i in islice(known, n)]


def carried_over(folder: Path, words: WordTable) -> Embeddings:
    """The word vectors among some statistics for the words of another corpus; new words have none."""
    embeddings = Embeddings.load(folder)
    ids = Vocabulary.load(folder).ids_of(list(words.vocabulary))
    vectors = np.zeros((len(ids), embeddings.vectors.shape[1]), np.float32)
    vectors[ids >= 0] = embeddings.vectors[ids[ids >= 0]]
    return replace(embeddings, vectors=vectors)


def share_without_vector(words: WordTable, embeddings: Embeddings) -> float:
    """The share of the words of NCS_FIELDS that have no vector: rare ones, and those newer than the training."""
    has = np.einsum("ij,ij->i", embeddings.vectors, embeddings.vectors) > 0
    known = total = 0
    for start in range(0, len(words), CHUNK):
        ids, _ = words.select(NCS_FIELDS, start, min(start + CHUNK, len(words)))
        known, total = known + int(np.count_nonzero(has[ids])), total + len(ids)
    return round(1 - known / total, 6) if total else 0.0


def retraining_advice(description: Description) -> str | None:
    """Whether word vectors should be learned anew, and why; None while they serve."""
    counts = description.counts
    training: Mapping[str, Any] = counts.get("training") or {}
    missing = training.get("without_vector_now", 0) - training.get("without_vector", 0)
    documents, then = counts.get("documents", 0), training.get("documents", 0)
    if missing > DRIFT:
        return f"{missing:.1%} of the words are newer than the word vectors; learn them with: ncs update --retrain"
    if then and documents > GROWTH * then:
        return f"word vectors were learned from {then:,} documents of {documents:,}; learn again: ncs update --retrain"
    return None
