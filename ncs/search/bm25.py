"""The ranker `bm25`: fielded BM25 over stemmed words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.progress import Track, silent
from ncs.search.rankers import Ranker
from ncs.search.ranking import Internals
from ncs.storage.postings import Postings, TermStatistics, build
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Mask

WEIGHTS: Mapping[Field, float] = {**dict.fromkeys(FIELDS, 1), "name": 3, "path": 0}
"""Tuned on four development sets: names count three times; only the path is better left out. The path helps inside one
repository and hurts how-to queries over many, where a folder named like the query lifts all of its documents.
"""


class Bm25Ranker(Ranker):
    """Orders documents by BM25; stop words of the query are left out unless it has no other words."""

    signal = "lexical"
    postings: Postings

    def __init__(
        self, name: str = "bm25", *, weights: Mapping[Field, float] = WEIGHTS, k1: float = 1.2, b: float = 0.75
    ) -> None:
        self.name = name
        self.config: Mapping[str, Any] = {"weights": dict(weights), "k1": k1, "b": b}

    def fit(
        self,
        words: WordTable,
        embeddings: Embeddings | None = None,
        documents: DocumentTable | None = None,
        *,
        track: Track = silent,
    ) -> None:
        self.postings = build(words, **self.config, track=track)

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows that have a word of the query, by (-score, row); raises BadInput for k < 1."""
        return self.postings.search(self.query_words(text), k, allowed=allowed)

    def internals(self) -> Internals:
        return Internals(postings=self.postings)

    def save(self, statistics: Path, segment: Path) -> None:
        self.postings.save(statistics, segment, self.name)

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        terms = TermStatistics.load(statistics / self.name)
        build(words, **self.config, statistics=terms).tables[0].save(segment / self.name)

    def load(self, snapshot: Snapshot) -> None:
        self.postings = Postings.open(snapshot, self.name)
