"""Fielded BM25 over stemmed words: postings as memory-mapped arrays, of which a query reads its own words' only.

`ncs.storage.postings_builder` makes them, with the formula; here they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, IndexDamaged
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
BLOCK = 1 << 17  # rows scored at a time: their sums, 1 MB, stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query: its stem, and how many documents have that."""

    word: str
    stem: str
    documents: int


@dataclass(frozen=True, slots=True)
class Share:
    """What a word of a query adds to a document's score."""

    term: Term
    score: float


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """What BM25 knows of a corpus: its number of documents and their mean length; of each stem the number of documents
    that have it, df int64 [n_stems], and the share of these that have it in code and not only in comments and literals,
    in_code float32 [n_stems]. On disk in `<statistics>/<ranker>/`."""

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
    """Of a segment: stem -> the documents that have it, in row order, each with what the stem adds to its score.

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
        """Rows, ascending, and impacts of a stem; both empty for one that it does not have."""
        id = self.stems.id(stem)
        here = slice(0, 0) if id is None else slice(self.offsets[id], self.offsets[id + 1])
        return self.rows[here], self.impacts[here]

    def scored_blocks(self, weights: Mapping[str, float]) -> Iterator[tuple[int, Scores]]:
        """First row and scores of BLOCK rows at a time, those that a stem is in; the array is used again for the next.

        Sums are in float64 and in the order of `weights`.
        """
        edges = np.arange(0, len(self) + BLOCK, BLOCK)
        postings = [(*self.posting(stem), weight) for stem, weight in weights.items()]
        # edges of the rows' own type: of another one the whole posting would be read and converted
        cuts = np.array([np.searchsorted(rows, edges.astype(rows.dtype)) for rows, _, _ in postings]).reshape(
            -1, len(edges)
        )
        scores = np.zeros(min(BLOCK, len(self)))
        for number in np.flatnonzero((cuts[:, 1:] > cuts[:, :-1]).any(axis=0)).tolist():
            start = number * BLOCK
            scores[:] = 0
            for (rows, impacts, weight), cut in zip(postings, cuts, strict=True):
                here = slice(cut[number], cut[number + 1])
                added = impacts[here] if weight == 1 else impacts[here] * np.float64(weight)
                scores[rows[here] - start if start else rows[here]] += added
            yield start, scores[: len(self) - start]

    def scores(self, weights: Mapping[str, float], rows: Rows) -> Scores:
        """The scores of these rows, [len(rows)]."""
        scores, wanted = np.zeros(len(rows)), rows.astype(self.rows.dtype)
        for stem, weight in weights.items():
            having, impacts = self.posting(stem)
            if len(having):
                at = np.minimum(np.searchsorted(having, wanted), len(having) - 1)
                scores += np.where(having[at] == wanted, impacts[at] * np.float64(weight), 0.0)
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
    """The postings of all documents, segment by segment; tombstones are never answered."""

    def __init__(self, tables: Sequence[PostingTable], statistics: TermStatistics, live: Mask | None = None) -> None:
        self.tables, self.statistics, self.live = tables, statistics, live
        self._firsts = np.cumsum([0, *map(len, tables)])

    @classmethod
    def open(cls, snapshot: Snapshot, name: str) -> Postings:
        """Of a ranker called `name`."""
        tables = [PostingTable.load(segment.path / name) for segment in snapshot.segments]
        return cls(tables, TermStatistics.load(snapshot.statistics / name), snapshot.live)

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return int(self._firsts[-1])

    def terms(self, words: Sequence[str]) -> list[Term]:
        """The words of a query, in order, repeated ones repeated."""
        return [Term(word, stem, self.df(stem)) for word, stem in zip(words, stem_all(words), strict=True)]

    def df(self, stem: str) -> int:
        """How many documents have a stem: as the statistics say, else as the segments that have it do."""
        id = self.statistics.stems.id(stem)
        return sum(len(table.posting(stem)[0]) for table in self.tables) if id is None else int(self.statistics.df[id])

    def rarity(self, stem: str) -> float:
        """The idf of a stem."""
        df = self.df(stem)
        return float(np.log(1 + max(0.0, self.statistics.documents - df + 0.5) / (df + 0.5)))

    def idf(self, words: Sequence[str]) -> dict[str, float]:
        """stem -> idf of the words; one that no document has counts as much as the rarest."""
        return {stem: self.rarity(stem) for stem in dict.fromkeys(stem_all(words))}

    def share_in_code(self, stem: str) -> float:
        """The share of a stem's documents that have it in code, 0 to 1; 1 for a stem without statistics."""
        id = self.statistics.stems.id(stem)
        return 1.0 if id is None else float(self.statistics.in_code[id])

    def search(self, words: Sequence[str], k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows with at least one of the words, by (-score, row); a repeated word counts each time.

        Raises BadInput for k < 1 or a mask that does not fit.
        """
        rows, scores = self.leading(weights_of(stem_all(words)), k, allowed=allowed)
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    def leading(self, weights: Mapping[str, float], k: int, *, allowed: Mask | None = None) -> tuple[Rows, Scores]:
        """The best k rows, and their scores, for stems of these weights."""
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        if allowed is not None and len(allowed) != len(self):
            raise BadInput(f"the mask has {len(allowed)} rows, the index {len(self)}; make it for this index")
        if self.live is not None:
            allowed = self.live if allowed is None else allowed & self.live
        weights = dict(sorted(weights.items()))  # sums in the order of the stems: no order of words can change them
        rows, scores, bound = np.zeros(0, np.int64), np.zeros(0), 0.0
        for first, table in zip(self._firsts.tolist(), self.tables, strict=False):
            for start, block in table.scored_blocks(weights):
                better = block > bound  # a later row that only ties with the k-th stands behind it
                if allowed is not None:
                    better &= allowed[first + start : first + start + len(block)]
                at = np.flatnonzero(better)
                if len(at):
                    rows, scores = np.concatenate([rows, at + first + start]), np.concatenate([scores, block[at]])
                    rows, scores, bound = _best(rows, scores, k)
        return leading(rows, scores, k)

    def scores(self, weights: Mapping[str, float], rows: Rows) -> Scores:
        """What `leading` would score these rows, [len(rows)]."""
        weights = dict(sorted(weights.items()))
        if len(self.tables) == 1:
            return self.tables[0].scores(weights, rows)
        scores, owners = np.zeros(len(rows)), np.searchsorted(self._firsts, rows, side="right") - 1
        for number, table in enumerate(self.tables):
            at = np.flatnonzero(owners == number)
            scores[at] = table.scores(weights, rows[at] - self._firsts[number])
        return scores

    def having(self, stem: str) -> Rows:
        """The rows that have a stem, ascending, without tombstones."""
        pairs = zip(self._firsts.tolist(), self.tables, strict=False)
        rows = np.concatenate([table.posting(stem)[0].astype(np.int64) + first for first, table in pairs])
        return rows if self.live is None else rows[self.live[rows]]

    def lengths(self) -> NDArray[np.float32]:
        """Weighted words of every row."""
        return np.concatenate([table.lengths for table in self.tables])

    def shares(self, words: Sequence[str], row: int) -> list[Share]:
        """What each word adds to the score of a row, in the order of the words; their sum is the score."""
        at = np.array([row])
        return [Share(term, float(self.scores({term.stem: 1.0}, at)[0])) for term in self.terms(words)]

    def save(self, statistics: Path, segment: Path, name: str) -> None:
        """Statistics and the one segment, each into its folder `name`."""
        (table,) = self.tables
        self.statistics.save(statistics / name)
        table.save(segment / name)


def weights_of(stems: Sequence[str]) -> dict[str, float]:
    """How often each stem is there."""
    return {stem: float(stems.count(stem)) for stem in stems}


def top(rows: Rows, scores: Scores, k: int) -> list[tuple[int, float]]:
    """The best k of ascending rows by (-score, row), exact where scores tie at the cut.

    >>> top(np.array([2, 5, 7]), np.array([1.0, 3.0, 1.0]), 2)
    [(5, 3.0), (2, 1.0)]
    """
    rows, scores = leading(rows, scores, k)
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def leading(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    """`top` as arrays."""
    rows, scores, _ = _best(rows, scores, k)
    order = np.argsort(-scores, kind="stable")[:k]
    return rows[order], scores[order]


def _best(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores, float]:
    """The best k in the order given, with all that tie with the k-th, and the k-th score; 0 where there are fewer."""
    if len(rows) < k:
        return rows, scores, 0.0
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    best = scores >= cut
    return rows[best], scores[best], float(cut)
