"""What the words of functions weigh by BM25's rule: fields, repetition and length counted as the ranker bm25 does.

A weighted mean of word vectors counts a word as often as it stands there, wherever that is, and a long function is the
mean of much. Here the weight of a word in a function is, as in `ncs.storage.postings_builder` but for idf, which
heads learn:

    tf / (tf + K1 * (1 - B + B * length / mean length)),    tf and length of the fields by WEIGHTS
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.search.bm25 import WEIGHTS
from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from unif.tokenization import Tokens

K1, B = 1.2, 0.75
CHUNK = 1 << 14
"""Functions counted at a time."""
READ: tuple[Field, ...] = tuple(field for field in FIELDS if WEIGHTS[field] > 0)


def weighted_counts(fields: Mapping[Field, Any]) -> Any:
    """CSR [n, tokens] of float32: the counts of each field, CSR [n, tokens], added up by the fields' weights."""
    total = sum(WEIGHTS[field] * counts for field, counts in fields.items() if WEIGHTS[field] > 0)
    return total.tocsr().astype(np.float32)


def lengths(counts: Any) -> NDArray[np.float64]:
    """How many words each row of weighted counts has, [n]."""
    return np.asarray(counts.sum(axis=1), np.float64).ravel()


def saturated(counts: Any, mean: float) -> Any:
    """CSR of the same shape: what each word weighs, 0 to 1, where functions are `mean` words long."""
    found = counts.copy()
    limit = K1 * (1 - B + B * lengths(counts) / max(mean, 1e-9))
    found.data = (counts.data / (counts.data + np.repeat(limit, np.diff(counts.indptr)))).astype(np.float32)
    return found


def table_counts(words: WordTable, start: int, stop: int, tokens_of: Any, left_out: Field | None = None) -> Any:
    """Weighted counts [stop - start, tokens] of rows of an index; tokens_of: CSR [words of its vocabulary, tokens]."""
    fields = [field for field in READ if field != left_out]
    return weighted_counts({field: _field(words, field, start, stop) @ tokens_of for field in fields})


def _field(words: WordTable, field: Field, start: int, stop: int) -> Any:
    from scipy.sparse import csr_matrix

    ids, offsets = words.select([field], start, stop)
    counts = csr_matrix((np.ones(len(ids), np.float32), ids, offsets), shape=(stop - start, len(words.vocabulary)))
    counts.sum_duplicates()
    return counts


def table_impacts(words: WordTable, tokens_of: Any) -> tuple[Any, float]:
    """Of all functions of an index, CSR [n, tokens], and their mean length."""
    from scipy.sparse import csr_matrix, vstack

    parts = list(_parts(words, tokens_of)) or [csr_matrix((0, tokens_of.shape[1]), dtype=np.float32)]
    counts = vstack(parts, format="csr")
    mean = float(lengths(counts).mean()) if counts.shape[0] else 1.0
    return saturated(counts, mean), mean


def _parts(words: WordTable, tokens_of: Any) -> Iterator[Any]:
    for start in range(0, len(words), CHUNK):
        yield table_counts(words, start, min(start + CHUNK, len(words)), tokens_of)


def document_impacts(words: WordTable, rows: Sequence[int], tokens_of: Any, mean: float, left_out: Field) -> Any:
    """CSR [len(rows), tokens] of some functions of an index, without one field."""
    from scipy.sparse import vstack

    each = [table_counts(words, row, row + 1, tokens_of, left_out) for row in rows]
    return saturated(vstack(each, format="csr"), mean)


def spelled_counts(documents: Sequence[Mapping[Field, Sequence[str]]], tokens: Tokens) -> dict[Field, Any]:
    """Field -> CSR [n, tokens]: how often each token stands in that field of functions that are in no index."""
    from unif.counts import counts_of

    return {field: counts_of([tokens.ids(each.get(field, ())) for each in documents], len(tokens)) for field in READ}
