"""Fielded BM25 over stemmed words: the postings of an index as memory-mapped arrays, and their scores.

`ncs.storage.postings_builder` builds them and has the formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, IndexDamaged, check_k
from ncs.storage.snapshot import load_array
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask

    Rows = NDArray[np.int64]
    Scores = NDArray[np.float64]

ARRAYS = ("offsets", "rows", "impacts", "lengths")
BLOCK = 1 << 17  # rows scored at a time: their scores, 1 MB, fit into the processor's cache


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, its stem and its document frequency."""

    word: str
    stem: str
    documents: int


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a document's score that a query word contributes."""

    term: Term
    score: float


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """The corpus statistics of BM25: number of documents and mean length; for each stem the document frequency df,
    int64 [n_stems], and the share of these documents that have it in code, not only in comments and literals, in_code,
    float32 [n_stems]. On disk in `<statistics>/<ranker>/`.
    """

    stems: Vocabulary
    documents: int
    mean_length: float
    df: NDArray[np.int64]
    in_code: NDArray[np.float32]

    def save(self, folder: Path) -> None:
        """Into a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        self.stems.save(folder)
        np.save(folder / "df.npy", self.df)
        np.save(folder / "in_code.npy", self.in_code)
        np.save(folder / "corpus.npy", np.array([self.documents, self.mean_length], np.float64))

    @classmethod
    def load(cls, folder: Path) -> TermStatistics:
        """Memory-mapped; raises IndexDamaged where files are missing or do not fit each other."""
        df, in_code, corpus = (load_array(folder / f"{name}.npy") for name in ("df", "in_code", "corpus"))
        stems = Vocabulary.load(folder)
        if not len(df) == len(in_code) == len(stems) or corpus.shape != (2,):
            raise IndexDamaged(f"the files in {folder} do not fit each other; build the index again")
        return cls(stems, int(corpus[0]), float(corpus[1]), df, in_code)


@dataclass(frozen=True, slots=True)
class PostingTable:
    """The postings of a segment: stem -> the documents that have it, ascending, with the stem's contribution to each
    score.

    Stem s stands in rows[offsets[s] : offsets[s + 1]] (int32), impacts alike (float32, idf included);
    lengths float32 [n_documents], weighted words. On disk: one .npy each and the stems as a Vocabulary.
    """

    stems: Vocabulary
    offsets: Rows
    rows: NDArray[np.int32]
    impacts: NDArray[np.float32]
    lengths: NDArray[np.float32]

    def __len__(self) -> int:
        """How many documents."""
        return len(self.lengths)

    def posting(self, stem: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rows, ascending, and impacts of a stem; both empty for an unknown stem."""
        id = self.stems.id(stem)
        here = slice(0, 0) if id is None else slice(self.offsets[id], self.offsets[id + 1])
        return self.rows[here], self.impacts[here]

    def scored_blocks(self, weights: Mapping[str, float]) -> Iterator[tuple[int, Scores]]:
        """First row and scores of each block of BLOCK rows with a stem; the array is reused.

        Sums are in float64 and in the order of `weights`.
        """
        edges = np.arange(0, len(self) + BLOCK, BLOCK)
        postings = [(*self.posting(stem), weight) for stem, weight in weights.items()]
        # edges in the dtype of the rows, so that the whole posting is not converted
        cuts = np.array([np.searchsorted(rows, edges.astype(rows.dtype)) for rows, _, _ in postings]).reshape(
            -1, len(edges)
        )
        scores = np.zeros(min(BLOCK, len(self)))
        for number in np.flatnonzero((cuts[:, 1:] > cuts[:, :-1]).any(axis=0)).tolist():
            start = number * BLOCK
            scores[:] = 0
            for (rows, impacts, weight), cut in zip(postings, cuts, strict=True):
                here = slice(cut[number], cut[number + 1])
                contributions = impacts[here] if weight == 1 else impacts[here] * np.float64(weight)
                scores[rows[here] - start if start else rows[here]] += contributions
            yield start, scores[: len(self) - start]

    def scores(self, weights: Mapping[str, float], rows: Rows) -> Scores:
        """The scores of these rows, [len(rows)]."""
        scores, targets = np.zeros(len(rows)), rows.astype(self.rows.dtype)
        for stem, weight in weights.items():
            stem_rows, impacts = self.posting(stem)
            if len(stem_rows):
                at = np.minimum(np.searchsorted(stem_rows, targets), len(stem_rows) - 1)
                scores += np.where(stem_rows[at] == targets, impacts[at] * np.float64(weight), 0.0)
        return scores

    def save(self, folder: Path) -> None:
        """Into a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        self.stems.save(folder)
        for name in ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> PostingTable:
        """Memory-mapped; raises IndexDamaged where a file is missing, truncated or does not fit the others."""
        offsets, rows, impacts, lengths = (load_array(folder / f"{name}.npy") for name in ARRAYS)
        stems = Vocabulary.load(folder)
        if len(offsets) != len(stems) + 1 or not len(rows) == len(impacts) == offsets[-1]:
            raise IndexDamaged(f"the postings in {folder} do not fit each other; build the index again")
        return cls(stems, offsets, rows, impacts, lengths)


class Postings:
    """The postings of all segments; tombstones are never hits."""

    def __init__(self, tables: Sequence[PostingTable], statistics: TermStatistics, live: Mask | None = None) -> None:
        self.tables, self.statistics, self.live = tables, statistics, live
        self._firsts = np.cumsum([0, *map(len, tables)])

    @classmethod
    def open(cls, snapshot: Snapshot, name: str) -> Postings:
        """The postings of the ranker `name`."""
        tables = [PostingTable.load(segment.path / name) for segment in snapshot.segments]
        return cls(tables, TermStatistics.load(snapshot.statistics / name), snapshot.live)

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return int(self._firsts[-1])

    def terms(self, words: Sequence[str]) -> list[Term]:
        """The terms of the words, in order, with repetitions."""
        return [Term(word, stem, self.df(stem)) for word, stem in zip(words, stem_all(words), strict=True)]

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
        if self.live is not None:
            allowed = self.live if allowed is None else allowed & self.live
        weights = dict(sorted(weights.items()))  # sum in stem order, so that word order cannot change a score
        rows, scores, threshold = np.zeros(0, np.int64), np.zeros(0), 0.0
        for first, table in zip(self._firsts.tolist(), self.tables, strict=False):
            for start, block in table.scored_blocks(weights):
                better = block > threshold  # a later row that ties with the k-th ranks behind it
                if allowed is not None:
                    better &= allowed[first + start : first + start + len(block)]
                at = np.flatnonzero(better)
                if len(at):
                    rows, scores = np.concatenate([rows, at + first + start]), np.concatenate([scores, block[at]])
                    rows, scores, threshold = _best(rows, scores, k)
        return top_rows(rows, scores, k)

    def scores(self, weights: Mapping[str, float], rows: Rows) -> Scores:
        """The scores of these rows, [len(rows)]."""
        weights = dict(sorted(weights.items()))
        if len(self.tables) == 1:
            return self.tables[0].scores(weights, rows)
        scores, owners = np.zeros(len(rows)), np.searchsorted(self._firsts, rows, side="right") - 1
        for number, table in enumerate(self.tables):
            at = np.flatnonzero(owners == number)
            scores[at] = table.scores(weights, rows[at] - self._firsts[number])
        return scores

    def rows_with(self, stem: str) -> Rows:
        """The rows that have a stem, ascending, without tombstones."""
        pairs = zip(self._firsts.tolist(), self.tables, strict=False)
        rows = np.concatenate([table.posting(stem)[0].astype(np.int64) + first for first, table in pairs])
        return rows if self.live is None else rows[self.live[rows]]

    def lengths(self) -> NDArray[np.float32]:
        """Weighted words of every row."""
        return np.concatenate([table.lengths for table in self.tables])

    def shares(self, words: Sequence[str], row: int) -> list[Share]:
        """The share of each word in the score of a row, in the order of the words; they add up to the score."""
        at = np.array([row])
        return [Share(term, float(self.scores({term.stem: 1.0}, at)[0])) for term in self.terms(words)]

    def save(self, statistics: Path, segment: Path, name: str) -> None:
        """Write statistics and the only segment, each into its folder `name`."""
        (table,) = self.tables
        self.statistics.save(statistics / name)
        table.save(segment / name)


def weights_of(stems: Sequence[str]) -> dict[str, float]:
    """The count of each stem."""
    return {stem: float(stems.count(stem)) for stem in stems}


def top(rows: Rows, scores: Scores, k: int) -> list[tuple[int, float]]:
    """The best k of ascending rows by (-score, row), exact where scores tie at the cut.

    >>> top(np.array([2, 5, 7]), np.array([1.0, 3.0, 1.0]), 2)
    [(5, 3.0), (2, 1.0)]
    """
    rows, scores = top_rows(rows, scores, k)
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def top_rows(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    """`top` as arrays."""
    rows, scores, _ = _best(rows, scores, k)
    order = np.argsort(-scores, kind="stable")[:k]
    return rows[order], scores[order]


def _best(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores, float]:
    """The best k in the given order, including ties with the k-th, and the k-th score; 0 if there are fewer."""
    if len(rows) < k:
        return rows, scores, 0.0
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    best = scores >= threshold
    return rows[best], scores[best], float(threshold)
