"""The ranker `unif`: documents and queries encoded by a learned head in numpy, compared by cosine.

As a signal of the default ranker its values are z-scores, independent of how the head was trained: the level and spread
of cosines differ between heads. With the mean m and the covariance C of the document vectors, cosines to a unit query q
have the mean q . m and the variance q C q.

    z(d) = (q . d - q . m) / sqrt(q C q)

A head with a translation (ncs.learn.translation) also scores single query words; its z-scores are added.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, IndexDamaged, check_k, reading
from ncs.files import read_json, save_array
from ncs.learn.heads import NAME, Head, tokens_of_words
from ncs.learn.tfidf import CHUNK, center
from ncs.learn.translation import TranslatedFunctions, impacts_of, impacts_without, save_impacts
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, batches_with_code, nearest, read_config, statistics_of
from ncs.storage.arrays import distinct, load_array
from ncs.storage.vectors import VectorIndex, Vectors, choose_kind, to_temporary_file
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Document, Field, Mask, Matrix, Rows, Scores

MEAN, LENGTH = "mean.npy", "length.json"
"""The mean vector of all documents, and the mean length of functions for a head with a translation."""
TRANSLATED, SAMPLE = 1_000, 2_048
"""Hits by vectors that a head with a translation rescores, and documents sampled for mean and covariance."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean [d] and covariance [d, d] of the document vectors."""

    mean: Scores
    covariance: Scores

    @classmethod
    def of(cls, index: Vectors) -> Spread:
        """The spread of SAMPLE evenly spaced vectors."""
        rows = index.nonzero_rows()
        at = distinct(np.linspace(0, max(0, len(rows) - 1), min(SAMPLE, len(rows))).astype(np.int64))
        vectors = index.vectors(rows[at]).astype(np.float64)
        mean = vectors.sum(axis=0) / max(1, len(vectors))
        return cls(mean, (vectors - mean).T @ (vectors - mean) / max(1, len(vectors)))

    def z_scores(self, query: Matrix, cosines: Scores) -> Scores:
        """Z-scores of cosines to a query."""
        spread = math.sqrt(max(0.0, float(query @ self.covariance @ query)))
        if spread < 1e-9:
            return np.zeros(len(cosines))
        return (cosines - float(query @ self.mean)) / spread


class UnifRanker(Ranker):
    """Orders documents by the cosine of a learned code vector and a learned query vector.

    head: the folder of a head or of its training run; the index keeps a copy. A head that reads source needs stored
    code. centre: whether to subtract the mean of all document vectors; None: as the head was trained.
    """

    head: Head
    vectors: Vectors

    def __init__(self, name: str = "unif", *, head: str | None = None, centre: bool | None = None) -> None:
        self.name = name
        self.config = {"head": head and str(head), "centre": centre}
        self._copy: Path | None = None
        self._mean: Matrix | None = None
        self.translated: TranslatedFunctions | None = None
        """Scores query words one by one, for a head with a translation."""
        self._tokens: tuple[WordTable, Any] | None = None

    @cached_property
    def spread(self) -> Spread:
        """The spread of the document vectors."""
        return Spread.of(self.vectors)

    def prepare(self, statistics: Path | None = None) -> None:
        """Open the head, or the copy in an index if its folder is gone; raises NcsError."""
        try:
            if statistics and read_config(statistics / self.name).get("head") == self.config["head"]:
                self._copy = statistics / self.name / NAME
        except IndexDamaged:
            pass
        self._open()

    def _open(self) -> Head:
        if not self.config["head"]:
            raise BadInput(f"{self.name!r} needs a trained head; name its folder: {self.name}:head=HEAD")
        folder = Path(str(self.config["head"]))
        return Head.load(self._copy if self._copy and not folder.exists() else folder)

    def query_vector(self, text: str) -> Matrix:
        """The unit vector [d] of a query, zeros without known words."""
        return np.asarray(self.head.encode_queries([text])[0])

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none without known words.

        A head with a translation reorders the best TRANSLATED of them by z-scores.
        """
        check_k(k)
        query = self.query_vector(text)
        if self.translated is None:
            return nearest(self.vectors, query, k, allowed=allowed)
        hits = nearest(self.vectors, query, max(k, TRANSLATED), allowed=allowed)
        rows = np.array([row for row, _ in hits], np.int64)
        z_scores = self.z_scores(query, rows, text)
        order = np.lexsort((rows, -z_scores))[:k]
        return list(zip(rows[order].tolist(), z_scores[order].tolist(), strict=True))

    def z_scores(self, query: Matrix, rows: Rows, text: str) -> Scores:
        """The z-scores of these rows, [len(rows)]; query: the vector of the text."""
        z_scores = self.spread.z_scores(query, self.vectors.similarities(query, rows).astype(np.float64))
        if self.translated is None:
            return z_scores
        return z_scores + self.translated.z_scores(self.head.query_ids(text), self.translated.rows(rows))

    def ablated_z_score(self, text: str, words: WordTable, row: int, document: Document, field: Field) -> float:
        """The z-score of a document without one field."""
        query = self.query_vector(text)
        cosine = float(self.ablated_vector(words, row, document, field) @ query)
        z_score = float(self.spread.z_scores(query, np.array([cosine]))[0])
        if self.translated:
            impacts = impacts_without(words, row, self._tokens_of(words), self.translated.mean, field)
            z_score += float(self.translated.z_scores(self.head.query_ids(text), impacts)[0])
        return z_score

    def ablated_vector(self, words: WordTable, row: int, document: Document, field: Field) -> Matrix:
        """The unit vector [d] of a document without one field; of a head that reads source, without its name only."""
        code = self.head.code
        if self.head.reads == "source":
            source = document.code.replace(document.name, "") if field == "name" and document.name else document.code
            vectors = self.head.encode_sources([(source, document.language)])
        elif self.translated:
            vectors = code.bags(impacts_without(words, row, self._tokens_of(words), self.translated.mean, field))
        else:
            ids = [id for name in NCS_FIELDS if name != field for id in words.ids_of(row, name).tolist()]
            vectors = code.vectors([code.tokens.ids([words.vocabulary.word(id) for id in ids])])
        return np.asarray(self._center(vectors)[0])

    def _tokens_of(self, words: WordTable) -> Any:
        """The head's tokens of an index's words, cached."""
        if self._tokens is None or self._tokens[0] is not words:
            self._tokens = words, tokens_of_words(self.head.code, words.vocabulary)
        return self._tokens[1]

    def _center(self, vectors: Matrix) -> Matrix:
        return vectors if self._mean is None else center(vectors, self._mean)

    def fit(
        self, words: WordTable, embeddings: Embeddings | None, documents: DocumentTable, *, track: Track = silent
    ) -> None:
        """Encode all documents; raises BadInput without a head, and for one that reads source without code."""
        self.head = self._open()
        if self.head.reads == "source":
            self._index_centered(self._encode_sources(documents, track), len(documents))
        else:
            self._index_centered(self._encode_words(words, track=track), len(words))

    def _encode_words(self, words: WordTable, mean: float | None = None, *, track: Track = silent) -> Iterator[Matrix]:
        """Vectors of documents, and impacts for a head with a translation. mean: mean length, by default theirs."""
        head, starts = self.head, range(0, len(words), CHUNK)
        tokens_of = tokens_of_words(head.code, words.vocabulary)
        impacts = None
        if head.translation:
            impacts, mean = impacts_of(words, tokens_of, mean)
            self.translated = TranslatedFunctions(head.translation, [impacts], mean)
        for start in track(starts, self.name, total=len(starts), unit="parts"):
            if impacts is not None:
                yield head.code.bags(impacts[start : start + CHUNK])
            else:
                yield head.encode_documents(words, start, min(start + CHUNK, len(words)), tokens_of)

    def _encode_sources(self, documents: DocumentTable, track: Track) -> Iterator[Matrix]:
        for batch in batches_with_code(documents, self.name, track):
            yield self.head.encode_sources([(document.code, document.language) for document in batch])

    def _index_centered(self, vectors: Iterator[Matrix], n: int) -> None:
        """Index vectors [n, d], spooled to a temporary file until their mean is known."""
        dim, centre = self.head.code.dim, self.config["centre"]
        whole = to_temporary_file(vectors, dim, np.float32)
        parts = [whole[start : start + CHUNK] for start in range(0, n, CHUNK)]
        if n and (self.head.about.get("centre") if centre is None else centre):
            total = sum((part.sum(axis=0, dtype=np.float64) for part in parts), np.zeros(dim))
            self._mean = (total / n).astype(np.float32)
        self._index(map(np.asarray, parts), n)

    def _index(self, vectors: Iterator[Matrix], n: int) -> None:
        kind, dim = choose_kind("auto", n), self.head.code.dim
        self.vectors = Vectors([VectorIndex.build(map(self._center, vectors), dim, kind=kind)])

    def save(self, statistics: Path, segment: Path) -> None:
        """Head, means and configuration; for the segment, vectors and the impacts of a translation."""
        folder = self._save_config(statistics)
        self.head.save(folder / NAME)
        if self._mean is not None:
            save_array(folder / MEAN, self._mean)
        if self.translated is not None:
            (folder / LENGTH).write_text(json.dumps(self.translated.mean) + "\n", encoding="utf-8")
        self._save_segment(segment)

    def _save_segment(self, segment: Path) -> None:
        self.vectors.save(segment / self.name)
        if self.translated is not None:
            save_impacts(segment / self.name, self.translated.impacts[0], self.translated.mean)

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Encode the documents of a new segment with the index's copy of the head."""
        self._load_statistics(statistics / self.name)
        if self.head.reads == "source":
            self._index(self._encode_sources(documents, silent), len(documents))
        else:
            length = read_json(statistics / self.name / LENGTH) if self.head.translation else None
            self._index(self._encode_words(words, length), len(words))
        self._save_segment(segment)

    def load(self, snapshot: Snapshot) -> None:
        folder = statistics_of(snapshot, self.name)
        self._load_statistics(folder)
        with reading(folder):
            self.vectors = Vectors.open(snapshot, self.name)
            if self.head.code.dim != self.vectors.dim:
                raise ValueError("its files do not fit each other")
            if self.head.translation:
                folders = [segment.path / self.name for segment in snapshot.segments]
                self.translated = TranslatedFunctions.load(folders, self.head.translation)

    def _load_statistics(self, folder: Path) -> None:
        self.config = read_config(folder)
        with reading(folder):
            self.head = Head.load(folder / NAME, whole=False)
            self._mean = load_array(folder / MEAN, np.float32) if (folder / MEAN).is_file() else None
            if self._mean is not None and len(self._mean) != self.head.code.dim:
                raise ValueError("its files do not fit each other")
