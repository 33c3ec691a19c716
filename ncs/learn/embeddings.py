"""One vector a word: by LSA in a small project, by fastText's skip-gram else; by LSA again where fastText cannot."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ncs.build.delta import room_of
from ncs.errors import IndexDamaged
from ncs.learn.fasttext import FastTextConfig
from ncs.learn.lsa import LsaConfig
from ncs.progress import Track, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.fasttext import Trainer
    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Matrix

__all__ = ["CROSSOVER", "Choice", "Embeddings", "FastTextConfig", "LsaConfig", "chosen"]

Method = Literal["fasttext", "lsa", "none"]
Choice = Literal["auto", "fasttext", "lsa"]
CROSSOVER, MANY = 30_000, 6.0
"""Documents from which on, and repositories, effectively, fastText's vectors are better; measured in DESIGN.md."""


def chosen(
    choice: Choice, repositories: NDArray[np.int32], fasttext: FastTextConfig, lsa: LsaConfig
) -> FastTextConfig | LsaConfig:
    """How a corpus is learnt from, given the repository of each of its documents.

    "auto": by LSA where it is small and of few repositories: inside a project people ask for a place, over many for
    whatever does it, and fastText's neighbours are wider. Who gives settings of fastText wants fastText.

    >>> one, many = np.zeros(500, np.int32), np.arange(500, dtype=np.int32)
    >>> [type(chosen("auto", each, FastTextConfig(), LsaConfig())).__name__ for each in (one, many)]
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

    method: what they were learnt by. notes: a plain sentence for each thing that went another way than asked.
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
        trainer: Trainer | None = None,
    ) -> Embeddings:
        """Learn from the words of NCS_FIELDS; the kind of config chooses the method.

        Where fastText cannot learn (diverged, crashed, nothing to read) LSA does, and where that cannot
        all rows are zero; `notes` tell. folder: for temporary files. trainer: what runs fastText. Raises BadInput for a
        bad pretrained file.
        """
        config = config or FastTextConfig()
        notes: tuple[str, ...] = ()
        if isinstance(config, FastTextConfig):
            from ncs.learn import fasttext as skipgram
            from ncs.learn.fasttext_process import TrainingFailedError

            try:
                vectors, notes = skipgram.train(words, config, track=track, folder=folder, trainer=trainer)
            except TrainingFailedError as error:
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
        """Of an index: zeros for the words that came since it was built (ncs.build.delta)."""
        learnt = cls.of_folder(folder)
        return replace(learnt, vectors=with_new_words(learnt.vectors, folder))

    @classmethod
    def of_folder(cls, folder: Path) -> Embeddings:
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
        if not unit[id].any():
            return None
        similarity = unit @ unit[id]
        similarity[id] = -2
        similarity[~unit.any(axis=1)] = -2
        order = np.argsort(-similarity, kind="stable").tolist()
        known = (i for i in order if similarity[i] > -2 and not vocabulary.is_gone(i))
        return [(vocabulary.word(i), float(similarity[i])) for i in islice(known, n)]


def with_new_words(array: Matrix, folder: Path) -> Matrix:
    """An array over the words that an index was built with, over all that it has now: zeros for those that are new."""
    if not room_of(folder):
        return array
    from ncs.build.delta.vocabulary import StackedVocabulary, longer

    vocabulary = StackedVocabulary.load(folder, room_of(folder))
    return longer(array, len(vocabulary)) if len(array) == len(vocabulary.base) else array


def unit_rows(vectors: Matrix) -> Matrix:
    """Every row divided by its length, float32; zero rows stay zero.

    >>> unit_rows(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))[:, None]
    unit: Matrix = np.zeros(vectors.shape, np.float32)
    np.divide(vectors, lengths, out=unit, where=lengths > 0, casting="same_kind")
    return unit
