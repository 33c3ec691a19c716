"""Fielded BM25 over stemmed words: the postings of an index as memory-mapped arrays, and their scores.

The simple BM25F of Robertson, Zaragoza and Taylor 2004; an integer weight equals repeating the field's text:

    tf(t, d) = sum_f weight_f * tf_f(t, d)          length(d) = sum_f weight_f * length_f(d)
    score(q, d) = sum_t count(t, q) * idf(t) * tf(t, d) / (tf(t, d) + k1 * (1 - b + b * length(d) / mean length))
    idf(t) = log(1 + (N - df(t) + .5) / (df(t) + .5))          as in Lucene
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ncs.errors import BadInput, check_k, unknown
from ncs.files import reserve
from ncs.progress import Track, silent
from ncs.storage.arrays import (
    ArrayTable,
    are_below,
    are_offsets,
    as_pairs,
    gather,
    offsets_of,
    ranges,
    starts_of_runs,
    top_rows,
)
from ncs.storage.words import WordTable
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary
from ncs.types import FIELDS, Field, Mask, Rows, Scores

if TYPE_CHECKING:
    from ncs.storage.snapshot import Snapshot

CODE: frozenset[Field] = frozenset(("name", "calls", "enums", "identifiers", "types", "parameters"))
"""Fields of code; literals and comments are prose."""
CHUNK = 1 << 14  # documents whose words are sorted at a time; a hundred words each are 13 MB of keys


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, its stem and its document frequency."""

    word: str
    stem: str
    documents: int


@dataclass(frozen=True, slots=True)
class TermStatistics(ArrayTable):
    """The corpus statistics of BM25. df: document frequencies, int64 [n_stems]; in_code: share of these documents with
    the stem in code, not only in comments and literals, float32 [n_stems]; corpus: number of documents and their mean
    length. On disk in `<statistics>/<ranker>/`.
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
    """The postings of a segment. Stem s: documents rows[offsets[s] : offsets[s + 1]], ascending, and likewise impacts,
    its part of their scores; lengths: weighted words, [n_documents]. On disk in `<segment>/<ranker>/`."""

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
        """The document frequency of a stem, in the statistics, or in the segments for a new stem."""
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
        """The best k rows with at least one of the words, by (-score, row); a repeated word counts each time. Raises
        BadInput for k < 1."""
        (best,) = self.top_rows(weights_of(stem_all(words)), k, [allowed])
        return as_pairs(*best)

    def all_scores(self, weights: Mapping[str, float]) -> Scores:
        """The score of every row, tombstones included, [len(self)]."""
        scores = np.zeros(len(self))
        weights = dict(sorted(weights.items()))  # sum in stem order, so that word order cannot change a score
        for first, table in zip(self._firsts.tolist(), self.tables, strict=True):
            own = scores[first : first + len(table)]
            for stem, weight in weights.items():
                rows, impacts = table.posting(stem)
                np.add.at(own, rows, impacts * np.float64(weight))  # in a third of the time of own[rows] += ...
        return scores

    def top_rows(
        self, weights: Mapping[str, float], k: int, masks: Sequence[Mask | None] = (None,)
    ) -> list[tuple[Rows, Scores]]:
        """For each mask, the best k of its rows and their scores for stems with these weights; None: of all rows."""
        check_k(k)
        scores = self.all_scores(weights)
        found = scores > 0 if self.live is None else (scores > 0) & self.live
        of_masks = [np.flatnonzero(found if mask is None else found & mask) for mask in masks]
        return [top_rows(rows, scores[rows], k) for rows in of_masks]

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


def build(
    words: WordTable,
    *,
    weights: Mapping[Field, float],
    k1: float = 1.2,
    b: float = 0.75,
    statistics: TermStatistics | None = None,
    track: Track = silent,
) -> Postings:
    """Postings over the fields with a weight; raises BadInput for an unknown field or a bad parameter.

    statistics: of the index, for a later segment; None: of these documents, in which sections of prose count only for
    stems that code does not have. The (stem, row) pairs of each chunk are written to a temporary file, sorted by stem,
    and merged at the end; temporary files are in WordTable.work_folder.
    """
    from tempfile import TemporaryFile  # a query need not import it

    fields = _weighted_fields(weights, k1, b)
    stems, stem_of = _stems(words.vocabulary)
    df, coded, length = np.zeros(len(stems), np.int64), np.zeros(len(stems), np.int64), np.zeros(len(words))
    in_sections, sections = np.zeros(len(stems), np.int64), words.sections
    runs = []
    with TemporaryFile(dir=words.work_folder) as file:
        starts = range(0, len(words), CHUNK)
        for start in track(starts, "bm25", total=len(starts), unit="chunks"):
            stop = min(start + CHUNK, len(words))
            stem, row, tf, in_code, length[start:stop] = _count(words, start, stop, fields, weights, stem_of)
            counts = np.bincount(stem, minlength=len(stems))
            df += counts
            if sections is not None:
                in_section = sections[start + row]
                in_sections += np.bincount(stem[in_section], minlength=len(stems))
                in_code &= ~in_section
            coded += np.bincount(stem[in_code], minlength=len(stems))
            present = np.flatnonzero(counts).astype(np.int32)
            runs.append((present, counts[present]))
            file.write((start + row).astype(np.int32).tobytes() + tf.tobytes())
        counted = np.where(df > in_sections, df - in_sections, df)
        share_in_code = (coded / np.maximum(counted, 1)).astype(np.float32)
        lengths = length[words.learned(0, len(words))]
        corpus_size = np.array([len(lengths), lengths.mean() if lengths.any() else 1.0])
        own = TermStatistics(stems, counted, share_in_code, corpus_size)
        corpus = statistics or own
        used = _document_frequency(own, corpus)
        idf = np.log1p(np.maximum(0.0, corpus.documents - used + 0.5) / (used + 0.5))
        saturation = k1 * (1 - b + b * length / corpus.mean_length)
        offsets = offsets_of(df)
        rows = _temporary(int(offsets[-1]), np.int32, words.work_folder)
        impacts = _temporary(int(offsets[-1]), np.float32, words.work_folder)
        file.seek(0)
        following = offsets[:-1].copy()  # where the next pair of each stem goes
        for present, counts in runs:
            pairs = int(counts.sum())
            row = np.frombuffer(file.read(4 * pairs), np.int32)
            tf = np.frombuffer(file.read(8 * pairs), np.float64)
            places = ranges(following[present], counts)
            rows[places] = row
            impacts[places] = np.repeat(idf[present], counts) * tf / (tf + saturation[row])
            following[present] += counts
    return Postings([PostingTable(stems, offsets, rows, impacts, length.astype(np.float32))], corpus)


def _document_frequency(own: TermStatistics, corpus: TermStatistics) -> NDArray[np.int64]:
    """The document frequency of each stem in the corpus; of a new stem its own."""
    if corpus is own or not len(corpus.df):
        return own.df
    ids = corpus.stems.ids_of(list(own.stems))
    return np.where(ids >= 0, corpus.df[np.maximum(ids, 0)], own.df)


def _weighted_fields(weights: Mapping[Field, float], k1: float, b: float) -> list[Field]:
    if others := sorted(set(weights) - set(FIELDS)):
        raise unknown("field", others[0], FIELDS)
    if not all(0 <= weight < float("inf") for weight in weights.values()):
        raise BadInput("a field's weight must be 0 or more; 0 leaves the field out")
    if not (0 <= k1 < float("inf") and 0 <= b <= 1):
        raise BadInput(f"BM25 needs k1 >= 0 and 0 <= b <= 1, not k1={k1}, b={b}")
    return [field for field in FIELDS if weights.get(field, 0) > 0]


def _stems(vocabulary: Vocabulary) -> tuple[Vocabulary, NDArray[np.int64]]:
    """The stems of a vocabulary and the stem id of each word id."""
    stemmed = stem_all(vocabulary)
    stems = Vocabulary.of(set(stemmed))
    return stems, stems.ids_of(stemmed).astype(np.int64)


def _count(
    words: WordTable,
    start: int,
    stop: int,
    fields: Sequence[Field],
    weights: Mapping[Field, float],
    stem_of: NDArray[np.int64],
) -> tuple[NDArray[Any], ...]:
    """The (stem, row) pairs of rows start..stop, sorted: stems, rows relative to start, tf, whether the stem is in
    code; and the weighted length of each row. Sorts one number per word, of stem, row and field."""
    span, width = stop - start, max(1, len(fields))
    keys, lengths = [np.zeros(0, np.int64)], np.zeros(span)
    for number, field in enumerate(fields):
        ids, offsets = words.select((field,), start, stop)
        counts = np.diff(offsets)
        keys.append((stem_of[ids] * span + np.repeat(np.arange(span), counts)) * width + number)
        lengths += weights[field] * counts
    key = np.sort(np.concatenate(keys))
    pair, field_number = np.divmod(key, width)
    first = starts_of_runs(pair)
    if not len(first):
        return pair, pair, np.zeros(0), np.zeros(0, np.bool_), lengths
    tf = np.add.reduceat(np.array([weights[field] for field in fields], np.float64)[field_number], first)
    in_code = np.maximum.reduceat(np.array([field in CODE for field in fields])[field_number], first)
    return *np.divmod(pair[first], span), tf, in_code, lengths


def _temporary(size: int, dtype: DTypeLike, folder: Path | None) -> NDArray[Any]:
    """An array of zeros in an unlinked temporary file of a folder; without a folder, in memory."""
    if folder is None or os.name == "nt" or not size:  # Windows cannot remove an open file
        return np.zeros(size, dtype)
    from tempfile import TemporaryFile

    with TemporaryFile(prefix="array-", dir=folder) as file:
        reserve(file.fileno(), size * np.dtype(dtype).itemsize)
        return np.memmap(file, dtype, "w+", shape=(size,))
