"""Which words of code go with which words of questions, counted over known answers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Cooccurrence:
    """How often words of code stand in the answers to questions with a word, each row divided by its sum.

    Row of question word q: weights[offsets[q] : offsets[q + 1]] (float32) of the code words in ids, alike. One .npy
    each on disk, and the two vocabularies in folders of their own.
    """

    questions: Vocabulary
    code: Vocabulary
    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Iterable[str], Iterable[str]]], *, idf: bool = False) -> Cooccurrence:
        """From the words of questions and of their code; a word counts once in each. scipy is imported here.

        idf: count a code word log(n / df) instead of 1, df of the n pairs having it.
        """
        asked, answered = _Incidence({}, array("i"), array("q", [0])), _Incidence({}, array("i"), array("q", [0]))
        for question, code in pairs:
            asked.add(question)
            answered.add(code)
        questions, by_question = asked.matrix()
        words, by_word = answered.matrix()
        if idf:
            df = np.bincount(by_word.indices, minlength=len(words))
            by_word.data = np.log(by_word.shape[0] / np.maximum(df, 1))[by_word.indices]
        counts = (by_question.T @ by_word).tocsr()
        counts.sort_indices()
        sums = np.asarray(counts.sum(axis=1)).ravel()
        weights = counts.data / np.repeat(np.where(sums > 0, sums, 1), np.diff(counts.indptr))
        offsets, ids = counts.indptr.astype(np.int64), counts.indices.astype(np.int32)
        return cls(questions, words, offsets, ids, weights.astype(np.float32))

    def best(self, word: str) -> tuple[str, float] | None:
        """The code word of the highest weight for a word of a question, the first in the alphabet among equals."""
        id = self.questions.id(word)
        if id is None or self.offsets[id] == self.offsets[id + 1]:
            return None
        here = slice(self.offsets[id], self.offsets[id + 1])
        at = int(np.argmax(self.weights[here]))
        return self.code.word(int(self.ids[here][at])), float(self.weights[here][at])

    def save(self, room: Path) -> None:
        """Write into an existing folder."""
        for name, vocabulary in (("questions", self.questions), ("code", self.code)):
            (room / name).mkdir(exist_ok=True)
            vocabulary.save(room / name)
        for name in ("offsets", "ids", "weights"):
            np.save(room / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, room: Path) -> Cooccurrence:
        """Memory-mapped; raises OSError, ValueError or IndexDamaged where the files are not whole."""
        offsets, ids, weights = (
            np.asarray(np.load(room / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in ("offsets", "ids", "weights")
        )
        found = cls(Vocabulary.load(room / "questions"), Vocabulary.load(room / "code"), offsets, ids, weights)
        if len(offsets) != len(found.questions) + 1 or not len(ids) == len(weights) == offsets[-1]:
            raise ValueError("the files do not fit each other")
        return found


@dataclass(frozen=True, slots=True)
class _Incidence:
    """Which words stand in which text."""

    met: dict[str, int]
    ids: array[int]
    offsets: array[int]

    def add(self, words: Iterable[str]) -> None:
        self.ids.extend(self.met.setdefault(word, len(self.met)) for word in dict.fromkeys(words))
        self.offsets.append(len(self.ids))

    def matrix(self) -> tuple[Vocabulary, Any]:
        """Texts x words of ones, scipy CSR; words in the order of the vocabulary."""
        from scipy.sparse import csr_matrix

        vocabulary, number = Vocabulary.of(self.met), np.zeros(len(self.met), np.int32)
        number[[self.met[word] for word in vocabulary]] = np.arange(len(self.met), dtype=np.int32)
        ids = number[np.frombuffer(self.ids, np.intc)] if self.ids else np.zeros(0, np.int32)
        shape = (len(self.offsets) - 1, len(vocabulary))
        return vocabulary, csr_matrix((np.ones(len(ids)), ids, np.array(self.offsets)), shape=shape)
