"""Fielded BM25 over stemmed words: the postings of an index as memory-mapped arrays, and their scores.

`ncs.storage.postings_builder` builds them and has the formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncs.errors import BadInput, check_k
from ncs.storage.arrays import ArrayTable, are_below, are_offsets, both, gather, offsets_of, top_rows
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary
from ncs.types import Mask, Rows, Scores

if TYPE_CHECKING:
    from ncs.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, its stem and its document frequency."""

    word: str
    stem: str
    documents: int


@dataclass(frozen=True, slots=True)
class TermStatistics(ArrayTable):
    """The corpus statistics of BM25. For each stem the document frequency df, int64 [n_stems], and the share of these
    documents that have it in code, not only in comments and literals, in_code, float32 [n_stems]; corpus: number of
    documents and their mean length. On disk in `<statistics>/<ranker>/`.
    """

    stems: Vocabulary
    df: NDArray[np.int64]
    in_code: NDArray[np.float32]
    corpus: NDArray[np.float64]

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self.corpus[0])

    @property
    def mean_length(self) -> float:
        """Mean number of weighted words."""
        return float(self.corpus[1])

    def fits(self) -> bool:
        return len(self.df) == len(self.in_code) == len(self.stems) and self.corpus.shape == (2,)

    def is_sound(self, documents: int) -> bool:
        return are_below(self.df, 1 << 40)


@dataclass(frozen=True, slots=True)
class PostingTable(ArrayTable):
    """The postings of a segment: stem -> the documents that have it, ascending, with the stem's contribution to each
    score.

    Stem s stands in rows[offsets[s] : offsets[s + 1]] (int32), impacts alike (float32, idf included);
    lengths float32 [n_documents], weighted words. On disk in `<segment>/<ranker>/`.
    """

    stems: Vocabulary
    offsets: Rows
    rows: NDArray[np.int32]
    impacts: NDArray[np.float32]
    lengths: NDArray[np.float32]

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.lengths)

    def fits(self) -> bool:
        return len(self.offsets) == len(self.stems) + 1 and len(self.rows) == len(self.impacts) == self.offsets[-1]

    def is_sound(self, documents: int) -> bool:
        leads = are_offsets(self.offsets, len(self.rows)) and are_below(self.rows, documents)
        return leads and len(self) == documents

    def posting(self, stem: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rows, ascending, and impacts of a stem; both empty for an unknown stem."""
        id = self.stems.id(stem)
        here = slice(0, 0) if id is None else slice(self.offsets[id], self.offsets[id + 1])
        return self.rows[here], self.impacts[here]

    def all_scores(self, weights: Mapping[str, float]) -> Scores:
        """The score of every row for stems with these weights; sums are in float64 and in the order of `weights`."""
        scores = np.zeros(len(self))
        for stem, weight in weights.items():
            rows, impacts = self.posting(stem)
            scores[rows] += impacts if weight == 1 else impacts * np.float64(weight)
        return scores

    def scores(self, weights: Mapping[str, float], rows: Rows) -> Scores:
        """The scores of these rows, [len(rows)]."""
        scores, targets = np.zeros(len(rows)), rows.astype(self.rows.dtype)
        for stem, weight in weights.items():
            stem_rows, impacts = self.posting(stem)
            if len(stem_rows):
                at = np.minimum(np.searchsorted(stem_rows, targets), len(stem_rows) - 1)
                scores += np.where(stem_rows[at] == targets, impacts[at] * np.float64(weight), 0.0)
        return scores


class Postings:
    """The postings of all segments; tombstones are never hits."""

    def __init__(self, tables: Sequence[PostingTable], statistics: TermStatistics, live: Mask | None = None) -> None:
        self.tables, self.statistics, self.live = tables, statistics, live
        self._firsts = offsets_of(np.array([len(table) for table in tables]))[:-1]

    @classmethod
    def open(cls, snapshot: Snapshot, name: str) -> Postings:
        """The postings of the ranker `name`."""
        tables = [PostingTable.load(segment.path / name) for segment in snapshot.segments]
        return cls(tables, TermStatistics.load(snapshot.statistics / name), snapshot.live)

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return sum(map(len, self.tables))

    def terms(self, words: Sequence[str]) -> list[Term]:
        """The terms of the words, in order, with repetitions."""
        return [Term(word, stem, self.df(stem)) for word, stem in zip(words, stem_all(words), strict=True)]

    def documents_with(self, word: str) -> int:
        """The document frequency of a word's stem."""
        return self.df(*stem_all([word]))

    def df(self, stem: str) -> int:
        """The document frequency of a stem: from the statistics, or from the segments for a new stem."""
        id = self.statistics.stems.id(stem)
        return sum(len(table.posting(stem)[0]) for table in self.tables) if id is None else int(self.statistics.df[id])

    def idf_of(self, stem: str) -> float:
        """The idf of a stem."""
        df = self.df(stem)
        return float(np.log(1 + max(0.0, self.statistics.documents - df + 0.5) / (df + 0.5)))

    def idf(self, words: Sequence[str]) -> dict[str, float]:
        """stem -> idf of the words; a stem without documents has the highest idf."""
        return {stem: self.idf_of(stem) for stem in dict.fromkeys(stem_all(words))}

    def share_in_code(self, stem: str) -> float:
        """The share of a stem's documents that have it in code, 0 to 1; 1 for a stem without statistics."""
        id = self.statistics.stems.id(stem)
        return 1.0 if id is None else float(self.statistics.in_code[id])

    def search(self, words: Sequence[str], k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows with at least one of the words, by (-score, row); a repeated word counts each time.

        Raises BadInput for k < 1 or a mask that does not fit.
        """
        rows, scores = self.top_rows(weights_of(stem_all(words)), k, allowed=allowed)
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    def top_rows(self, weights: Mapping[str, float], k: int, *, allowed: Mask | None = None) -> tuple[Rows, Scores]:
        """The best k rows and their scores for stems with these weights."""
        check_k(k)
        if allowed is not None and len(allowed) != len(self):
            raise BadInput(f"the mask has {len(allowed)} rows, the index {len(self)}; make it for this index")
        allowed = both(allowed, self.live)
        weights = dict(sorted(weights.items()))  # sum in stem order, so that word order cannot change a score
        rows, scores = [], []
        for first, table in zip(self._firsts.tolist(), self.tables, strict=True):
            own = table.all_scores(weights)
            is_hit = own > 0
            if allowed is not None:
                is_hit &= allowed[first : first + len(own)]
            at = np.flatnonzero(is_hit)
            rows.append(at + first)
            scores.append(own[at])
        return top_rows(np.concatenate(rows), np.concatenate(scores), k)

    def scores(self, weights: Mapping[str, float], rows: Rows) -> Scores:
        """The scores of these rows, [len(rows)]."""
        weights = dict(sorted(weights.items()))
        return gather(self._firsts, rows, lambda number, local: self.tables[number].scores(weights, local))

    def rows_with(self, stem: str) -> Rows:
        """The rows that have a stem, ascending, without tombstones."""
        pairs = zip(self._firsts.tolist(), self.tables, strict=True)
        rows = np.concatenate([table.posting(stem)[0].astype(np.int64) + first for first, table in pairs])
        return rows if self.live is None else rows[self.live[rows]]

    def save(self, statistics: Path, segment: Path, name: str) -> None:
        """Write statistics and the only segment, each into its folder `name`."""
        (table,) = self.tables
        self.statistics.save(statistics / name)
        table.save(segment / name)


def weights_of(stems: Sequence[str]) -> dict[str, float]:
    """The count of each stem."""
    return {stem: float(stems.count(stem)) for stem in stems}
