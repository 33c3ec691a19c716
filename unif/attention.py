"""Which words of a function a head weighs, beside what TF-IDF makes of them; without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.learn.tfidf import inverse_document_frequency, term_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from unif.head import Head


@dataclass(frozen=True, slots=True)
class Attention:
    """A word of a function, how often it stands there, and its share of both weightings; each adds up to 1."""

    word: str
    count: int
    learnt: float
    tfidf: float


def attention(head: Head, words: WordTable, row: int) -> list[Attention]:
    """The distinct words of a row's NCS_FIELDS, by (-learnt, word); a word that the head does not know has 0.

    Raises BadInput for a head whose words have no weights of their own.
    """
    if head.reads != "fields" or not head.code.is_weighted_bag:
        raise BadInput(f"a head of kind {head.code.kind!r} does not weigh words; take one that `ncs train unif` made")
    counts = term_counts(words, row, row + 1)
    ids, tf = counts.indices, counts.data.astype(np.float64)
    names = [words.vocabulary.word(int(id)) for id in ids]
    times = np.minimum(tf, 1) if head.about.get("unique") else tf
    learnt = _learnt(head, names, times)
    tfidf = (1 + np.log(tf)) * inverse_document_frequency(words)[ids]
    shares = [part / (part.sum() or 1) for part in (learnt, tfidf)]
    found = map(Attention, names, tf.astype(int).tolist(), *(share.tolist() for share in shares))
    return sorted(found, key=lambda each: (-each.learnt, each.word))


def _learnt(head: Head, names: list[str], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the head makes of each word; that of a word it knows by its n-grams is theirs together."""
    tokens = [head.code.tokens.ids([name]) for name in names]
    owner = np.repeat(np.arange(len(names)), [len(each) for each in tokens])
    flat = np.array([id for each in tokens for id in each], np.int64)
    shares: NDArray[np.float64] = np.bincount(owner, head.code.weights(flat, times[owner]), len(names)).astype(float)
    return shares
