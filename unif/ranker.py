"""A learnt head as a ranker: documents and questions by its arrays, compared by cosine; torch is not needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.encoder import CHUNK
from ncs.errors import BadInput, IndexDamaged
from ncs.progress import Track, silent
from ncs.rankers import built_room
from ncs.vectors import VectorIndex
from unif.head import Head

if TYPE_CHECKING:
    from ncs.embeddings import Embeddings
    from ncs.types import Mask
    from ncs.vocabulary import WordTable

HEAD = "head"
"""Folder of the arrays: in a run of `python -m unif train`, and in the ranker's own."""


class UnifRanker:
    """Orders documents by the cosine of a learnt code side and a learnt query side.

    model: the folder of a training run. Words of documents that the head does not know count nothing, and questions
    may use all words that the head knows. Its folder holds `vectors.faiss`, `empty.npy`, `config.json` and `head/`.
    """

    def __init__(self, name: str = "unif", *, model: str | None = None) -> None:
        self.name = name
        self.config: Mapping[str, object] = {"model": model and str(model)}
        self._head: Head | None = None
        self._index: VectorIndex | None = None

    def prepare(self) -> None:
        """Open the head; raises NcsError where it cannot be had."""
        self._opened()

    def _opened(self) -> Head:
        if not self.config["model"]:
            raise BadInput(f"{self.name!r} needs a trained model; name its run: {self.name}:model=RUN")
        return Head.load(Path(str(self.config["model"])) / HEAD)

    @property
    def head(self) -> Head:
        """What `fit` or `load` opened; raises BadInput before."""
        if self._head is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        return self._head

    def fit(self, words: WordTable, embeddings: Embeddings | None = None, *, track: Track = silent) -> None:
        """Make the vectors of all documents; raises BadInput where no model is named or it has no head."""
        self._head = head = self._opened()
        code = head.code.aligned(head.vocabulary, words.vocabulary)
        starts = range(0, len(words), CHUNK)
        self._index = VectorIndex.build(
            (
                head.documents(words, start, min(start + CHUNK, len(words)), code)
                for start in track(starts, self.name, total=len(starts), unit="parts")
            ),
            code.table.shape[1],
        )

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows of the highest cosine, by (-score, row); none where the head knows no word of the question."""
        if self._index is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        query = self.head.question(text)
        if not query.any():
            return []
        rows, scores = self._index.search(query[None], k, allowed=allowed)
        return [(row, score) for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True) if row >= 0]

    def save(self, folder: Path) -> None:
        """Write into `<folder>/<name>/`: the index needs the run's folder no more."""
        if self._index is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        room = folder / self.name
        room.mkdir(parents=True, exist_ok=True)
        self._index.save(room)
        self.head.save(room / HEAD)
        (room / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Raises BadInput where it was not built, IndexDamaged where files are missing or do not fit each other."""
        room = built_room(folder, self.name)
        try:
            config = json.loads((room / "config.json").read_bytes())
            head, index = Head.load(room / HEAD), VectorIndex.load(room)
        except (OSError, ValueError, BadInput, IndexDamaged) as error:
            raise IndexDamaged(f"cannot read {room} ({_reason(error)}); build the index again") from error
        if not isinstance(config, dict) or head.code.table.shape[1] != index.dim:
            raise IndexDamaged(f"the files in {room} do not fit each other; build the index again")
        self.config, self._head, self._index = config, head, index


def _reason(error: Exception) -> str:
    """What is wrong, without the remedy for a head that stands alone."""
    return str(error).partition(";")[0]
