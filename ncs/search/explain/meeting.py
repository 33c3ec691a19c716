"""Which word of a document each word of the question met, in which fields, and what it adds to BM25 and to a cosine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncs.learn.embeddings import unit_rows
from ncs.search.explain.explanation import Met
from ncs.storage.postings import stem_all
from ncs.types import FIELDS, NCS_FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.tfidf import TfidfEncoder
    from ncs.storage.postings import Postings
    from ncs.storage.vectors import VectorIndex
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

    Scores = NDArray[np.float64]

NEAR_FIELDS: frozenset[Field] = frozenset(NCS_FIELDS)
"""Where the nearest word is looked for: what a document's vector is made of."""


def meet(asked: Sequence[str], words: WordTable, row: int, encoder: TfidfEncoder | None = None) -> list[Met]:
    """For each distinct stem of the question the word of the row that it met, without shares.

    encoder: its vectors find the nearest word where no stem is the same; None: only stems meet.
    """
    held: dict[int, list[Field]] = {}
    for field in FIELDS:
        for id in dict.fromkeys(words.ids_of(row, field).tolist()):
            held.setdefault(id, []).append(field)
    spelled = [words.vocabulary.word(id) for id in held]
    stems = stem_all(spelled)
    near = [id for id, fields in held.items() if not NEAR_FIELDS.isdisjoint(fields)]
    vectors = unit_rows(np.asarray(encoder.vectors[near], np.float32)) if encoder and near else None
    found = []
    for stem, word in distinct(asked).items():
        alike = [at for at, other in enumerate(stems) if other == stem]
        if alike:
            fields = {field for at in alike for field in held[list(held)[at]]}
            met = word if any(spelled[at] == word for at in alike) else spelled[alike[0]]
            found.append(Met(word, met, 1.0, tuple(field for field in FIELDS if field in fields)))
        elif vectors is not None and encoder is not None:
            found.append(_nearest(word, near, vectors, encoder, held))
        else:
            found.append(Met(word))
    return found


def _nearest(
    word: str, near: Sequence[int], vectors: Matrix, encoder: TfidfEncoder, held: Mapping[int, Sequence[Field]]
) -> Met:
    id = encoder.vocabulary.id(word)
    vector = unit_rows(np.asarray(encoder.vectors[[] if id is None else [id]], np.float32))
    known = vectors.any(axis=1)
    if not vector.any() or not known.any():
        return Met(word)
    cosines = np.where(known, vectors @ vector[0], -2.0)
    best = int(np.argmax(cosines))
    return Met(word, encoder.vocabulary.word(near[best]), float(cosines[best]), tuple(held[near[best]]))


def distinct(asked: Sequence[str]) -> dict[str, str]:
    """stem -> the first word of the question that has it, in order."""
    found: dict[str, str] = {}
    for stem, word in zip(stem_all(asked), asked, strict=True):
        found.setdefault(stem, word)
    return found


def lexical_shares(
    asked: Sequence[str], postings: Postings, row: int, weights: Mapping[int, float] | None = None
) -> dict[str, float]:
    """stem -> what it adds to the BM25 score of a row; their sum is the score.

    weights: stem id -> what it counts; None: each word of the question once.
    """
    shares: dict[str, float] = {}
    for share in postings.shares(asked, row):
        stem, id = share.term.stem, share.term.id
        if weights is None or id is None:
            shares[stem] = shares.get(stem, 0.0) + share.score
        else:
            shares[stem] = weights[id] * share.score
    return shares


def cosine_shares(
    text: str, encoder: TfidfEncoder, index: VectorIndex, rows: NDArray[np.int64]
) -> tuple[Mapping[str, int], Scores]:
    """stem -> column, and what each stem adds to the cosine of each row, [len(rows), stems]; the sum is the cosine.

    A question's vector is a sum over its words, divided by its length: each word's part of it has a product with
    the document's vector.
    """
    words, parts = query_parts(text, encoder)
    stems = distinct(words)
    columns = {stem: at for at, stem in enumerate(stems)}
    shares = np.zeros((len(rows), len(columns)))
    for stem, part in zip(stem_all(words), parts, strict=True):
        shares[:, columns[stem]] += index.similarities(part, rows)
    return columns, shares


def query_parts(text: str, encoder: TfidfEncoder) -> tuple[list[str], Matrix]:
    """The words that `encoder.query` reads and what each adds to the vector, [n, d]; zero rows for unknown words."""
    words, known, added = encoder.parts(text)
    parts = np.zeros((len(words), encoder.vectors.shape[1]), np.float32)
    parts[known] = added
    length = float(np.linalg.norm(parts.sum(axis=0, dtype=np.float64)))
    return words, (parts / length).astype(np.float32) if length else parts


def adding_up(parts: Scores, total: float) -> Scores:
    """The parts with what rounding lost spread over them, so that they add up to the total; zeros for a zero total.

    >>> adding_up(np.array([0.25, 0.0, 0.75]), 2.0).tolist()
    [0.5, 0.0, 1.5]
    >>> adding_up(np.array([0.5, -0.25]), 0.0).tolist()
    [0.0, 0.0]
    """
    size = float(np.abs(parts).sum())
    if not total or not size:
        return np.zeros(len(parts))
    whole = float(parts.sum())
    scaled = parts * (total / whole) if whole * total > 0 else parts
    size = float(np.abs(scaled).sum())
    return scaled + (total - float(scaled.sum())) * np.abs(scaled) / size
