"""The rankers `ncs` and `ncs_centred`: documents and queries as means of word vectors, compared by cosine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, damaged
from ncs.files import save_array
from ncs.learn.embeddings import Embeddings
from ncs.learn.tfidf import CHUNK, QueryWeights, TfidfEncoder, center, inverse_document_frequency
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, nearest, read_config
from ncs.search.ranking import Internals
from ncs.storage.arrays import load_array
from ncs.storage.vectors import VectorIndex, Vectors, choose_kind
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.vectors import Choice
    from ncs.storage.words import WordTable
    from ncs.types import Mask, Matrix

MEAN = "mean.npy"
"""The mean of all document vectors, [d], which `centre` subtracts."""


class NcsRanker(Ranker):
    """Orders documents by cosine; the defaults are the published form.

    query_weights: see `TfidfEncoder`. centre: whether to subtract the mean of all document vectors. stop_words: whether
    a query keeps its stop words. vectors: see `ncs.storage.vectors.choose_kind`.
    """

    signal = "meaning"
    encoder: TfidfEncoder
    vectors: Vectors

    def __init__(
        self,
        name: str = "ncs",
        *,
        query_weights: QueryWeights = "mean",
        centre: bool = False,
        stop_words: bool = True,
        vectors: Choice = "auto",
    ) -> None:
        if query_weights not in ("mean", "idf"):
            raise BadInput(f"query_weights are 'mean' or 'idf', not {query_weights!r}")
        choose_kind(vectors, 0)
        self.name, self._choice = name, vectors
        self.query_weights, self.centre, self.stop_words = query_weights, centre, stop_words
        self.config = {
            "query_weights": query_weights,
            "centre": centre,
            "stop_words": stop_words,
            **({} if vectors == "auto" else {"vectors": vectors}),
        }
        self._mean: Matrix | None = None

    def fit(
        self, words: WordTable, embeddings: Embeddings, documents: DocumentTable | None = None, *, track: Track = silent
    ) -> None:
        """Encode every document; with `centre` twice, to save memory."""
        encoder = self._encode_with(words.vocabulary, embeddings, inverse_document_frequency(words))
        starts, dim = range(0, len(words), CHUNK), embeddings.vectors.shape[1]
        passes = 2 if self.centre else 1
        tracked = track([*starts] * passes, self.name, total=passes * len(starts), unit="chunks")
        chunks = encoder.chunks(words, tracked)
        if self.centre:
            self._mean = mean = _mean(chunks, words, dim)
            chunks = (center(vectors, mean) for vectors in chunks)
        self.encoder = encoder
        self.vectors = Vectors([VectorIndex.build(chunks, dim, kind=choose_kind(self._choice, len(words)))])

    def _encode_with(self, vocabulary: Vocabulary, embeddings: Embeddings, idf: Matrix) -> TfidfEncoder:
        return TfidfEncoder(vocabulary, embeddings.vectors, idf, self.query_weights, self.stop_words)

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none where no word of the query has a vector."""
        return nearest(self.vectors, self.encoder.query(text), k, allowed=allowed)

    def query_words(self, text: str) -> list[str]:
        """The words of a query whose vectors it adds up."""
        return tokenize(text) if self.stop_words else super().query_words(text)

    def internals(self) -> Internals:
        return Internals(encoder=self.encoder, vectors=self.vectors)

    def save(self, statistics: Path, segment: Path) -> None:
        """idf, mean and configuration; vectors. Vocabulary and embeddings are the statistics' own."""
        folder = self._save_config(statistics)
        save_array(folder / "idf.npy", self.encoder.idf)
        if self._mean is not None:
            save_array(folder / MEAN, self._mean)
        self.vectors.save(segment / self.name)

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Vectors of a new segment; words that are not in the statistics are ignored."""
        encoder, mean = self._open(statistics)
        words = words.renumbered(encoder.vocabulary)
        chunks = encoder.chunks(words, range(0, len(words), CHUNK))
        if mean is not None:
            chunks = (center(vectors, mean) for vectors in chunks)
        dim = encoder.vectors.shape[1]
        Vectors([VectorIndex.build(chunks, dim, kind=choose_kind(self._choice, len(words)))]).save(segment / self.name)

    def load(self, snapshot: Snapshot) -> None:
        """Raises IndexDamaged if files are missing, inconsistent or of another configuration."""
        self.encoder, self._mean = self._open(snapshot.statistics)
        self.vectors = Vectors.open(snapshot, self.name)
        if self.vectors.dim != self.encoder.vectors.shape[1]:
            raise damaged(f"the vectors of {self.name} do not fit the embeddings")

    def _open(self, statistics: Path) -> tuple[TfidfEncoder, Matrix | None]:
        """The encoder and, with `centre`, the mean document vector [d]."""
        folder = statistics / self.name
        vocabulary, embeddings = Vocabulary.load(statistics), Embeddings.load(statistics)
        idf = load_array(folder / "idf.npy", np.float32)
        mean = load_array(folder / MEAN, np.float32) if self.centre else None
        config = read_config(folder)
        if len(embeddings.vectors) != len(vocabulary) or idf.shape != (len(vocabulary),):
            raise damaged(f"the files in {folder} do not fit the vocabulary")
        if config.get("centre") != self.centre:
            raise damaged(f"{folder} was made with {config}")
        return self._encode_with(vocabulary, embeddings, idf), mean


def _mean(chunks: Iterator[Matrix], words: WordTable, dim: int) -> Matrix:
    """The mean of the vectors of the documents that are learned from, [dim]."""
    total, rows = np.zeros(dim), 0
    for start, vectors in zip(range(0, len(words), CHUNK), chunks, strict=False):
        learned = words.learned(start, start + len(vectors)) - start
        total += vectors[learned].sum(axis=0, dtype=np.float64)
        rows += len(learned)
    mean: Matrix = (total / max(1, rows)).astype(np.float32)
    return mean
