"""What a document is worth to a question that was taken from it, once the field it was taken from is hidden."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from ncs.learn.embeddings import unit_rows
from ncs.learn.tfidf import tfidf
from ncs.search.bm25 import Bm25Ranker
from ncs.search.expansion import expand
from ncs.search.ncs import NcsRanker
from ncs.search.question import read_intent
from ncs.search.ranking import Hidden
from ncs.text.stems import stem_all
from ncs.types import NCS_FIELDS, Field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.types import Matrix

MOST, RUN = 4_096, 64
"""Documents whose mean stands for the mean of all, which a saved ranker does not keep; how many of them in a row."""


class Hiding:
    """Scores single documents again as if one field of them were empty; all other documents keep theirs.

    What was learnt from that field beside the document (word vectors, counts of words) stays as it is: hiding it
    there would take a build a question.
    """

    def __init__(self, words: WordTable, lexical: Bm25Ranker, dense: NcsRanker, languages: Sequence[str]) -> None:
        self.words, self._lexical, self._encoder = words, lexical, dense.encoder
        self._languages = languages
        self._mean_length = float(lexical.postings.lengths.mean(dtype=np.float64)) or 1.0
        self._unit = unit_rows(self._encoder.vectors)
        self._mean = np.zeros(self._unit.shape[1], np.float32)
        if dense.centre:
            self._mean = self._mean_vector()

    def hide(self, text: str, row: int, field: Field) -> Hidden:
        """What the rest of a document scores for a question."""
        asked = list(read_intent(text, self._languages).words)
        wording = expand(asked, self._lexical.postings, lambda: list(self.words.vocabulary))
        meaning = float(self.vector(row, field) @ self._encoder.query(" ".join(asked)))
        plain, coverage = self.lexical(asked, row, field)
        return Hidden(
            row,
            self.counted(wording.query, row, field),
            meaning,
            coverage,
            name=0.0 if field == "name" else None,
            spelling=self.counted(wording.added, row, field),
            plain=plain,
        )

    def lexical(self, asked: Sequence[str], row: int, field: Field | None) -> tuple[float, float]:
        """The BM25 score of a row without a field, and the part of the question's idf that its words hold.

        With all fields the score is the postings' own.
        """
        postings, (tf, _) = self._lexical.postings, self._read(row, field)
        ids, idf = [term.id for term in postings.terms(list(asked)) if term.id is not None], postings.idf(asked)
        score = self.counted({id: ids.count(id) for id in ids}, row, field)
        held = sum(weight for stem, weight in idf.items() if tf[stem])
        return score, held / max(sum(idf.values()), 1e-9)

    def counted(self, weights: Mapping[int, float], row: int, field: Field | None) -> float:
        """The BM25 score of a row without a field, for stems by their ids and what each counts."""
        postings, (tf, saturation) = self._lexical.postings, self._read(row, field)
        score = 0.0
        for id, weight in weights.items():
            if often := tf[postings.stems.word(id)]:
                score += weight * postings.rarity(id) * often / (often + saturation)
        return score

    def _read(self, row: int, field: Field | None) -> tuple[Mapping[str, float], float]:
        """How often the row has each stem, weighted, and what that is weighed against; a field left out."""
        ranker = self._lexical
        tf: dict[str, float] = defaultdict(float)
        length = 0.0
        for name, weight in ranker.weights.items():
            if name == field or not weight:
                continue
            ids = self.words.ids_of(row, name)
            length += weight * len(ids)
            for stem in stem_all(self.words.vocabulary.word(int(id)) for id in ids):
                tf[stem] += weight
        return tf, ranker.k1 * (1 - ranker.b + ranker.b * length / self._mean_length)

    def vector(self, row: int, field: Field | None) -> Matrix:
        """The unit vector [d] of a row without a field, the mean of all taken out where the ranker does."""
        vector = self._vector(row, [name for name in NCS_FIELDS if name != field])
        return unit_rows((vector - self._mean)[None].astype(np.float32))[0] if vector.any() else vector

    def _mean_vector(self) -> Matrix:
        """Of all documents, or of RUN at each of places evenly spread."""
        words, idf = self.words, self._encoder.idf
        starts = [0] if len(words) <= MOST else np.linspace(0, len(words) - RUN, MOST // RUN).astype(int).tolist()
        run = len(words) if len(words) <= MOST else RUN
        mean: Matrix = np.mean(
            [unit_rows(tfidf(words, idf, at, at + run) @ self._unit).mean(axis=0, dtype=np.float64) for at in starts],
            axis=0,
        )
        return mean

    def _vector(self, row: int, fields: Sequence[Field]) -> Matrix:
        found: list[NDArray[np.int32]] = [self.words.ids_of(row, name) for name in fields]
        ids, counts = np.unique(np.concatenate(found), return_counts=True)
        weights = (1 + np.log(counts)) * self._encoder.idf[ids]
        vector: Matrix = unit_rows((weights.astype(np.float32) @ self._unit[ids])[None])[0]
        return vector
