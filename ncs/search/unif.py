"""The ranker `unif`: documents and queries encoded by a learned head in numpy, compared by cosine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, IndexDamaged, check_k
from ncs.learn.heads import NAME, Head, tokens_of_words
from ncs.learn.tfidf import CHUNK, center
from ncs.learn.translation import TranslatedFunctions, impacts_of, impacts_without, save_impacts
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, statistics_of
from ncs.search.signals.head import HeadSignal
from ncs.storage.vectors import VectorIndex, Vectors, choose_kind
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Document, Field, Mask, Matrix

    Scores = NDArray[np.float64]

MEAN, LENGTH = "mean.npy", "length.json"
"""The mean vector of all documents, and the mean length of functions for a head with a translation."""
READ = 1_000
"""Documents read at a time."""
TRANSLATED = 1_000
"""Hits by vectors that a head with a translation rescores word by word."""


class UnifRanker(Ranker):
    """Orders documents by the cosine of a learned code vector and a learned query vector.

    head: the folder of a head, or of the training run that made it. Words of documents that the head does not know
    are ignored. A head that reads source needs an index that stores code.
    centre: subtract the mean of all document vectors; None: as the head was trained.
    The index keeps a copy of the head.
    """

    can_extend = True

    def __init__(self, name: str = "unif", *, head: str | None = None, centre: bool | None = None) -> None:
        self.name = name
        self.config: Mapping[str, object] = {"head": head and str(head), "centre": centre}
        self._copy: Path | None = None
        self._head: Head | None = None
        self._mean: Matrix | None = None
        self._translated: TranslatedFunctions | None = None
        self._signal: HeadSignal | None = None
        self._tokens: tuple[WordTable, Any] | None = None
        self._vectors: Vectors | None = None

    def prepare(self, statistics: Path | None = None) -> None:
        """Open the head, or the copy in an index if its folder is gone; raises NcsError."""
        folder = None if statistics is None else statistics / self.name
        try:
            config = json.loads((folder / "config.json").read_bytes()) if folder else None
        except (OSError, ValueError):
            config = None
        if folder and isinstance(config, dict) and config.get("head") == self.config["head"]:
            self._copy = folder / NAME
        self._open()

    def _open(self) -> Head:
        if not self.config["head"]:
            raise BadInput(f"{self.name!r} needs a trained head; name its folder: {self.name}:head=HEAD")
        folder = Path(str(self.config["head"]))
        return Head.load(self._copy if self._copy and not folder.exists() else folder)

    @property
    def head(self) -> Head:
        """The head; raises BadInput before `fit` or `load`."""
        if self._head is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        return self._head

    @property
    def vectors(self) -> Vectors:
        """Of the documents; raises BadInput before `fit` or `load`."""
        if self._vectors is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        return self._vectors

    def query_vector(self, text: str) -> Matrix:
        """The unit vector [d] of a query, zeros without known words."""
        return self.head.encode_query(text)

    def ablated_vectors(
        self, words: WordTable, rows: Sequence[int], documents: Sequence[Document], field: Field
    ) -> Matrix:
        """Unit vectors [n, d] of these documents, one field of each left out.

        For a head that reads source, only the name can be left out, at all its occurrences.
        """
        head = self.head
        if head.reads == "source":
            names = [document.name if field == "name" else "" for document in documents]
            codes = [d.code.replace(name, "") if name else d.code for d, name in zip(documents, names, strict=True)]
            return self._center(head.encode_sources([(c, d.language) for c, d in zip(codes, documents, strict=True)]))
        if self._translated:
            impacts = impacts_without(words, rows, self._tokens_of(words), self._translated.mean, field)
            return self._center(head.code.bags(impacts))
        fields = [name for name in NCS_FIELDS if name != field]
        field_words = [
            [words.vocabulary.word(id) for f in fields for id in words.ids_of(row, f).tolist()] for row in rows
        ]
        return self._center(head.code.vectors([head.code.tokens.ids(each) for each in field_words]))

    @property
    def translates(self) -> bool:
        """Whether the head also scores query words one by one."""
        return self._translated is not None

    def translation_z_scores(self, text: str, rows: NDArray[np.int64]) -> Scores | None:
        """Z-scores of these rows by single query words; None for a head without a translation."""
        return None if self._translated is None else self._translated.z_scores(self.head.query_ids(text), rows)

    def ablated_translation_z_score(self, text: str, words: WordTable, row: int, field: Field) -> float:
        """The same for one document without one field; 0 for a head without a translation."""
        if self._translated is None:
            return 0.0
        ids, tokens_of = self.head.query_ids(text), self._tokens_of(words)
        return self._translated.ablated_z_score(ids, words, row, field, tokens_of)

    def _tokens_of(self, words: WordTable) -> Any:
        """The head's tokens of an index's words, cached."""
        if self._tokens is None or self._tokens[0] is not words:
            self._tokens = words, tokens_of_words(self.head.code, words.vocabulary)
        return self._tokens[1]

    def _center(self, vectors: Matrix) -> Matrix:
        return vectors if self._mean is None else next(center(iter([vectors]), self._mean))

    def fit(self, words: WordTable, embeddings: Embeddings | None = None, *, track: Track = silent) -> None:
        """Encode all documents if the head reads words; raises BadInput without a head."""
        self._head = head = self._open()
        self._signal = self._mean = self._translated = None
        if head.reads == "fields":
            self._keep(self._encode_words(words, track=track), len(words))

    def _encode_words(self, words: WordTable, mean: float | None = None, *, track: Track = silent) -> Iterator[Matrix]:
        """Vectors of documents, and impacts for a head with a translation; mean: mean length, None: of these
        documents.
        """
        head, starts = self.head, range(0, len(words), CHUNK)
        tokens_of = tokens_of_words(head.code, words.vocabulary)
        impacts = None
        if head.translation:
            impacts, mean = impacts_of(words, tokens_of, mean)
            self._translated = TranslatedFunctions.of(head.translation, [impacts], mean)
        for start in track(starts, self.name, total=len(starts), unit="parts"):
            if impacts is not None:
                yield head.code.bags(impacts[start : start + CHUNK])
            else:
                yield head.encode_documents(words, start, min(start + CHUNK, len(words)), tokens_of)

    def fit_documents(self, documents: DocumentTable, *, track: Track = silent) -> None:
        """Encode all documents if the head reads source; raises BadInput for an index without code."""
        if self.head.reads == "source":
            self._keep(self._encode_sources(documents, track), len(documents))

    def _encode_sources(self, table: DocumentTable, track: Track) -> Iterator[Matrix]:
        starts, code = range(0, len(table), READ), False
        for start in track(starts, self.name, total=len(starts), unit="parts"):
            documents = table.documents(range(start, min(start + READ, len(table))))
            code = code or any(document.code for document in documents)
            if not code:
                raise BadInput(f"{self.name!r} needs code, which this index lacks; build it without --no-store-code")
            yield self.head.encode_sources([(document.code, document.language) for document in documents])

    def _keep(self, vectors: Iterator[Matrix], n: int) -> None:
        """Index vectors [n, d], spooled to a temporary file until their mean is known."""
        dim, centre = self.head.code.dim, self.config["centre"]
        with TemporaryFile(prefix="ncs-unif-") as file:
            for part in vectors:
                file.write(np.ascontiguousarray(part, np.float32).tobytes())
            file.flush()
            whole = np.memmap(file, np.float32, "r", shape=(n, dim)) if n else np.zeros((0, dim), np.float32)
            parts = [whole[start : start + CHUNK] for start in range(0, n, CHUNK)]
            if n and (self.head.about.get("centre") if centre is None else centre):
                total = sum((part.sum(axis=0, dtype=np.float64) for part in parts), np.zeros(dim))
                self._mean = (total / n).astype(np.float32)
            self._index(map(np.asarray, parts), n)

    def _index(self, vectors: Iterator[Matrix], n: int) -> None:
        kind, dim = choose_kind("auto", n), self.head.code.dim
        self._vectors = Vectors([VectorIndex.build(map(self._center, vectors), dim, kind=kind)])

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none without known words.

        A head with a translation reorders the best TRANSLATED of them by both standings.
        """
        vectors = self.vectors
        check_k(k)
        query = self.query_vector(text)
        if not query.any():
            return []
        rows, scores = vectors.search(query[None], max(k, TRANSLATED) if self.translates else k, allowed=allowed)
        rows, scores = rows[0][rows[0] >= 0], scores[0][rows[0] >= 0]
        if not self.translates:
            return list(zip(rows.tolist(), scores.tolist(), strict=True))
        self._signal = self._signal or HeadSignal.of(self)
        z_scores = self._signal.z_scores(query, rows, text)
        order = np.lexsort((rows, -z_scores))[:k]
        return list(zip(rows[order].tolist(), z_scores[order].tolist(), strict=True))

    def save(self, statistics: Path, segment: Path) -> None:
        """Write head, means and configuration; for the segment, vectors and the impacts of a translation."""
        folder = statistics / self.name
        folder.mkdir(parents=True, exist_ok=True)
        self.head.save(folder / NAME)
        if self._mean is not None:
            np.save(folder / MEAN, self._mean)
        if self._translated is not None:
            (folder / LENGTH).write_text(json.dumps(self._translated.mean) + "\n", encoding="utf-8")
        (folder / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")
        self._save_segment(segment)

    def _save_segment(self, segment: Path) -> None:
        self.vectors.save(segment / self.name)
        if self._translated is not None:
            save_impacts(segment / self.name, self._translated.impacts[0], self._translated.mean)

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Encode the documents of a new segment with the index's copy of the head."""
        self.config, self._head, self._mean = self._load_statistics(statistics / self.name)
        if self.head.reads == "source":
            self._index(self._encode_sources(documents, silent), len(documents))
        else:
            length = json.loads((statistics / self.name / LENGTH).read_bytes()) if self.head.translation else None
            self._index(self._encode_words(words, length), len(words))
        self._save_segment(segment)

    def _load_statistics(self, folder: Path) -> tuple[Mapping[str, object], Head, Matrix | None]:
        try:
            config, head = json.loads((folder / "config.json").read_bytes()), Head.load(folder / NAME)
            mean = np.load(folder / MEAN, allow_pickle=False) if (folder / MEAN).is_file() else None
        except (OSError, ValueError, KeyError, TypeError, BadInput, IndexDamaged) as error:
            raise _damaged(folder, error) from error
        if not isinstance(config, dict) or (mean is not None and len(mean) != head.code.dim):
            raise IndexDamaged(f"the files in {folder} do not fit each other; build the index again")
        return config, head, mean

    def load(self, snapshot: Snapshot) -> None:
        """Raises BadInput if it was not built, IndexDamaged for damaged files."""
        folder = statistics_of(snapshot, self.name)
        self.config, self._head, self._mean = self._load_statistics(folder)
        self._signal = self._translated = None
        try:
            self._vectors = Vectors.open(snapshot, self.name)
            if self._head.translation:
                folders = [segment.path / self.name for segment in snapshot.segments]
                self._translated = TranslatedFunctions.load(folders, self._head.translation)
        except (OSError, ValueError, KeyError, TypeError, IndexDamaged) as error:
            raise _damaged(folder, error) from error
        if self._head.code.dim != self._vectors.dim:
            raise IndexDamaged(f"the files in {folder} do not fit each other; build the index again")


def _damaged(folder: Path, error: Exception) -> IndexDamaged:
    """IndexDamaged without the remedy for a separate head."""
    return IndexDamaged(f"cannot read {folder} ({str(error).partition(';')[0]}); build the index again")
