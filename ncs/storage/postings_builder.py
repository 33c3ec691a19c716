"""Builds BM25 postings from the words of documents.

A field's weight counts its words that many times, in the term frequency and in the length (the simple BM25F
of Robertson, Zaragoza and Taylor 2004), so a whole weight equals repeating that field's text:

    tf(t, d) = sum_f weight_f * tf_f(t, d)          length(d) = sum_f weight_f * length_f(d)
    score(q, d) = sum_t count(t, q) * idf(t) * tf(t, d) / (tf(t, d) + k1 * (1 - b + b * length(d) / mean length))
    idf(t) = log(1 + (N - df(t) + .5) / (df(t) + .5))          as in Lucene
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.storage.external_sort import SortedRuns, temporary
from ncs.storage.postings import Postings, PostingTable, TermStatistics
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.storage.words import Arrays, WordTable

CODE: frozenset[Field] = frozenset(("name", "calls", "enums", "identifiers", "types", "parameters"))
"""Fields of code; literals and comments are prose."""
CHUNK = 1 << 14  # documents whose words are sorted at a time; a hundred words each are 13 MB of keys
MERGED = 1 << 21
"""Postings merged at a time."""


def build(
    words: WordTable,
    *,
    weights: Mapping[Field, float],
    k1: float = 1.2,
    b: float = 0.75,
    statistics: TermStatistics | None = None,
    track: Track = silent,
) -> Postings:
    """Postings over the fields that have a weight; raises BadInput for an unknown field or a bad parameter.

    statistics: used for scores as they are; only new stems are counted here. None: count these documents.

    The pairs of each chunk lie in a file, by stem, until all are counted; then they are merged, some stems at a time.
    Where the words lie in a folder (WordTable.work_folder), so do these and the postings.
    """
    fields = _weighted_fields(weights, k1, b)
    stems, stem_of = _stems(words.vocabulary)
    factors = np.array([weights[field] for field in fields], np.float64)
    starts = range(0, len(words), CHUNK)
    count = partial(_count, fields=fields, factors=factors, stem_of=stem_of, n_stems=len(stems))
    chunked = track(starts, "bm25", total=len(starts), unit="chunks")
    counts = (count(words.slice(start, min(start + CHUNK, len(words)))) for start in chunked)
    chunks = (_Chunk(start, *arrays) for start, arrays in zip(starts, counts, strict=True))
    df, coded, length = np.zeros(len(stems), np.int64), np.zeros(len(stems), np.int64), np.zeros(len(words))
    with SortedRuns(words.work_folder) as runs:
        for chunk in chunks:
            df, coded = df + chunk.df, coded + chunk.coded
            length[chunk.start : chunk.start + len(chunk.lengths)] = chunk.lengths
            runs.add(chunk.df, chunk.start + chunk.rows.astype(np.int64), chunk.tf)
        in_code = (coded / np.maximum(df, 1)).astype(np.float32)
        own = TermStatistics(stems, len(words), float(length.mean()) if length.any() else 1.0, df, in_code)
        corpus = own if statistics is None else statistics
        used = own.df if statistics is None else _document_frequency(own, statistics)
        idf = np.log1p(np.maximum(0.0, corpus.documents - used + 0.5) / (used + 0.5))
        saturation = k1 * (1 - b + b * length / corpus.mean_length)
        rows, impacts = _merge(runs, df, idf, saturation, words.work_folder)
    offsets = np.concatenate([[0], np.cumsum(df)])
    return Postings([PostingTable(stems, offsets, rows, impacts, length.astype(np.float32))], corpus)


def _document_frequency(own: TermStatistics, statistics: TermStatistics) -> NDArray[np.int64]:
    """The document frequency of each stem: from the statistics, or counted here for a new stem."""
    ids = statistics.stems.ids_of(list(own.stems))
    return np.where(ids >= 0, statistics.df[np.maximum(ids, 0)], own.df) if len(statistics.df) else own.df


def _weighted_fields(weights: Mapping[Field, float], k1: float, b: float) -> list[Field]:
    unknown = sorted(set(weights) - set(FIELDS))
    if unknown:
        raise BadInput(f"no field called {unknown[0]!r}; there are: {', '.join(FIELDS)}")
    if not all(0 <= weight < float("inf") for weight in weights.values()):
        raise BadInput("a field's weight must be 0 or more; 0 leaves the field out")
    if not (0 <= k1 < float("inf") and 0 <= b <= 1):
        raise BadInput(f"BM25 needs k1 >= 0 and 0 <= b <= 1, not k1={k1}, b={b}")
    return [field for field in FIELDS if weights.get(field, 0) > 0]


def _stems(vocabulary: Vocabulary) -> tuple[Vocabulary, NDArray[np.int64]]:
    """The stems of a vocabulary and the stem id of each word id."""
    stemmed = stem_all(vocabulary)
    stems = Vocabulary.of(set(stemmed))
    ids = {word: id for id, word in enumerate(stems)}
    return stems, np.fromiter((ids[word] for word in stemmed), np.int64, len(stemmed))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The (stem, row) pairs of some documents, by stem and then row."""

    start: int
    rows: NDArray[np.int32]
    """Counted from `start`."""
    tf: NDArray[np.float64]
    df: NDArray[np.int64]
    """Pairs per stem, [n_stems]."""
    coded: NDArray[np.int64]
    """Pairs per stem that occur in code."""
    lengths: NDArray[np.float64]
    """Weighted length of each document."""


def _count(
    words: WordTable,
    fields: Sequence[Field],
    factors: NDArray[np.float64],
    stem_of: NDArray[np.int64],
    n_stems: int,
) -> Arrays:
    """The arrays of a _Chunk, by sorting one number per word: stem, then row, then field."""
    span, width = max(1, len(words)), max(1, len(fields))
    keys, lengths = [np.zeros(0, np.int64)], np.zeros(len(words))
    weights = factors if len(factors) else np.zeros(1)
    for number, field in enumerate(fields):
        ids, offsets = words.select((field,))
        counts = np.diff(offsets)
        keys.append((stem_of[ids] * span + np.repeat(np.arange(len(words)), counts)) * width + number)
        lengths += factors[number] * counts
    key = np.sort(np.concatenate(keys))
    pair = key // width
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    tf = np.add.reduceat(weights[key % width], first) if len(first) else np.zeros(0)
    stem, row = np.divmod(pair[first], span)
    code = np.array([field in CODE for field in fields] or [False])[key % width]
    coded = np.bincount(stem, np.maximum.reduceat(code, first) if len(first) else None, minlength=n_stems)
    return row.astype(np.int32), tf, np.bincount(stem, minlength=n_stems), coded.astype(np.int64), lengths


def _merge(
    runs: SortedRuns,
    df: NDArray[np.int64],
    idf: NDArray[np.float64],
    saturation: NDArray[np.float64],
    folder: Path | None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Rows and impacts of all stems; saturation[row]: the denominator's part beside tf."""
    total = int(df.sum())
    rows, impacts = temporary((total,), np.int32, folder), temporary((total,), np.float32, folder)
    for start, stop in _spans(df):
        base = int(df[:start].sum())
        free = np.cumsum(df[start:stop]) - df[start:stop]  # where the next document of each stem goes
        merged_rows, merged_impacts = np.empty(free[-1] + df[stop - 1], np.int32), np.empty(free[-1] + df[stop - 1])
        for counts, numbers, tf in runs.read(start, stop):
            first = np.cumsum(counts) - counts
            places = np.arange(len(numbers)) + np.repeat(free - first, counts)
            merged_rows[places] = numbers
            merged_impacts[places] = np.repeat(idf[start:stop], counts) * tf / (tf + saturation[numbers])
            free += counts
        rows[base : base + len(merged_rows)] = merged_rows
        impacts[base : base + len(merged_rows)] = merged_impacts
    return rows, impacts


def _spans(df: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of stems with at most MERGED postings each, or one stem."""
    ends = np.cumsum(df)
    start = 0
    while start < len(df):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + MERGED, side="right")))
        yield start, stop
        start = stop
