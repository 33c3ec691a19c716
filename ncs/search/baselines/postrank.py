"""NCS's post-ranking (Sachdev et al. 2018): a ranker's first 500 documents sorted by what they are and contain."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, IndexDamaged, check_k
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, create_part, save_part, statistics_of
from ncs.storage.documents import Documents
from ncs.storage.words import Words
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordReader, WordTable
    from ncs.types import Document, Mask

DEPTH = 500
"""Number of documents that are sorted, as published."""
LEAST_LINES, LEAST_TOKENS = 3, 10
_TYPED = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Facts:
    """The values behind the six keys, one number per document, in the order of the ranking."""

    lines: NDArray[np.int64]
    tokens: NDArray[np.int64]
    words: NDArray[np.int64]
    """Number of the query's words that it contains."""
    spellings: NDArray[np.int64]
    """Number of the query's tokens that it contains as typed, not split."""


def grades(facts: Facts, n: int, m: int) -> NDArray[np.int64]:
    """The six keys of each document as one number from 0 to 63; a more important key is a higher bit.

    From the least important one: at least 3 lines; at least 10 tokens; n-1 of the query's n words; all n; m-1 of
    its m tokens as typed; all m (Sachdev et al. 2018, post-ranking). A query without words or tokens gives all
    documents the same keys.
    """
    keys = (
        facts.lines >= LEAST_LINES,
        facts.tokens >= LEAST_TOKENS,
        facts.words >= n - 1,
        facts.words >= n,
        facts.spellings >= m - 1,
        facts.spellings >= m,
    )
    weights = 1 << np.arange(len(keys))
    graded: NDArray[np.int64] = np.stack(keys, axis=1).astype(np.int64) @ weights
    return graded


def postrank(rows: NDArray[np.int64], grade: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows by grade, highest first; rows of one grade keep the order of the ranking.

    >>> postrank(np.array([7, 2, 9, 4]), np.array([1, 63, 1, 63])).tolist()
    [2, 4, 7, 9]
    """
    return rows[np.argsort(-grade, kind="stable")]


class PostrankRanker(Ranker):
    """The first `depth` documents of `part`, sorted by the six keys of `grades`; the others follow.

    The words of a query and of a document are those NCS reads; a document's tokens as typed are what is in the same
    fields between white space and punctuation, case aside. With stop_words=False a query's stop words count for
    neither: few functions contain `how` and `do`. A score is the grade (0 to 63) plus 1 / (1 + rank before).
    An index without code has no tokens as typed; the last two keys then tell nothing.
    """

    can_extend = True

    def __init__(
        self, name: str = "ncs_postrank", *, part: str = "ncs", depth: int = DEPTH, stop_words: bool = False
    ) -> None:
        self.name = name
        self._configure(part, depth, stop_words)
        self._words: WordReader | None = None
        self._documents: DocumentTable | None = None
        self._snapshot: Snapshot | None = None

    def _configure(self, part: str, depth: int, stop_words: bool) -> None:
        if depth < 1:
            raise BadInput(f"depth is {depth}; it must be at least 1")
        self.part, self.depth, self.stop_words = create_part(part), depth, stop_words
        self.config: Mapping[str, object] = {"part": part, "depth": depth, "stop_words": stop_words}

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None:
        """Fit the part."""
        self.part.fit(words, embeddings, track=track)
        self._words = words

    def fit_documents(self, documents: DocumentTable, *, track: Track = silent) -> None:
        """Do nothing: a search reads the documents that it sorts."""
        self._documents = documents

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows by (-score, row); raises BadInput for k < 1."""
        check_k(k)
        if self._words is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit and fit_documents, or load first")
        ranking = self.part.search(text, max(k, self.depth), allowed=allowed)
        rows = np.array([row for row, _ in ranking], np.int64)
        grade = np.zeros(len(rows), np.int64)
        grade[: self.depth] = self._grades(self._words, text, rows[: self.depth])
        scores = grade + 1 / (2 + np.arange(len(rows)))
        return [(int(rows[at]), float(scores[at])) for at in postrank(np.arange(len(rows)), grade)[:k].tolist()]

    def _grades(self, table: WordReader, text: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        words, typed = tokenize(text), _TYPED.findall(text.lower())
        if not self.stop_words:
            words, typed = content_words(words), content_words(typed)
        ids, offsets = table.select_rows(NCS_FIELDS, rows)
        query_ids = np.array([id for word in set(words) if (id := table.vocabulary.id(word)) is not None], np.int32)
        contained = [np.isin(query_ids, part).sum() for part in np.split(ids, offsets[1:-1])] if len(rows) else []
        documents = self._read(rows.tolist())
        facts = Facts(
            lines=np.array([document.end_line - document.start_line + 1 for document in documents], np.int64),
            tokens=np.diff(offsets),
            words=np.array(contained, np.int64),
            spellings=np.array([len(_spellings(document) & set(typed)) for document in documents], np.int64),
        )
        return grades(facts, len(set(words)), len(set(typed)))

    def _read(self, rows: Sequence[int]) -> list[Document]:
        """Documents of a snapshot are opened for each search: a ranker is never closed."""
        if self._documents is not None:
            return self._documents.documents(rows)
        if self._snapshot is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit_documents or load first")
        documents = Documents(self._snapshot)
        try:
            return documents.documents(rows)
        finally:
            documents.close()

    def save(self, statistics: Path, segment: Path) -> None:
        """The configuration; and the part where it is not there yet."""
        folder = statistics / self.name
        folder.mkdir(parents=True, exist_ok=True)
        save_part(self.part, statistics, segment)
        (folder / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Do nothing: the part extends itself."""

    def load(self, snapshot: Snapshot) -> None:
        """Raises BadInput where it was not built, IndexDamaged for damaged files."""
        path = statistics_of(snapshot, self.name) / "config.json"
        try:
            config = json.loads(path.read_bytes())
            self._configure(config["part"], int(config["depth"]), bool(config["stop_words"]))
        except (OSError, ValueError, TypeError, KeyError, BadInput) as error:
            raise IndexDamaged(f"cannot read {path} ({error}); build the index again") from error
        self.part.load(snapshot)
        self._words, self._documents, self._snapshot = Words(snapshot), None, snapshot


def _spellings(document: Document) -> set[str]:
    """What is in the fields that NCS reads, between white space and punctuation, in lower case."""
    texts = (text for name in NCS_FIELDS for text in document.words.get(name, ()))
    return set(_TYPED.findall(" ".join(texts).lower()))
