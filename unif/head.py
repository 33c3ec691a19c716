"""What training leaves behind: plain arrays that make vectors of questions and functions without torch.

Every encoder whose weight of a word does not depend on its neighbours is served by the same arithmetic. UNIF's
attention is such a one: a softmax over a document's words is exp(a . e_w) divided by a sum that the cosine cancels.

    side of a text: u(sum over its words w of exp(score_w) * table_w), u(x) = x / |x|
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.embeddings import unit_rows
from ncs.encoder import term_counts
from ncs.errors import BadInput, IndexDamaged
from ncs.tokens import tokenize
from ncs.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Matrix
    from ncs.vocabulary import WordTable

LOWEST = -1e4
"""The score of a word that is not there: exp gives 0."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two encoders: table float32 [V, d], scores float32 [V], the logarithms of the words' weights."""

    table: Matrix
    scores: NDArray[np.float32]

    def weights(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """exp(score) of these words, the largest made 1: a factor that no cosine sees."""
        scores = np.asarray(self.scores[ids], np.float64)
        return np.exp(scores - scores.max()) if len(scores) else scores

    def text(self, ids: NDArray[np.int64]) -> Matrix:
        """The unit vector [d] of a bag of words, zero for an empty one."""
        total = self.weights(ids) @ np.asarray(self.table[ids], np.float64)
        vector: Matrix = unit_rows(total[None].astype(np.float32))[0]
        return vector

    def aligned(self, ours: Vocabulary, theirs: Vocabulary) -> Side:
        """The same words under another vocabulary's ids; words that it lacks are gone, ours that lack get nothing."""
        known = {word: id for id, word in enumerate(ours)}
        at = np.fromiter((known.get(word, -1) for word in theirs), np.int64, len(theirs))
        table = np.zeros((len(theirs), self.table.shape[1]), np.float32)
        scores = np.full(len(theirs), LOWEST, np.float32)
        table[at >= 0], scores[at >= 0] = self.table[at[at >= 0]], self.scores[at[at >= 0]]
        return Side(table, scores)


@dataclass(frozen=True, slots=True)
class Head:
    """Both sides over one vocabulary, and what they were trained with.

    On disk: `vocabulary.txt`, `vocabulary.npy`, `query.npy`, `query_scores.npy`, `code.npy`, `code_scores.npy`,
    `head.json`. about: {"unique": true} counts a document's repeated words once.
    """

    vocabulary: Vocabulary
    query: Side
    code: Side
    about: Mapping[str, object] = field(default_factory=dict)

    def documents(self, words: WordTable, start: int, stop: int, code: Side) -> Matrix:
        """Unit vectors [stop - start, d] of these rows' NCS_FIELDS; `code` is the code side aligned to their words."""
        counts = term_counts(words, start, stop).astype(np.float64)
        counts.data = np.minimum(counts.data, 1) if self.about.get("unique") else counts.data
        counts.data *= _relative(code.scores[counts.indices], counts.indptr)
        return unit_rows(np.asarray(counts @ code.table, np.float32))

    def question(self, text: str) -> Matrix:
        """The unit vector [d] of a question, zero where no word of it is known."""
        ids = [id for id in map(self.vocabulary.id, tokenize(text)) if id is not None]
        return self.query.text(np.array(ids, np.int64))

    def save(self, folder: Path) -> None:
        """Write all files into `folder`, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        self.vocabulary.save(folder)
        for name, side in (("query", self.query), ("code", self.code)):
            np.save(folder / f"{name}.npy", side.table)
            np.save(folder / f"{name}_scores.npy", side.scores)
        (folder / "head.json").write_text(json.dumps(dict(self.about), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Head:
        """Memory-mapped. Raises BadInput where there is none, IndexDamaged for files that do not fit each other."""
        if not (folder / "head.json").is_file():
            raise BadInput(f"there is no trained head in {folder}; make one with: python -m unif train INDEX --out RUN")
        try:
            vocabulary, about = Vocabulary.load(folder), json.loads((folder / "head.json").read_bytes())
            query, code = (Side(_array(folder, name, 2), _array(folder, f"{name}_scores", 1)) for name in _SIDES)
        except (OSError, EOFError, ValueError) as error:
            raise IndexDamaged(f"cannot read the head in {folder} ({error}); train it again") from error
        n, dim = len(vocabulary), query.table.shape[1]
        shapes = [(side.table.shape, side.scores.shape) for side in (query, code)]
        if shapes != [((n, dim), (n,))] * 2 or not isinstance(about, dict):
            raise IndexDamaged(f"the files in {folder} do not fit each other; train the head again")
        return cls(vocabulary, query, code, about)


_SIDES = ("query", "code")


def _array(folder: Path, name: str, dimensions: int) -> NDArray[np.float32]:
    array = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
    if array.ndim != dimensions or array.dtype != np.float32:
        raise ValueError(f"{name}.npy holds other numbers")
    return array


def _relative(scores: NDArray[np.float32], bounds: NDArray[np.int32]) -> NDArray[np.float64]:
    """exp(score - the highest score of its row), rows of a CSR matrix: no weight overflows, no row vanishes."""
    lengths = np.diff(bounds)
    full = lengths > 0
    highest = np.zeros(len(lengths))
    if full.any():
        highest[full] = np.maximum.reduceat(scores.astype(np.float64), bounds[:-1][full])
    relative: NDArray[np.float64] = np.exp(scores.astype(np.float64) - np.repeat(highest, lengths))
    return relative
