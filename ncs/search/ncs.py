"""The rankers `ncs` and `ncs_centred`: documents and queries as means of word vectors, compared by cosine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.learn.embeddings import Embeddings, with_new_words
from ncs.learn.tfidf import CHUNK, QueryWeights, TfidfEncoder, centred, inverse_document_frequency
from ncs.progress import Track, silent
from ncs.search.rankers import Internals, Ranker
from ncs.search.ranking import Ranking
from ncs.storage.vectors import VectorIndex, chosen
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ncs.storage.vectors import Choice
    from ncs.storage.words import WordTable
    from ncs.types import Mask, Matrix

MEAN = "mean.npy"
"""What was taken out of each vector, [d]; an update takes the same out of new ones."""


class NcsRanker(Ranker):
    """The defaults are the published form. Improved: query_weights="idf", centre=True, stop_words=False.

    query_weights: "mean" or "idf", see `TfidfEncoder`. centre: take the mean of all document vectors out of each.
    stop_words: whether a query keeps its stop words. vectors: how they are searched, see `ncs.storage.vectors.chosen`.
    """

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
        chosen(vectors, 0)
        self.name, self.vectors = name, vectors
        self.query_weights, self.centre, self.stop_words = query_weights, centre, stop_words
        self.config: Mapping[str, object] = {
            "query_weights": query_weights,
            "centre": centre,
            "stop_words": stop_words,
            **({} if vectors == "auto" else {"vectors": vectors}),
        }
        self._encoder: TfidfEncoder | None = None
        self._index: VectorIndex | None = None
        self._mean: Matrix | None = None
        self.learnt: tuple[Matrix, Matrix] | None = None
        """The idf of each word and the mean vector that `fit` takes over; None: it computes them."""

    @property
    def encoder(self) -> TfidfEncoder:
        """What `fit` made or `load` opened; raises BadInput before."""
        if self._encoder is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        return self._encoder

    @property
    def index(self) -> VectorIndex:
        """The document vectors; raises BadInput before `fit` or `load`."""
        if self._index is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        return self._index

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None:
        """Encode every document; with `centre` twice, so that memory holds the vectors once."""
        idf = inverse_document_frequency(words) if self.learnt is None else self.learnt[0]
        encoder = self._encode_with(words.vocabulary, embeddings, idf)
        starts = range(0, len(words), CHUNK)
        passes = 2 if self.centre and self.learnt is None else 1
        tracked = track([*starts] * passes, self.name, total=passes * len(starts), unit="chunks")
        chunks = encoder.chunks(words, tracked)
        dim, kind = embeddings.vectors.shape[1], chosen(self.vectors, len(words))
        mean = self.learnt[1] if self.learnt else np.zeros(dim, np.float32)
        if passes == 2:
            mean = _mean(chunks, len(starts), dim)
        if self.centre:
            chunks = centred(chunks, mean)
        self._encoder, self._mean = encoder, mean if self.centre else None
        self._index = VectorIndex.build(chunks, dim, kind=kind)

    def _encode_with(self, vocabulary: Vocabulary, embeddings: Embeddings, idf: Matrix) -> TfidfEncoder:
        return TfidfEncoder(vocabulary, embeddings.vectors, idf, self.query_weights, self.stop_words)

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none where no word of the query has a vector."""
        query = self.encoder.query(text)
        if not query.any():
            return []
        rows, scores = self.index.search(query[None], k, allowed=allowed)
        return [(row, score) for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True) if row >= 0]

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False, confidences: bool = False
    ) -> Ranking:
        """`search`; its one signal is `meaning`."""
        ranking, words = super().rank(text, k, allowed=allowed), tokenize(text)
        words = words if self.encoder.stop_words else content_words(words)
        return replace(ranking, signals={"meaning": np.array(ranking.scores)}, words=words)

    def internals(self) -> Internals:
        """Word vectors and document vectors."""
        return Internals(encoder=self.encoder, vectors=self.index)

    def save(self, folder: Path) -> None:
        """Write into `<folder>/<name>/`; the vocabulary and the embeddings are the data folder's."""
        room = folder / self.name
        room.mkdir(parents=True, exist_ok=True)
        self.index.save(room)
        np.save(room / "idf.npy", self.encoder.idf)
        if self._mean is not None:
            np.save(room / MEAN, self._mean)
        (room / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Raises IndexDamaged where files are missing or do not fit each other, or were made with another config."""
        room = folder / self.name
        vocabulary, embeddings, index = Vocabulary.load(folder), Embeddings.load(folder), VectorIndex.load(room)
        try:
            idf = with_new_words(np.load(room / "idf.npy", mmap_mode="r", allow_pickle=False), folder)
            made_with = json.loads((room / "config.json").read_bytes())
        except (OSError, EOFError, ValueError) as error:
            raise IndexDamaged(f"cannot read {room} ({error}); build the index again") from error
        if embeddings.vectors.shape != (len(vocabulary), index.dim) or idf.shape != (len(vocabulary),):
            raise IndexDamaged(f"the files in {room} do not fit the vocabulary; build the index again")
        if made_with.get("centre") != self.centre:
            raise IndexDamaged(f"{room} was made with {made_with}; build the index again")
        self._encoder, self._index = self._encode_with(vocabulary, embeddings, idf), index


def _mean(chunks: Iterator[Matrix], n: int, dim: int) -> Matrix:
    """The mean of the first n chunks' rows, [dim]."""
    total, rows = np.zeros(dim), 0
    for _ in range(n):
        vectors = next(chunks)
        total += vectors.sum(axis=0, dtype=np.float64)
        rows += len(vectors)
    mean: Matrix = (total / max(1, rows)).astype(np.float32)
    return mean
