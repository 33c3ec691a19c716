"""A learnt translation over the functions of an index: how far each stands out for a question, word by word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.search.signals.head import SAMPLE
from unif.impacts import document_impacts
from unif.translation import Translation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.types import Field

    Scores = NDArray[np.float64]

ARRAYS = ("data", "indices", "indptr")


@dataclass(frozen=True, slots=True)
class Translated:
    """impacts: what the tokens weigh in every function, CSR [n, V]; mean: the functions' mean length (unif.impacts);
    sample: the impacts of SAMPLE functions spread evenly, which stand for all."""

    translation: Translation
    impacts: Any
    mean: float
    sample: Any

    @classmethod
    def of(cls, translation: Translation, impacts: Any, mean: float) -> Translated:
        """Reads the sample."""
        n = impacts.shape[0]
        at = np.unique(np.linspace(0, max(0, n - 1), min(SAMPLE, n)).astype(np.int64))
        return cls(translation, impacts, mean, impacts[at])

    def standing(self, ids: Sequence[int], rows: NDArray[np.int64]) -> Scores:
        """How many standard deviations these rows are above the mean of all functions, [len(rows)], 0 for no token."""
        return self.standing_of(ids, self.impacts[rows])

    def standing_of(self, ids: Sequence[int], impacts: Any) -> Scores:
        """The same of functions of these impacts, CSR [n, V]."""
        all_of_them = self.translation.scores(ids, self.sample)
        spread = float(all_of_them.std()) if len(all_of_them) else 0.0
        if spread < 1e-9:
            return np.zeros(impacts.shape[0])
        return (self.translation.scores(ids, impacts) - float(all_of_them.mean())) / spread

    def without(self, ids: Sequence[int], words: WordTable, row: int, field: Field, tokens_of: Any) -> float:
        """The standing of one function of the index, one field of it left out."""
        return float(self.standing_of(ids, document_impacts(words, [row], tokens_of, self.mean, field))[0])

    def save(self, room: Path) -> None:
        """Write `impacts.<array>.npy` and `impacts.json`; the translation is saved with its head."""
        for name in ARRAYS:
            np.save(room / f"impacts.{name}.npy", getattr(self.impacts, name))
        told = {"mean": self.mean, "shape": self.impacts.shape}
        (room / "impacts.json").write_text(json.dumps(told) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, room: Path, translation: Translation) -> Translated:
        """Memory-mapped; raises OSError, ValueError, KeyError or TypeError where files are missing or do not fit."""
        from scipy.sparse import csr_matrix

        told = json.loads((room / "impacts.json").read_bytes())
        arrays = [np.load(room / f"impacts.{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS]
        n, tokens = told["shape"]
        if len(arrays[2]) != n + 1 or tokens + 1 != len(translation.code):
            raise ValueError("the impacts are of other functions or another head")
        return cls.of(translation, csr_matrix(tuple(arrays), shape=(n, tokens), copy=False), float(told["mean"]))
