"""NCS's post-ranking (Sachdev et al. 2018): a ranker's first 500 documents sorted by what they are and contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, check_k, reading
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, check_part, read_config, statistics_of
from ncs.storage.documents import Documents
from ncs.storage.words import Words
from ncs.text.tokens import content_words, tokenize
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordReader, WordTable
    from ncs.types import Document, Mask

    Counts = NDArray[np.int64]

DEPTH = 500
"""Number of documents that are sorted, as published."""
MIN_LINES, MIN_TOKENS = 3, 10
_TYPED = re.compile(r"\w+")


def grades(lines: Counts, tokens: Counts, words: Counts, spellings: Counts, n: int, m: int) -> Counts:
    """The six keys of each document as one number from 0 to 63; a more important key is a higher bit.

    words and spellings: how many of the query's n words it contains, and of its m tokens as typed, not split. The keys,
    from the least important one: at least 3 lines; at least 10 tokens; n-1 of the words; all; m-1 of the tokens as
    typed; all (Sachdev et al. 2018, post-ranking). A query without words or tokens gives all documents the same keys.
    """
    keys = (lines >= MIN_LINES, tokens >= MIN_TOKENS, words >= n - 1, words >= n, spellings >= m - 1, spellings >= m)
    return np.asarray(np.stack(keys, axis=1) @ (1 << np.arange(len(keys))), np.int64)


class PostrankRanker(Ranker):
    """The first `depth` documents of `part`, sorted by `grades`; the others follow.

    Words and tokens of a document are those of NCS_FIELDS, split by `tokenize` and at punctuation. With
    stop_words=False stop words of a query are left out of both. A score is the grade (0 to 63) plus 1 / (1 + rank
    before). Without stored code there are no tokens.
    """

    _documents: tuple[WordReader, Callable[[Sequence[int]], list[Document]]]

    def __init__(
        self, name: str = "ncs_postrank", *, part: str = "ncs", depth: int = DEPTH, stop_words: bool = False
    ) -> None:
        self.name = name
        self._configure(part, depth, stop_words)

    def _configure(self, part: str, depth: int, stop_words: bool) -> None:
        if depth < 1:
            raise BadInput(f"depth is {depth}; it must be at least 1")
        self.parts, self.depth, self.stop_words = (check_part(part),), depth, stop_words
        self.config = {"part": part, "depth": depth, "stop_words": stop_words}

    def fit(self, words: WordTable, embeddings: Embeddings, documents: DocumentTable, *, track: Track = silent) -> None:
        """Nothing is learned."""
        self._documents = words, documents.documents

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        check_k(k)
        ranking = self.composed[0].search(text, max(k, self.depth), allowed=allowed)
        rows = np.array([row for row, _ in ranking], np.int64)
        grade = np.zeros(len(rows), np.int64)
        grade[: self.depth] = self._grades(text, rows[: self.depth])
        scores = grade + 1 / (2 + np.arange(len(rows)))
        order = np.argsort(-grade, kind="stable")[:k]
        return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))

    def _grades(self, text: str, rows: Counts) -> Counts:
        table, read = self._documents
        words, typed = tokenize(text), _TYPED.findall(text.lower())
        if not self.stop_words:
            words, typed = content_words(words), content_words(typed)
        ids, offsets = table.select_rows(NCS_FIELDS, rows)
        query_ids = np.array([id for word in set(words) if (id := table.vocabulary.id(word)) is not None], np.int32)
        contained = [np.isin(query_ids, part).sum() for part in np.split(ids, offsets[1:-1])] if len(rows) else []
        documents = read(rows.tolist())
        lines = np.array([document.end_line - document.start_line + 1 for document in documents], np.int64)
        spellings = np.array([len(_spellings(document) & set(typed)) for document in documents], np.int64)
        n, m = len(set(words)), len(set(typed))
        return grades(lines, np.diff(offsets), np.array(contained, np.int64), spellings, n, m)

    def save(self, statistics: Path, segment: Path) -> None:
        self._save_config(statistics)

    def load(self, snapshot: Snapshot) -> None:
        folder = statistics_of(snapshot, self.name)
        config = read_config(folder)
        with reading(folder):
            self._configure(config["part"], int(config["depth"]), bool(config["stop_words"]))

        def read(rows: Sequence[int]) -> list[Document]:
            with closing(Documents(snapshot)) as documents:  # opened for each search: a ranker is never closed
                return documents.documents(rows)

        self._documents = Words(snapshot), read


def _spellings(document: Document) -> set[str]:
    """The words of the fields that NCS reads, split at white space and punctuation, in lower case."""
    texts = (text for name in NCS_FIELDS for text in document.words.get(name, ()))
    return set(_TYPED.findall(" ".join(texts).lower()))
