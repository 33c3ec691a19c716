"""The base of rankers by external text embeddings: `transformers` and `endpoint`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ncs.errors import BadInput, IndexDamaged, NcsError, check_k
from ncs.learn.tfidf import unit_rows
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, statistics_of
from ncs.storage.vectors import VectorIndex, Vectors, choose_kind

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Document, Mask, Matrix

BATCH = 1000  # documents read at a time; models have smaller batches of their own


class TextModel(Protocol):
    """Embeds texts as vectors [n, d] of any length; documents and queries may be embedded differently."""

    def documents(self, texts: Sequence[str]) -> Matrix: ...

    def queries(self, texts: Sequence[str]) -> Matrix: ...


class DenseRanker(Ranker):
    """Orders documents by the cosine of their text's vector and the question's.

    The text is the documentation comment, where the code does not hold it, and the code. `open_model` makes the model
    of a configuration; it is called for the first text. `needs` is the setting that fitting cannot do without.
    Its folder holds what VectorIndex saves and `config.json`, from which the model is opened again.
    """

    can_extend = True

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
        self._index: Vectors | None = None

    @property
    def model(self) -> TextModel:
        """The model, opened on first use; raises BadInput if none is named or it cannot be opened."""
        if not self.config.get(self.needs):
            raise BadInput(f"{self.name!r} needs a {self.needs}; name it: {self.name}:{self.needs}=...")
        if self._model is None:
            self._model = self._open_model(self.config)
        return self._model

    @property
    def index(self) -> Vectors:
        """The document vectors; raises BadInput before `fit_documents` or `load`."""
        if self._index is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit_documents or load first")
        return self._index

    def prepare(self, statistics: Path | None = None) -> None:
        """Open the model and embed one text; raises NcsError."""
        self._checked(self.model.queries(["open file"]), 1)

    def fit(self, words: WordTable, embeddings: Embeddings | None = None, *, track: Track = silent) -> None:
        """Nothing: the text is read, not the words."""

    def fit_documents(self, documents: DocumentTable, *, track: Track = silent) -> None:
        """Embed every document; raises BadInput where the index keeps no code."""
        batches = self._embedded(documents, track)
        first = next(batches)
        dim, kind = first.shape[1], choose_kind("auto", len(documents))
        self._index = Vectors([VectorIndex.build(chain([first], batches), dim, kind=kind)])

    def _embedded(self, documents: DocumentTable, track: Track) -> Iterator[Matrix]:
        starts, code = range(0, len(documents), BATCH), False
        for start in track(starts, self.name, total=len(starts), unit="batches"):
            batch = documents.documents(range(start, min(start + BATCH, len(documents))))
            code = code or any(document.code for document in batch)
            if not code:
                raise BadInput(f"this index keeps no code, which {self.name!r} reads; build it without --no-store-code")
            yield self._checked(self.model.documents([text_of(document) for document in batch]), len(batch))

    def _checked(self, vectors: Matrix, n: int) -> Matrix:
        """Normalize vectors; raises NcsError for invalid ones."""
        if vectors.ndim != 2 or len(vectors) != n or not np.isfinite(vectors).all():
            raise NcsError(f"{self.config[self.needs]} gave no vectors of numbers, one a text; ask another model")
        return unit_rows(np.ascontiguousarray(vectors, np.float32))

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none for an empty question. BadInput for k < 1."""
        check_k(k)
        if not text.strip():
            return []
        query = self._checked(self.model.queries([text]), 1)
        if query.shape[1] != self.index.dim:
            raise BadInput(
                f"{self.config[self.needs]} now gives {query.shape[1]} dimensions, the index has {self.index.dim};"
                " build the index again"
            )
        rows, scores = self.index.search(query, k, allowed=allowed)
        return [(row, score) for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True) if row >= 0]

    def save(self, statistics: Path, segment: Path) -> None:
        """The configuration, by which the model is opened again; vectors."""
        folder = statistics / self.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")
        self.index.save(segment / self.name)

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Embed the documents of a new segment only."""
        self.fit_documents(documents)
        self.index.save(segment / self.name)

    def load(self, snapshot: Snapshot) -> None:
        """The model is not opened yet. Raises BadInput where it was not built, IndexDamaged for damaged files."""
        path = statistics_of(snapshot, self.name) / "config.json"
        try:
            config = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise IndexDamaged(f"cannot read {path} ({error}); build the index again") from error
        if not isinstance(config, dict) or not config.get(self.needs):
            raise IndexDamaged(f"{path} names no {self.needs}; build the index again")
        self.config, self._model, self._index = config, None, Vectors.open(snapshot, self.name)


def text_of(document: Document) -> str:
    """The text of a document for a model: its documentation, unless it is in the code, and its code."""
    doc = " ".join(document.words.get("doc", ()))
    first_line = doc.strip().partition("\n")[0]
    return document.code if first_line in document.code else f"{doc}\n{document.code}"
