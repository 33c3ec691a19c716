"""Builds BM25 postings from the words of documents.

A field's weight counts its words that many times, in the term frequency and in the length (the simple BM25F
of Robertson, Zaragoza and Taylor 2004), so a whole weight equals repeating that field's text:

    tf(t, d) = sum_f weight_f * tf_f(t, d)          length(d) = sum_f weight_f * length_f(d)
    score(q, d) = sum_t count(t, q) * idf(t) * tf(t, d) / (tf(t, d) + k1 * (1 - b + b * length(d) / mean length))
    idf(t) = log(1 + (N - df(t) + .5) / (df(t) + .5))          as in Lucene
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ncs.errors import BadInput, unknown
from ncs.files import reserve
from ncs.progress import Track, silent
from ncs.storage.arrays import offsets_of, ranges, starts_of_runs
from ncs.storage.postings import Postings, PostingTable, TermStatistics
from ncs.storage.words import WordTable
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary
from ncs.types import FIELDS, Field

CODE: frozenset[Field] = frozenset(("name", "calls", "enums", "identifiers", "types", "parameters"))
"""Fields of code; literals and comments are prose."""
CHUNK = 1 << 14  # documents whose words are sorted at a time; a hundred words each are 13 MB of keys


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

    statistics: used for scores as they are; only new stems are counted here. None: count these documents; sections of
    prose only for stems that are nowhere else.

    The pairs of each chunk of documents lie in a temporary file, by stem, until all are counted; then each stem's are
    put behind one another. Where the words lie in a folder (WordTable.work_folder), so do these and the postings.
    """
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
    """The document frequency of each stem: from the corpus, or its own for a new stem."""
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
    ids = {word: id for id, word in enumerate(stems)}
    return stems, np.fromiter((ids[word] for word in stemmed), np.int64, len(stemmed))


def _count(
    words: WordTable,
    start: int,
    stop: int,
    fields: Sequence[Field],
    weights: Mapping[Field, float],
    stem_of: NDArray[np.int64],
) -> tuple[NDArray[Any], ...]:
    """The (stem, row) pairs of rows start..stop, by stem and then row: stems, rows counted from start, tf, whether the
    stem occurs in code; and the weighted length of each row. It sorts one number per word: stem, then row, then field.
    """
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
    with TemporaryFile(prefix="array-", dir=folder) as file:
        reserve(file.fileno(), size * np.dtype(dtype).itemsize)
        return np.memmap(file, dtype, "w+", shape=(size,))
