"""Which words of a function a head weighs, beside what TF-IDF makes of them; without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.encoder import inverse_document_frequency, term_counts

if TYPE_CHECKING:
    from ncs.vocabulary import WordTable
    from unif.head import Head


@dataclass(frozen=True, slots=True)
class Attention:
    """A word of a function, how often it stands there, and its share of both weightings; each adds up to 1."""

    word: str
    count: int
    learnt: float
    tfidf: float


def attention(head: Head, words: WordTable, row: int) -> list[Attention]:
    """The distinct words of a row's NCS_FIELDS, by (-learnt, word); a word that the head does not know has 0."""
    counts = term_counts(words, row, row + 1)
    ids, tf = counts.indices, counts.data.astype(np.float64)
    names = [words.vocabulary.word(int(id)) for id in ids]
    at = np.array([-1 if (id := head.vocabulary.id(name)) is None else id for name in names], np.int64)
    learnt, known = np.zeros(len(ids)), at >= 0
    times = np.minimum(tf, 1) if head.about.get("unique") else tf
    learnt[known] = times[known] * head.code.weights(at[known])
    tfidf = (1 + np.log(tf)) * inverse_document_frequency(words)[ids]
    shares = [part / (part.sum() or 1) for part in (learnt, tfidf)]
    found = map(Attention, names, tf.astype(int).tolist(), *(share.tolist() for share in shares))
    return sorted(found, key=lambda each: (-each.learnt, each.word))
