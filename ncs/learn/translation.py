"""A learned translation from words of queries to words of code, scored word by word without torch.

For a word t of the query and a function d, whose words u have impacts w(u, d):

    match(t, d) = sum over u of w(u, d) * exp(code_weight_u) * (max(0, cos(q_t, c_u)) ** power + same * [t is u])
    score       = sum over t of exp(query_weight_t) * match / (match + half)  /  sum over t of exp(query_weight_t)

The saturation by `half` is BM25's, the sum over u that of a translation model (Berger and Lafferty 1999) whose table is
the product of two matrices of word vectors. An impact is BM25's without idf, which heads learn:

    w(u, d) = tf / (tf + K1 * (1 - B + B * length / mean length)),    tf and length of the fields by FIELD_WEIGHTS
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.files import map_array, read_json, save_array
from ncs.learn.tfidf import CHUNK, term_counts
from ncs.storage.arrays import are_below, are_finite, are_offsets, offsets_of, split
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.types import Scores

    Array = NDArray[np.float32]

K1, B = 1.2, 0.75
FIELD_WEIGHTS: Mapping[Field, float] = {**dict.fromkeys(FIELDS, 1), "name": 3, "path": 0}
"""Heads are trained with these; they do not depend on the ranker bm25."""
READ: tuple[Field, ...] = tuple(field for field in FIELDS if FIELD_WEIGHTS[field] > 0)
SAMPLE = 2_048
"""Functions sampled for mean and deviation."""
NAMES = {"query": "query", "code": "code", "query_weights": "asked", "code_weights": "counted"}
"""Array -> its file."""
SETTINGS = ("power", "half", "same")
ARRAYS = ("data", "indices", "indptr")


def weighted_counts(fields: Mapping[Field, Any]) -> Any:
    """The weighted sum of the counts of fields of READ, CSR [n, tokens] each, float32."""
    total = sum(FIELD_WEIGHTS[field] * counts for field, counts in fields.items())
    return total.tocsr().astype(np.float32)


def lengths(counts: Any) -> Scores:
    """The number of words in each row of weighted counts, [n]."""
    return np.asarray(counts.sum(axis=1), np.float64).ravel()


def saturated(counts: Any, mean: float) -> Any:
    """Impacts, 0 to 1, CSR of the same shape; mean: length of functions."""
    impacts = counts.copy()
    limit = K1 * (1 - B + B * lengths(counts) / max(mean, 1e-9))
    impacts.data = (counts.data / (counts.data + np.repeat(limit, np.diff(counts.indptr)))).astype(np.float32)
    return impacts


def _document_counts(words: WordTable, start: int, stop: int, tokens_of: Any, without: Field | None = None) -> Any:
    """Weighted counts [stop - start, tokens] of rows of an index; tokens_of: CSR [words of its vocabulary, tokens]."""
    fields = [field for field in READ if field != without]
    return weighted_counts({field: term_counts(words, start, stop, (field,)) @ tokens_of for field in fields})


def impacts_of(words: WordTable, tokens_of: Any, mean: float | None = None) -> tuple[Any, float]:
    """Impacts of all functions of a table, CSR [n, tokens], and the mean length: theirs, or the one given."""
    from scipy.sparse import csr_matrix, vstack

    starts = range(0, len(words), CHUNK)
    parts = [_document_counts(words, start, min(start + CHUNK, len(words)), tokens_of) for start in starts]
    counts = vstack(parts or [csr_matrix((0, tokens_of.shape[1]), dtype=np.float32)], format="csr")
    if mean is None:
        mean = float(lengths(counts).mean()) if counts.shape[0] else 1.0
    return saturated(counts, mean), mean


def impacts_without(words: WordTable, row: int, tokens_of: Any, mean: float, field: Field) -> Any:
    """Impacts, CSR [1, tokens], of a function of an index without one field."""
    return saturated(_document_counts(words, row, row + 1, tokens_of, field), mean)


@dataclass(frozen=True, slots=True)
class Translation:
    """query, code: unit vectors [V + 1, d] of tokens, row 0 is padding; *_weights: their logarithms [V + 1]."""

    query: Array
    code: Array
    query_weights: Array
    code_weights: Array
    power: float
    half: float
    same: float

    def scores(self, ids: Sequence[int], impacts: Any) -> Scores:
        """Scores [n] of functions, CSR [n, V] of impacts, for a query of these tokens; 0 for a query without any."""
        from scipy.sparse import csr_matrix

        query = np.unique(np.fromiter((id for id in ids if id > 0), np.int64))
        if not len(query) or not impacts.shape[0]:
            return np.zeros(impacts.shape[0])
        present, places = np.unique(impacts.indices, return_inverse=True)
        table = self.table(query, present + 1) * np.exp(self.code_weights[present + 1])  # [t, u]
        narrow = csr_matrix((impacts.data, places, impacts.indptr), shape=(impacts.shape[0], table.shape[1]))
        match = np.asarray(narrow @ table.T, np.float64)  # [n, t]
        weights = np.exp(self.query_weights[query].astype(np.float64))
        return np.asarray((match / (match + self.half)) @ (weights / weights.sum()), np.float64)

    def table(self, query: NDArray[np.int64], code: NDArray[np.int64]) -> Array:
        """The translation weights of tokens of code for those of a query, [t, u]."""
        table = np.maximum(np.asarray(self.query[query]) @ np.asarray(self.code[code]).T, 0) ** self.power
        table[query[:, None] == code] += self.same
        return np.asarray(table, np.float32)

    def save(self, folder: Path) -> None:
        """Write one `.npy` an array, and `translation.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in NAMES.items():
            save_array(folder / f"{file}.npy", getattr(self, name))
        settings = {name: getattr(self, name) for name in SETTINGS}
        (folder / "translation.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, tokens: int) -> Translation:
        """Memory-mapped; raises OSError, ValueError, KeyError or TypeError where files are missing or do not fit."""
        settings: Mapping[str, float] = read_json(folder / "translation.json")
        paths = [folder / f"{file}.npy" for file in NAMES.values()]
        arrays: list[Any] = [map_array(path, np.float32, n) for path, n in zip(paths, (2, 2, 1, 1), strict=True)]
        if any(len(array) != tokens + 1 for array in arrays) or arrays[0].shape != arrays[1].shape:
            raise ValueError("the translation is of other tokens")
        numbers = [float(settings[name]) for name in SETTINGS]
        if settings["half"] <= 0 or not are_finite(np.array(numbers)):
            raise ValueError("numbers are missing")
        return cls(*arrays, *numbers)


class TranslatedFunctions:
    """A translation over the functions of an index. impacts: CSR [n, V] of each segment; mean: the functions' mean
    length. Mean and deviation of scores are those of SAMPLE evenly spaced functions of the first segment."""

    def __init__(self, translation: Translation, impacts: Sequence[Any], mean: float) -> None:
        n = impacts[0].shape[0]
        at = np.unique(np.linspace(0, max(0, n - 1), min(SAMPLE, n)).astype(np.int64))
        self.translation, self.impacts, self.mean = translation, impacts, mean
        self._sample = impacts[0][at]

    @classmethod
    def load(cls, folders: Sequence[Path], translation: Translation) -> TranslatedFunctions:
        """Load the impacts of each segment, memory-mapped; raises OSError, ValueError, KeyError or TypeError."""
        parts = [_load_impacts(folder, translation) for folder in folders]
        return cls(translation, [impacts for impacts, _ in parts], parts[0][1])

    def rows(self, rows: NDArray[np.int64]) -> Any:
        """Impacts of these rows, CSR [len(rows), V]."""
        from scipy.sparse import vstack

        if len(self.impacts) == 1 or not len(rows):
            return self.impacts[0][rows]
        firsts = offsets_of(np.array([part.shape[0] for part in self.impacts]))[:-1]
        parts = ((at, self.impacts[number][local]) for number, at, local in split(firsts, rows))
        places, impacts = zip(*parts, strict=True)
        return vstack(impacts, format="csr")[np.argsort(np.concatenate(places))]

    def z_scores(self, ids: Sequence[int], impacts: Any) -> Scores:
        """The z-scores [n] of impacts, CSR [n, V], for a query of these tokens; 0 without tokens."""
        sample = self.translation.scores(ids, self._sample)
        deviation = float(sample.std()) if len(sample) else 0.0
        if deviation < 1e-9:
            return np.zeros(impacts.shape[0])
        return (self.translation.scores(ids, impacts) - float(sample.mean())) / deviation


def save_impacts(folder: Path, impacts: Any, mean: float) -> None:
    """Write `impacts.<array>.npy` and `impacts.json`; the translation is saved with its head."""
    for name in ARRAYS:
        save_array(folder / f"impacts.{name}.npy", getattr(impacts, name))
    (folder / "impacts.json").write_text(json.dumps({"mean": mean, "shape": impacts.shape}) + "\n", encoding="utf-8")


def _load_impacts(folder: Path, translation: Translation) -> tuple[Any, float]:
    from scipy.sparse import csr_matrix

    about = read_json(folder / "impacts.json")
    data, indices, indptr = (
        map_array(folder / f"impacts.{name}.npy", kind)
        for name, kind in zip(ARRAYS, (np.float32, np.int32, np.int32), strict=True)
    )
    n, tokens = about["shape"]
    fit = len(indptr) == n + 1 and tokens + 1 == len(translation.code) and len(data) == len(indices)
    if not (fit and are_offsets(indptr, len(data)) and are_below(indices, tokens)):  # scipy reads wherever they lead
        raise ValueError("the impacts are of other functions or another head")
    return csr_matrix((data, indices, indptr), shape=(n, tokens), copy=False), float(about["mean"])
