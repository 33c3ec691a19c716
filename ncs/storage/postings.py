"""Fielded BM25 over stemmed words: postings as memory-mapped arrays, of which a query reads its own words' only.

`ncs.storage.postings_builder` makes them, with the formula; here they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import Stemmer

from ncs.build.delta import room_of
from ncs.errors import BadInput, IndexDamaged
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask


def stem(word: str) -> str:
    """The English Snowball stem of a lower-case word.

    >>> stem("hiding")
    'hide'
    """
    return stem_all([word])[0]


def stem_all(words: Iterable[str]) -> list[str]:
    """The stem of each word."""
    # a stemmer of its own for each call: one stemmer must not serve two threads, and making one costs microseconds
    return list(Stemmer.Stemmer("english").stemWords(list(words)))


IN_CODE, SPELLINGS, DF, COUNTED = "in_code.npy", "spellings.npy", "df.npy", "counted.npy"
BLOCK = 1 << 17  # rows scored at a time: their sums, 1 MB, stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question as the postings know it: `id` is None where no document has its stem."""

    word: str
    stem: str
    id: int | None
    documents: int
    """How many documents have the stem."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a word of the question adds to a document's score."""

    term: Term
    score: float


@dataclass(frozen=True, slots=True)
class Counted:
    """What BM25 knows of a corpus: how many documents, their mean length, and how many have each stem, [n_stems]."""

    documents: int
    mean_length: float
    df: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Postings:
    """Stem -> the documents that have it, in row order, each with what the stem adds to its score.

    Stem s stands in rows[offsets[s] : offsets[s + 1]] (int32), impacts alike (float32, idf included);
    lengths float32 [n_documents], weighted words. in_code float32 [n_stems]: the share of a stem's documents that
    have it in code, not in comments and literals only; None where nobody counted (an index built before there was
    one). On disk: one .npy each and the stems as a Vocabulary.
    """

    stems: Vocabulary
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    impacts: NDArray[np.float32]
    lengths: NDArray[np.float32]
    in_code: NDArray[np.float32] | None = None
    spellings: NDArray[np.int32] | None = None
    """Words a stem, [n_stems]; for who saves it, not loaded."""
    counted: Counted | None = None
    """Where the counts behind the scores are not those of these documents: taken over from another index."""

    def __len__(self) -> int:
        """How many documents."""
        return len(self.lengths)

    def terms(self, words: Sequence[str]) -> list[Term]:
        """The words of a question, in order, repeated ones repeated."""
        return [self._term(word, stemmed) for word, stemmed in zip(words, stem_all(words), strict=True)]

    def _term(self, word: str, stemmed: str) -> Term:
        id = self.stems.id(stemmed)
        return Term(word, stemmed, id, 0 if id is None else self.df(id))

    def df(self, id: int) -> int:
        """How many documents have a stem, as they were counted."""
        return int(self.counted.df[id]) if self.counted else int(self.offsets[id + 1] - self.offsets[id])

    @property
    def documents(self) -> int:
        """How many documents there were when they were counted."""
        return self.counted.documents if self.counted else len(self)

    def counts(self) -> Counted:
        """What the scores were made with."""
        if self.counted:
            return self.counted
        mean = float(self.lengths.mean(dtype=np.float64)) if len(self.lengths) else 0.0
        return Counted(len(self), mean or 1.0, np.diff(self.offsets))

    def search(self, words: Sequence[str], k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows with at least one of the words, by (-score, row); a repeated word counts each time.

        Raises BadInput for k < 1 or a mask that does not fit.
        """
        ids = [term.id for term in self.terms(words) if term.id is not None]
        return self.search_ids(ids, k, allowed=allowed)

    def search_ids(
        self, ids: Sequence[int] | Mapping[int, float], k: int, *, allowed: Mask | None = None
    ) -> list[tuple[int, float]]:
        """`search` for stems given by their ids: a repeated one counts each time, or what a mapping says."""
        rows, scores = self.leading(ids, k, allowed=allowed)
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    def leading(
        self, ids: Sequence[int] | Mapping[int, float], k: int, *, allowed: Mask | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """`search_ids` as arrays."""
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        if allowed is not None and len(allowed) != len(self):
            raise BadInput(f"the mask has {len(allowed)} rows, the index {len(self)}; make it for this index")
        rows, scores, beaten = np.zeros(0, np.int64), np.zeros(0), 0.0
        for start, block in self._blocks(self._ordered(ids)):
            better = block > beaten  # a later row that only ties with the k-th stands behind it
            if allowed is not None:
                better &= allowed[start : start + len(block)]
            found = np.flatnonzero(better)
            if len(found):
                rows, scores = np.concatenate([rows, found + start]), np.concatenate([scores, block[found]])
                rows, scores, beaten = _best(rows, scores, k)
        return leading(rows, scores, k)

    def _ordered(self, ids: Sequence[int] | Mapping[int, float]) -> dict[int, float]:
        """What each stem counts, in the order of the stems."""
        return dict(sorted(counts_of(ids).items()))

    def scores(self, ids: Sequence[int] | Mapping[int, float], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """What `search_ids` would score these rows, [len(rows)]."""
        scores, sought = np.zeros(len(rows)), rows.astype(self.rows.dtype)
        for id, count in self._ordered(ids).items():
            found, impacts = self.posting(id)
            if not len(found):  # its field has no weight
                continue
            at = np.minimum(np.searchsorted(found, sought), len(found) - 1)
            scores += np.where(found[at] == sought, impacts[at] * np.float64(count), 0.0)
        return scores

    def _blocks(self, counts: Mapping[int, float]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """First row and scores of BLOCK rows at a time, those that a stem is in; the array is used again for the next.

        Sums are in float64 and in the order of the stems: no order of words can change them.
        """
        edges = np.arange(0, len(self) + BLOCK, BLOCK)
        postings = [(*self.posting(id), count) for id, count in counts.items()]
        # edges of the rows' own type: of another one the whole posting would be read and converted
        cuts = np.array([np.searchsorted(rows, edges.astype(rows.dtype)) for rows, _, _ in postings]).reshape(
            -1, len(edges)
        )
        scores = np.zeros(min(BLOCK, len(self)))
        for number in np.flatnonzero((cuts[:, 1:] > cuts[:, :-1]).any(axis=0)).tolist():
            start = number * BLOCK
            scores[:] = 0
            for (rows, impacts, count), cut in zip(postings, cuts, strict=True):
                here = slice(cut[number], cut[number + 1])
                added = impacts[here] if count == 1 else impacts[here] * np.float64(count)
                scores[rows[here] - start if start else rows[here]] += added
            yield start, scores[: len(self) - start]

    def having(self, id: int) -> NDArray[np.int64]:
        """The rows that have a stem, ascending."""
        return self.posting(id)[0].astype(np.int64)

    def posting(self, id: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        here = slice(self.offsets[id], self.offsets[id + 1])
        return self.rows[here], self.impacts[here]

    def shares(self, words: Sequence[str], row: int) -> list[Share]:
        """What each word adds to the score of a row, in the order of the words; their sum is the score."""
        return [Share(term, 0.0 if term.id is None else self._impact(term.id, row)) for term in self.terms(words)]

    def _impact(self, id: int, row: int) -> float:
        rows, impacts = self.posting(id)
        at = int(np.searchsorted(rows, rows.dtype.type(row)))
        return float(impacts[at]) if at < len(rows) and rows[at] == row else 0.0

    def idf(self, words: Sequence[str]) -> dict[str, float]:
        """stem -> idf of the words; one that no document has counts as much as the rarest."""
        counts = {term.stem: term.documents for term in self.terms(words)}
        return {stem: float(np.log(1 + (self.documents - df + 0.5) / (df + 0.5))) for stem, df in counts.items()}

    def rarity(self, id: int) -> float:
        """The idf of a stem by its id."""
        df = self.df(id)
        return float(np.log(1 + (self.documents - df + 0.5) / (df + 0.5)))

    def share_in_code(self, id: int) -> float:
        """The share of a stem's documents that have it in code, 0 to 1; 1 where nobody counted."""
        return 1.0 if self.in_code is None else float(self.in_code[id])

    def save(self, folder: Path) -> None:
        """Write the arrays and the stems into an existing folder."""
        self.stems.save(folder)
        for name in ("offsets", "rows", "impacts", "lengths"):
            np.save(folder / f"{name}.npy", getattr(self, name))
        if self.in_code is not None:
            np.save(folder / IN_CODE, self.in_code)
        if self.spellings is not None:
            np.save(folder / SPELLINGS, self.spellings)
        if self.counted is not None:
            about = [self.counted.documents, self.counted.mean_length]
            np.save(folder / DF, self.counted.df)
            np.save(folder / COUNTED, np.array(about, np.float64))

    @classmethod
    def load(cls, folder: Path) -> Postings:
        """Of a ranker's folder in an index: with what came since it was built (ncs.build.delta)."""
        if (room := room_of(folder.parent)) and (room / folder.name).is_dir():
            from ncs.build.delta.postings import StackedPostings

            return StackedPostings.of_rooms(folder, room)
        return cls.of_folder(folder)

    @staticmethod
    def of_folder(folder: Path) -> Postings:
        """Memory-mapped; raises IndexDamaged where a file is missing, truncated or does not fit the others."""
        try:
            offsets, rows, impacts, lengths = (
                np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
                for name in ("offsets", "rows", "impacts", "lengths")
            )
            counted = (folder / IN_CODE).exists()
            in_code = np.load(folder / IN_CODE, mmap_mode="r", allow_pickle=False) if counted else None
            postings = Postings(
                Vocabulary.of_folder(folder), offsets, rows, impacts, lengths, in_code, counted=_counted(folder)
            )
        except (OSError, ValueError, EOFError) as error:
            raise IndexDamaged(f"cannot read the postings in {folder} ({error}); build the index again") from error
        fits = in_code is None or len(in_code) == len(postings.stems)
        if not fits or len(offsets) != len(postings.stems) + 1 or not len(rows) == len(impacts) == offsets[-1]:
            raise IndexDamaged(f"the postings in {folder} do not fit each other; build the index again")
        return postings


def _counted(folder: Path) -> Counted | None:
    if not (folder / COUNTED).exists():
        return None
    documents, mean = np.load(folder / COUNTED, allow_pickle=False).tolist()
    return Counted(int(documents), mean, np.load(folder / DF, mmap_mode="r", allow_pickle=False))


def counts_of(ids: Sequence[int] | Mapping[int, float]) -> dict[int, float]:
    """What each stem counts."""
    return dict(ids) if isinstance(ids, Mapping) else {id: ids.count(id) for id in ids}


def top(rows: NDArray[np.int64], scores: NDArray[np.float64], k: int) -> list[tuple[int, float]]:
    """The best k of ascending rows by (-score, row), exact where scores tie at the cut.

    >>> top(np.array([2, 5, 7]), np.array([1.0, 3.0, 1.0]), 2)
    [(5, 3.0), (2, 1.0)]
    """
    rows, scores = leading(rows, scores, k)
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def leading(
    rows: NDArray[np.int64], scores: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """`top` as arrays."""
    rows, scores, _ = _best(rows, scores, k)
    order = np.argsort(-scores, kind="stable")[:k]
    return rows[order], scores[order]


def _best(
    rows: NDArray[np.int64], scores: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """The best k in the order given, with all that tie with the k-th, and the k-th score; 0 where there are fewer."""
    if len(rows) < k:
        return rows, scores, 0.0
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    kept = scores >= cut
    return rows[kept], scores[kept], float(cut)
