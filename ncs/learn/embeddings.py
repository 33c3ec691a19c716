"""Word vectors: learned by latent semantic analysis (small corpora) or fastText, saved, reused by later builds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ncs.errors import reading
from ncs.files import map_array, read_json, save_array
from ncs.learn.tfidf import CHUNK, unit_rows
from ncs.progress import Track, silent
from ncs.text.vocabulary import Vocabulary
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.config import FastTextConfig, LsaConfig
    from ncs.storage.snapshot import Description
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

Method = Literal["fasttext", "lsa", "none"]
Choice = Literal["auto", "fasttext", "lsa"]
CROSSOVER, MANY = 30_000, 6.0
"""Numbers of documents, and of repositories (effective number), from which fastText's vectors are better."""
DRIFT, GROWTH = 0.02, 1.5
"""Training is due if the share of words without a vector rises by more than DRIFT, or the number of documents grows by
more than the share GROWTH."""
MIN_DOCUMENTS = 5
"""Fewest documents of a word to compare: the words of a single document have the same vector."""
PAIRS, CHANCE, ROUNDING = 10_000, 0.99, 0.001
"""A neighbor's cosine exceeds the quantile CHANCE of PAIRS random pairs of words, and ROUNDING."""


def choose(
    choice: Choice, repositories: NDArray[np.int32], fasttext: FastTextConfig, lsa: LsaConfig
) -> FastTextConfig | LsaConfig:
    """The settings to learn a corpus with. repositories: of its documents. "auto": LSA for a small corpus of few
    repositories, unless there are settings of fastText.

    >>> from ncs.config import FastTextConfig, LsaConfig
    >>> one, many = np.zeros(500, np.int32), np.arange(500, dtype=np.int32)
    >>> [type(choose("auto", each, FastTextConfig(), LsaConfig())).__name__ for each in (one, many)]
    ['LsaConfig', 'FastTextConfig']
    """
    if choice == "auto":
        from ncs.config import FastTextConfig  # a query need not import it

        shares = np.bincount(repositories) / max(1, len(repositories))
        few = 1 / max(float(shares @ shares), 1e-9) < MANY  # inverse Simpson index
        small = few and len(repositories) < CROSSOVER
        choice = "lsa" if small and fasttext == FastTextConfig() else "fasttext"
    return lsa if choice == "lsa" else fasttext


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Word vectors, float32 [len(vocabulary), d], zero rows for words without one; notes: deviations from settings."""

    vectors: Matrix
    method: Method = "none"
    notes: tuple[str, ...] = ()

    @classmethod
    def train(
        cls, words: WordTable, config: FastTextConfig | LsaConfig, *, track: Track = silent, folder: Path | None = None
    ) -> Embeddings:
        """Learn from the words of NCS_FIELDS by the method of `config`; by LSA if fastText fails, else zero rows, with
        notes. folder: for temporary files. Raises BadInput for a bad pretrained file."""
        from ncs.config import FastTextConfig, LsaConfig
        from ncs.learn import lsa

        notes: tuple[str, ...] = ()
        if isinstance(config, FastTextConfig):
            from ncs.learn import fasttext

            try:
                vectors, notes = fasttext.train(words, config, track=track, folder=folder)
            except fasttext.TrainingFailedError as error:
                notes = (f"Word vectors are from LSA, as {error}",)
                config = LsaConfig(dim=config.dim, seed=config.seed)
            else:
                return cls(vectors, "fasttext", notes)
        vectors = lsa.train(words, config)
        if vectors.any():
            return cls(vectors, "lsa", notes)
        return cls(vectors, "none", (*notes, "No word has a vector: only the words themselves can be searched."))

    def save(self, folder: Path) -> None:
        """Write `embeddings.npy` and `embeddings.json`."""
        save_array(folder / "embeddings.npy", self.vectors)
        about = {"method": self.method, "notes": self.notes}
        (folder / "embeddings.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Embeddings:
        """Memory-mapped; raises IndexDamaged for missing, truncated or foreign files."""
        with reading(f"the embeddings in {folder}"):
            vectors = map_array(folder / "embeddings.npy", np.float32, 2)
            about = read_json(folder / "embeddings.json")
            method, notes = about["method"], tuple(about["notes"])
        return cls(vectors, method, notes)

    def nearest(
        self, vocabulary: Vocabulary, id: int, documents: NDArray[np.int64], n: int = 10
    ) -> list[tuple[str, float]] | None:
        """The n most similar words and their cosines, by (-cosine, id); None for a word without a vector.

        documents: document frequencies of words. Only words of at least MIN_DOCUMENTS documents are compared, and
        neighbors must be more similar than random pairs.
        """
        unit = unit_rows(self.vectors)
        if id >= len(unit) or not unit[id].any():
            return None
        learned = np.flatnonzero(unit.any(axis=1) & (documents >= MIN_DOCUMENTS))
        if documents[id] < MIN_DOCUMENTS or len(learned) < 2:
            return []
        one, other = np.random.default_rng(0).choice(learned, (2, PAIRS))
        pairs = np.einsum("ij,ij->i", unit[one], unit[other])[one != other]
        similarity = unit[learned] @ unit[id]
        similarity[learned == id] = -2
        order = np.argsort(-similarity, kind="stable")[:n].tolist()
        chance = max(float(np.quantile(pairs, CHANCE)), ROUNDING)
        return [(vocabulary.word(int(learned[i])), float(similarity[i])) for i in order if similarity[i] > chance]


def reuse_embeddings(statistics: Path, words: WordTable) -> Embeddings:
    """The word vectors of an earlier build for the words of another corpus; new words have none."""
    embeddings = Embeddings.load(statistics)
    ids = Vocabulary.load(statistics).ids_of(list(words.vocabulary))
    vectors = np.zeros((len(ids), embeddings.vectors.shape[1]), np.float32)
    vectors[ids >= 0] = embeddings.vectors[ids[ids >= 0]]
    return replace(embeddings, vectors=vectors)


def share_without_vector(words: WordTable, embeddings: Embeddings) -> float:
    """The share of the words of NCS_FIELDS that have no vector: rare ones, and those newer than the training."""
    has_vector = np.einsum("ij,ij->i", embeddings.vectors, embeddings.vectors) > 0
    with_vector = total = 0
    for start in range(0, len(words), CHUNK):
        ids, _ = words.select_rows(NCS_FIELDS, words.learned(start, min(start + CHUNK, len(words))))
        with_vector, total = with_vector + int(np.count_nonzero(has_vector[ids])), total + len(ids)
    return round(1 - with_vector / total, 6) if total else 0.0


def retraining_advice(description: Description) -> str | None:
    """Why word vectors should be learned again, with the command; None if they need not."""
    counts = description.counts
    training: Mapping[str, Any] = counts.get("training") or {}
    missing = training.get("without_vector_now", 0) - training.get("without_vector", 0)
    documents, then = counts.get("documents", 0), training.get("documents", 0)
    if missing > DRIFT:
        return f"{missing:.1%} of the words are newer than the word vectors; learn them with: ncs update --retrain"
    if then and documents > GROWTH * then:
        return f"word vectors were learned from {then:,} documents of {documents:,}; learn again: ncs update --retrain"
    return None
