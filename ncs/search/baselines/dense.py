"""The base of rankers by external text embeddings: `transformers` and `endpoint`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from ncs.errors import BadInput, NcsError, check_k
from ncs.learn.tfidf import unit_rows
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, batches_with_code, nearest, read_config, statistics_of
from ncs.storage.vectors import VectorIndex, Vectors, choose_kind

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Document, Mask, Matrix


Kind: TypeAlias = Literal["document", "query"]


class TextModel(Protocol):
    """Embeds texts as vectors [n, d] of any length; documents and queries may be embedded differently."""

    def embed(self, texts: Sequence[str], kind: Kind) -> Matrix: ...


class DenseRanker(Ranker):
    """Orders documents by the cosine of their text's vector and the query's.

    open_model: opens the model of a configuration. needs: the required setting.
    """

    _vectors: Vectors

    def __init__(
        self,
        name: str,
        config: Mapping[str, object],
        open_model: Callable[[Mapping[str, object]], TextModel],
        needs: str,
    ) -> None:
        self.name, self.config, self.needs = name, config, needs
        self._open_model = open_model
        self._model: TextModel | None = None

    @property
    def model(self) -> TextModel:
        """The model, opened on first use; raises BadInput if none is named or it cannot be opened."""
        if not self.config.get(self.needs):
            raise BadInput(f"{self.name!r} needs a {self.needs}; name it: {self.name}:{self.needs}=...")
        self._model = self._model or self._open_model(self.config)
        return self._model

    def prepare(self, statistics: Path | None = None) -> None:
        """Open the model and embed one text; raises NcsError."""
        self._check_vectors(self.model.embed(["open file"], "query"), 1)

    def fit(
        self, words: WordTable, embeddings: Embeddings | None, documents: DocumentTable, *, track: Track = silent
    ) -> None:
        """Embed every document; raises BadInput if the index keeps no code."""
        batches = self._embed_documents(documents, track)
        first = next(batches)
        kind = choose_kind("auto", len(documents))
        self._vectors = Vectors([VectorIndex.build(chain([first], batches), first.shape[1], kind=kind)])

    def _embed_documents(self, documents: DocumentTable, track: Track) -> Iterator[Matrix]:
        for batch in batches_with_code(documents, self.name, track):
            texts = [text_of(document) for document in batch]
            yield self._check_vectors(self.model.embed(texts, "document"), len(batch))

    def _check_vectors(self, vectors: Matrix, n: int) -> Matrix:
        """Normalize vectors; raises NcsError for invalid ones."""
        if vectors.ndim != 2 or len(vectors) != n or not np.isfinite(vectors).all():
            raise NcsError(f"{self.config[self.needs]} gave no vectors of numbers, one a text; ask another model")
        return unit_rows(np.ascontiguousarray(vectors, np.float32))

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none for an empty query. BadInput for k < 1."""
        check_k(k)
        if not text.strip():
            return []
        query, vectors = self._check_vectors(self.model.embed([text], "query"), 1)[0], self._vectors
        if len(query) != vectors.dim:
            raise BadInput(
                f"{self.config[self.needs]} now gives {len(query)} dimensions, the index has {vectors.dim};"
                " build the index again"
            )
        return nearest(vectors, query, k, allowed=allowed)

    def save(self, statistics: Path, segment: Path) -> None:
        """The configuration, by which the model is opened again; vectors."""
        self._save_config(statistics)
        self._vectors.save(segment / self.name)

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Embed the documents of a new segment only."""
        self.fit(words, None, documents)
        self._vectors.save(segment / self.name)

    def load(self, snapshot: Snapshot) -> None:
        """The model is not opened yet. Raises BadInput if it was not built, IndexDamaged for damaged files."""
        self.config = read_config(statistics_of(snapshot, self.name))
        self._model, self._vectors = None, Vectors.open(snapshot, self.name)


def text_of(document: Document) -> str:
    """The text of a document for a model: its documentation, unless it is in the code, and its code."""
    doc = " ".join(document.words.get("doc", ()))
    first_line = doc.strip().partition("\n")[0]
    return document.code if first_line in document.code else f"{doc}\n{document.code}"
