"""The encoder: documents and queries as TF-IDF weighted means of word vectors (Sachdev et al. 2018, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ncs.text.tokens import content_words, tokenize
from ncs.types import NCS_FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Matrix

QueryWeights = Literal["mean", "idf"]
CHUNK = 1 << 14  # documents encoded at a time


@dataclass(frozen=True, slots=True)
class TfidfEncoder:
    """NCS's encoder over the words of NCS_FIELDS; u(x) = x / |x|. Unknown words are left out.

    document: u(sum over its unique words w of u(v_w) * tfidf(w, d)), tfidf = (1 + log tf) * log(n / df).
    query, "mean": u(mean of v_w), as published; "idf": as a document of its words.
    stop_words: whether queries keep their stop words.
    """

    vocabulary: Vocabulary
    vectors: Matrix
    """Word vectors, [len(vocabulary), d]."""
    idf: NDArray[np.float32]
    """[len(vocabulary)]; 0 for a word that no document has, or every one."""
    query_weights: QueryWeights = "mean"
    stop_words: bool = True

    def chunks(self, words: WordTable, starts: Iterable[int]) -> Iterator[Matrix]:
        """Unit vectors of the CHUNK documents from each of these rows on."""
        unit = unit_rows(self.vectors)
        for start in starts:
            yield unit_rows(tfidf(words, self.idf, start, min(start + CHUNK, len(words))) @ unit)

    def query(self, text: str) -> Matrix:
        """The unit vector [d] of a query, zero where no word of it has a vector."""
        _, _, parts = self.parts(text)
        unit: Matrix = unit_rows(parts.sum(axis=0, keepdims=True))[0]
        return unit

    def parts(self, text: str) -> tuple[list[str], list[int], Matrix]:
        """The words of a query, the positions of those in the vocabulary, and their parts of its vector, [m, d]."""
        words = tokenize(text)
        if not self.stop_words:
            words = content_words(words)
        ids_by_position = {at: id for at, word in enumerate(words) if (id := self.vocabulary.id(word)) is not None}
        ids = np.fromiter(ids_by_position.values(), np.int64, len(ids_by_position))
        vectors = np.asarray(self.vectors[ids], np.float32)
        if self.query_weights == "idf":
            _, numbers, counts = np.unique(ids, return_inverse=True, return_counts=True)
            share = ((1 + np.log(counts)) / counts).astype(np.float32)[numbers]
            vectors = unit_rows(vectors) * (share * self.idf[ids])[:, None]
        return words, list(ids_by_position), vectors


def inverse_document_frequency(words: WordTable) -> NDArray[np.float32]:
    """log(n / df) of each word over the documents' NCS_FIELDS, [len(vocabulary)]; 0 where df is 0, or n."""
    df, n = np.zeros(len(words.vocabulary), np.int64), 0
    for start in range(0, len(words), CHUNK):
        stop = min(start + CHUNK, len(words))
        rows = words.learned(start, stop)
        df += np.bincount(term_counts(words, start, stop)[rows - start].indices, minlength=len(df))
        n += len(rows)
    return np.where(df > 0, np.log(n / np.maximum(df, 1)), 0).astype(np.float32)


def term_counts(words: WordTable, start: int, stop: int, fields: Sequence[Field] = NCS_FIELDS) -> Any:
    """The counts of words in these fields of rows start..stop, CSR [documents, words] of float32."""
    from scipy.sparse import csr_matrix

    ids, offsets = words.select(fields, start, stop)
    counts = csr_matrix((np.ones(len(ids), np.float32), ids, offsets), shape=(stop - start, len(words.vocabulary)))
    counts.sum_duplicates()
    return counts


def tfidf(words: WordTable, idf: NDArray[np.float32], start: int, stop: int) -> Any:
    """Documents x words, scipy CSR of float32: (1 + log tf) * idf, for rows start..stop."""
    matrix = term_counts(words, start, stop)
    matrix.data = (1 + np.log(matrix.data)) * idf[matrix.indices]
    return matrix


def center(vectors: Matrix, mean: Matrix) -> Matrix:
    """Unit vectors less the mean of all documents, normalized; zero rows stay zero."""
    return unit_rows(np.where(vectors.any(axis=1, keepdims=True), vectors - mean, 0))


def unit_rows(vectors: Matrix) -> Matrix:
    """Every row divided by its length, float32; zero rows stay zero.

    >>> unit_rows(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))[:, None]
    unit: Matrix = np.zeros(vectors.shape, np.float32)
    np.divide(vectors, lengths, out=unit, where=lengths > 0, casting="same_kind")
    return unit
