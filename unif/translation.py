"""Which words of a function answer each word of a question: a learnt translation, served without torch.

One vector a function is the mean of all it says; here every word of the question is looked for by itself, and words
that stand for it count as it does. Of a question's word t in a function d, whose words u weigh w(u, d) (unif.impacts):

    found(t, d) = sum over u of w(u, d) * exp(counted_u) * (max(0, cos(q_t, c_u)) ** power + same * [t is u])
    score       = sum over t of exp(asked_t) * found / (found + half)  /  sum over t of exp(asked_t)

The saturation by `half` is BM25's, the sum over u a translation model's (Berger and Lafferty 1999), whose table is the
product of two matrices of word vectors. Without vectors and with same = 1 it is BM25 with learnt idf.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Scores = NDArray[np.float64]

FOLDER = "translation"
NAMES = ("query", "code", "asked", "counted")
SETTINGS = ("power", "half", "same")


@dataclass(frozen=True, slots=True)
class Translation:
    """query, code: unit vectors [V + 1, d] of tokens, row 0 of none; asked, counted: logarithms of weights [V + 1]."""

    query: Array
    code: Array
    asked: Array
    counted: Array
    power: float
    half: float
    same: float

    def scores(self, ids: Sequence[int], impacts: Any) -> Scores:
        """Of functions, CSR [n, V] of what tokens weigh in them, to a question of these tokens, [n]; 0 for none."""
        asked = np.unique(np.fromiter((id for id in ids if id > 0), np.int64))
        if not len(asked) or not impacts.shape[0]:
            return np.zeros(impacts.shape[0])
        there, places = np.unique(impacts.indices, return_inverse=True)
        table = self.table(asked, there + 1)  # [t, u]
        table *= np.exp(self.counted[there + 1])
        found = _product(impacts, places, table)  # [n, t]
        weights = np.exp(self.asked[asked].astype(np.float64))
        return np.asarray((found / (found + self.half)) @ (weights / weights.sum()), np.float64)

    def table(self, asked: NDArray[np.int64], there: NDArray[np.int64]) -> Array:
        """How far each of the tokens `there` stands for each of those asked for, [t, u]."""
        likeness = np.maximum(np.asarray(self.query[asked]) @ np.asarray(self.code[there]).T, 0) ** self.power
        at = np.minimum(np.searchsorted(there, asked), max(0, len(there) - 1))
        met = there[at] == asked if len(there) else np.zeros(len(asked), np.bool_)
        likeness[np.flatnonzero(met), at[met]] += self.same
        return np.asarray(likeness, np.float32)

    def save(self, folder: Path) -> None:
        """Write `<array>.npy` each, and `translation.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            np.save(folder / f"{name}.npy", getattr(self, name))
        told = {name: getattr(self, name) for name in SETTINGS}
        (folder / "translation.json").write_text(json.dumps(told) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, tokens: int) -> Translation:
        """Memory-mapped; raises OSError, ValueError, KeyError or TypeError where files are missing or do not fit."""
        told: Mapping[str, float] = json.loads((folder / "translation.json").read_bytes())
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in NAMES}
        if any(len(array) != tokens + 1 or array.dtype != np.float32 for array in arrays.values()):
            raise ValueError("the translation holds other numbers")
        numbers = [float(told[name]) for name in SETTINGS]
        return cls(arrays["query"], arrays["code"], arrays["asked"], arrays["counted"], *numbers)


def _product(impacts: Any, places: NDArray[np.int64], table: Array) -> Scores:
    """Functions x asked tokens [n, t] of impacts [n, V], whose entries are of these places in a table [t, u]."""
    from scipy.sparse import csr_matrix

    narrow = csr_matrix((impacts.data, places, impacts.indptr), shape=(impacts.shape[0], table.shape[1]))
    return np.asarray(narrow @ table.T, np.float64)
