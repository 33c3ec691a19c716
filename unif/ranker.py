"""A learnt head as a ranker: documents and questions by its arrays, compared by cosine; torch is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.learn.tfidf import CHUNK, centred
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, built_room
from ncs.search.signals.head import HeadSignal
from ncs.storage.vectors import VectorIndex, chosen
from ncs.types import NCS_FIELDS
from unif.head import NAME, Head, opened, tokens_of
from unif.impacts import document_impacts, table_impacts
from unif.translated import Translated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import Store
    from ncs.storage.words import WordTable
    from ncs.types import Document, Field, Mask, Matrix

    Scores = NDArray[np.float64]

MEAN = "mean.npy"
READ = 1_000
"""Documents read from the store at a time."""
CLOSER = 1_000
"""The best by their vectors that a head which translates looks at word by word."""


class UnifRanker(Ranker):
    """Orders documents by the cosine of a learnt code side and a learnt query side.

    head: the folder of a head, or of the training run that made it. Words of documents that the head does not know
    count nothing, and questions may use all words that it knows. A head over the source needs an index that keeps code.
    centre: take the mean of all document vectors out of each, as the head was trained if it is not said.
    Its folder holds what VectorIndex saves, `mean.npy` if centred, `config.json` and `head/`: the index needs the
    given folder no more.
    """

    def __init__(self, name: str = "unif", *, head: str | None = None, centre: bool | None = None) -> None:
        self.name, self.centre = name, bool(centre)
        self._asked_centre = centre
        self.config: Mapping[str, object] = {"head": head and str(head), "centre": centre}
        self._mean: Matrix | None = None
        self._copy: Path | None = None
        self._head: Head | None = None
        self._closer: Translated | None = None
        self._signal: HeadSignal | None = None
        self._known: tuple[WordTable, Any] | None = None
        self._index: VectorIndex | None = None

    def prepare(self) -> None:
        """Open the head; raises NcsError where it cannot be had."""
        self._opened()

    def _opened(self) -> Head:
        if not self.config["head"]:
            raise BadInput(f"{self.name!r} needs a trained head; name its folder: {self.name}:head=HEAD")
        given = Path(str(self.config["head"]))
        return opened(self._copy if self._copy and not given.exists() else given)

    def take_over(self, data: Path) -> None:
        """Where the given folder is gone, the head is the one that this data folder's index keeps of it."""
        room = data / self.name
        try:
            known = json.loads((room / "config.json").read_bytes())
        except (OSError, ValueError):
            return
        if isinstance(known, dict) and known.get("head") == self.config["head"]:
            self._copy = room / NAME

    @property
    def head(self) -> Head:
        """What `fit` or `load` opened; raises BadInput before."""
        if self._head is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        return self._head

    @property
    def vectors(self) -> VectorIndex:
        """Of the documents; raises BadInput before `fit` or `load`."""
        if self._index is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        return self._index

    @property
    def taught(self) -> bool:
        """Whether the head learnt from what a ranker answers."""
        return bool(self.head.about.get("teacher"))

    def question(self, text: str) -> Matrix:
        """The unit vector [d] of a question, zeros where the head knows no word of it."""
        return self.head.question(text)

    def without(self, words: WordTable, rows: Sequence[int], documents: Sequence[Document], field: Field) -> Matrix:
        """Unit vectors [n, d] of these documents, one field of each left out; of a source its name wherever it
        stands, while comments it has none."""
        head = self.head
        if head.reads == "source":
            gone = [document.name if field == "name" else "" for document in documents]
            pairs = zip(documents, gone, strict=True)
            programs = [(d.code.replace(name, "") if name else d.code, d.language) for d, name in pairs]
            return self._moved(head.sources(programs))
        if self._closer:
            mapped = self._tokens_of(words)
            return self._moved(head.code.bags(document_impacts(words, rows, mapped, self._closer.mean, field)))
        kept = [name for name in NCS_FIELDS if name != field]
        spelled = [[words.vocabulary.word(int(id)) for name in kept for id in words.ids_of(row, name)] for row in rows]
        ids = [[id for word in each for id in head.code.tokens.ids([word])] for each in spelled]
        ids = [list(dict.fromkeys(each)) for each in ids] if head.about.get("unique") else ids
        return self._moved(head.code.vectors(ids))

    @property
    def translates(self) -> bool:
        """Whether it looks for the words of a question one by one too."""
        return self._closer is not None

    def closer(self, text: str, rows: NDArray[np.int64]) -> Scores | None:
        """How far these rows stand out for the question's words one by one; None of a head that does not translate."""
        return None if self._closer is None else self._closer.standing(self.head.asked(text), rows)

    def closer_without(self, text: str, words: WordTable, row: int, field: Field) -> float:
        """The same of one function, one field of it left out; 0 of a head that does not translate."""
        if self._closer is None:
            return 0.0
        mapped = self._tokens_of(words)
        return self._closer.without(self.head.asked(text), words, row, field, mapped)

    def _tokens_of(self, words: WordTable) -> Any:
        """The head's tokens of an index's words, found once for all questions of its calibration."""
        if self._known is None or self._known[0] is not words:
            self._known = words, tokens_of(self.head.code, words.vocabulary)
        return self._known[1]

    def _moved(self, vectors: Matrix) -> Matrix:
        """With the mean taken out, where it is."""
        return vectors if self._mean is None else next(centred(iter([vectors]), self._mean))

    def _keep(self, vectors: Iterator[Matrix], shape: tuple[int, int]) -> None:
        """Index vectors [n, d], which lie in a file meanwhile."""
        dim, kind = shape[1], chosen("auto", shape[0])
        with TemporaryFile(prefix="ncs-unif-") as file:
            for part in vectors:
                file.write(np.ascontiguousarray(part, np.float32).tobytes())
            file.flush()
            kept = np.memmap(file, np.float32, "r", shape=shape) if shape[0] else np.zeros(shape, np.float32)
            parts = [np.arange(start, min(start + CHUNK, len(kept))) for start in range(0, len(kept), CHUNK)]
            if self.centre and len(kept):
                total = sum((kept[part].sum(axis=0, dtype=np.float64) for part in parts), np.zeros(dim))
                self._mean = (total / len(kept)).astype(np.float32)
            self._index = VectorIndex.build((self._moved(kept[part]) for part in parts), dim, kind=kind)

    def fit(self, words: WordTable, embeddings: Embeddings | None = None, *, track: Track = silent) -> None:
        """Make the vectors of all documents, where the head reads their words; BadInput where there is no head."""
        self._head = head = self._opened()
        self._signal = None
        if self._asked_centre is None:
            self.centre = bool(head.about.get("centre", False))
        if head.reads == "source":
            return
        mapped = tokens_of(head.code, words.vocabulary)
        starts = range(0, len(words), CHUNK)
        parts = track(starts, self.name, total=len(starts), unit="parts")
        if head.translation:
            impacts, mean = table_impacts(words, mapped)
            self._closer = Translated.of(head.translation, impacts, mean)
            vectors = (head.code.bags(impacts[start : start + CHUNK]) for start in parts)
        else:
            vectors = (head.documents(words, start, min(start + CHUNK, len(words)), mapped) for start in parts)
        self._keep(vectors, (len(words), head.code.dim))

    def fit_documents(self, store: Store, *, track: Track = silent) -> None:
        """Make the vectors where the head reads the source; BadInput where the index keeps none."""
        if self.head.reads == "source":
            self._keep(self._of_sources(store, track), (len(store), self.head.code.dim))

    def _of_sources(self, store: Store, track: Track) -> Iterator[Matrix]:
        starts, code = range(0, len(store), READ), False
        for start in track(starts, self.name, total=len(starts), unit="parts"):
            documents = store.documents(range(start, min(start + READ, len(store))))
            code = code or any(document.code for document in documents)
            if not code:
                raise BadInput(f"this index keeps no code, which {self.name!r} reads; build it without --no-store-code")
            yield self.head.sources([(document.code, document.language) for document in documents])

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none where the head knows no word of the question.

        A head that translates orders the best CLOSER of them again, by how far both stand out together.
        """
        vectors = self.vectors
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        query = self.head.question(text)
        if not query.any():
            return []
        rows, scores = vectors.search(query[None], max(k, CLOSER) if self._closer else k, allowed=allowed)
        if self._closer:
            return self._ordered(text, query, rows[0][rows[0] >= 0])[:k]
        return [(row, score) for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True) if row >= 0]

    def _ordered(self, text: str, query: Matrix, rows: NDArray[np.int64]) -> list[tuple[int, float]]:
        self._signal = self._signal or HeadSignal.of(self)
        standing = self._signal.standing(query, rows, text)
        order = np.lexsort((rows, -standing))
        return list(zip(rows[order].tolist(), standing[order].tolist(), strict=True))

    def save(self, folder: Path) -> None:
        """Write into `<folder>/<name>/`."""
        if self._index is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        room = folder / self.name
        room.mkdir(parents=True, exist_ok=True)
        self._index.save(room)
        self.head.save(room / NAME)
        if self._mean is not None:
            np.save(room / MEAN, self._mean)
        if self._closer is not None:
            self._closer.save(room)
        (room / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Raises BadInput where it was not built, IndexDamaged where files are missing or do not fit each other."""
        room = built_room(folder, self.name)
        try:
            config = json.loads((room / "config.json").read_bytes())
            head, index = Head.load(room / NAME), VectorIndex.load(room)
            mean = np.load(room / MEAN, allow_pickle=False) if (room / MEAN).is_file() else None
            closer = Translated.load(room, head.translation) if head.translation else None
        except (OSError, ValueError, KeyError, TypeError, BadInput, IndexDamaged) as error:
            raise IndexDamaged(f"cannot read {room} ({_reason(error)}); build the index again") from error
        if not isinstance(config, dict) or head.code.dim != index.dim or (mean is not None and len(mean) != index.dim):
            raise IndexDamaged(f"the files in {room} do not fit each other; build the index again")
        self.config, self._head, self._index = config, head, index
        self._mean, self.centre = mean, mean is not None
        self._closer, self._signal = closer, None


def _reason(error: Exception) -> str:
    """What is wrong, without the remedy for a head that stands alone."""
    return str(error).partition(";")[0]
