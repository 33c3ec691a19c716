"""Queries made of documents, which answer them, and the scores of these documents without what their query shows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from ncs.learn.tfidf import tfidf, unit_rows
from ncs.search.question import expand, read_intent
from ncs.search.ranking import AblatedScores
from ncs.storage.file_roles import SOURCE
from ncs.storage.names import Symbol
from ncs.text.stems import stem_all
from ncs.text.tokens import content_words, tokenize
from ncs.types import FIELDS, NCS_FIELDS, Field

if TYPE_CHECKING:
    from ncs.search.hybrid import Parts
    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.documents import Documents
    from ncs.storage.words import WordTable
    from ncs.types import Document, Matrix, Rows

Kind = Literal["doc", "seen", "name", "symbol"]
"""A doc comment without or with the comment in the document; a name in words, without it; a name as spelled."""
MAX_QUERIES: Mapping[Kind, int] = {"doc": 140, "seen": 60, "name": 60, "symbol": 40}
ABLATED_FIELDS: Mapping[Kind, Field] = {"doc": "doc", "name": "name"}
"""Kind -> the field of its document that ranking must not see."""
LARGE, MIN_SHARE = 25_000, 0.15
"""Documents from which on all queries are made; the share of them for the smallest index, so that they take less than a
fifth of its build."""
MIN_WORDS, MAX_WORDS = 3, 25
"""Words of a comment's first sentence; for the former, stop words do not count."""
HEAD = 8
"""Words of a comment that are compared to find comments that several documents have."""
SAMPLE, RUN = 4_096, 64
"""Documents whose mean vector stands for the mean of all; how many of them in a row."""


@dataclass(frozen=True, slots=True)
class SyntheticQuery:
    """A query made of the document in `row`."""

    kind: Kind
    text: str
    row: int


def word_table(parts: Parts) -> WordTable:
    """The words of a new index, which has one segment."""
    return cast("WordTable", parts.facts.words.table())


def synthetic_queries(parts: Parts, documents: Documents, *, min_share: float = MIN_SHARE) -> list[SyntheticQuery]:
    """At most MAX_QUERIES of each kind, from documents in a random order, which is always the same."""
    words, facts, rng = word_table(parts), parts.facts, np.random.default_rng(0)
    product = np.flatnonzero(facts.file_roles.roles_of(np.arange(len(words))) == SOURCE)
    commented = rng.permutation(np.intersect1d(product, _own_comments(words)))
    shuffled = rng.permutation(product)
    third, half = 2 * len(commented) // 3, len(shuffled) // 2
    rows: Mapping[Kind, Rows] = {
        "doc": commented[:third],
        "seen": commented[third:],
        "name": shuffled[:half],
        "symbol": shuffled[half:],
    }
    share = min(1.0, max(min_share, len(words) / LARGE))
    return [
        query
        for kind, most in MAX_QUERIES.items()
        for query in _queries(kind, rows[kind], int(most * share), words, documents, facts)
    ]


def _own_comments(words: WordTable) -> Rows:
    """Rows with a comment that no other row has."""
    at = FIELDS.index("doc") + len(FIELDS) * np.arange(len(words))
    begins, lengths = words.offsets[at], words.offsets[at + 1] - words.offsets[at]
    rows = np.flatnonzero(lengths >= MIN_WORDS)
    heads = np.full((len(rows), HEAD), -1, np.int32)
    for n in range(HEAD):
        longer = lengths[rows] > n
        heads[longer, n] = words.ids[begins[rows[longer]] + n]
    _, first, counts = np.unique(heads, axis=0, return_index=True, return_counts=True)
    return np.sort(rows[first[counts == 1]])


def _queries(
    kind: Kind, rows: Rows, most: int, words: WordTable, documents: Documents, facts: DocumentFacts
) -> Iterator[SyntheticQuery]:
    """Queries from the first rows that yield one, among the first 4 * `most` candidates."""
    candidates, n = rows[: 4 * most].tolist(), 0
    for document, row in zip(documents.documents(candidates), candidates, strict=True):
        text = _name(document, facts, kind) if kind in ("name", "symbol") else _sentence(document, words, row)
        if text and n < most:
            n += 1
            yield SyntheticQuery(kind, text, row)


def _sentence(document: Document, words: WordTable, row: int) -> str:
    """The first sentence of a comment, "" where it says too little; its words where the index keeps no code."""
    comment = " ".join(document.words.get("doc", ()))
    comment = comment or " ".join(words.vocabulary.word(int(id)) for id in words.ids_of(row, "doc")[:12])
    text = " ".join(re.split(r"(?<=[.!?:])\s|\n\s*\n", comment.strip())[0].split()[:MAX_WORDS])
    return text if len(set(content_words(tokenize(text)))) >= MIN_WORDS else ""


def _name(document: Document, facts: DocumentFacts, kind: Kind) -> str:
    """A name of several words that only one document has: split for "name", as spelled for "symbol"."""
    split = tokenize(document.name)
    if not 2 <= len(split) <= 6 or document.name.startswith("__"):
        return ""
    if len(facts.definitions.match(Symbol(document.name))[0]) != 1:
        return ""
    return " ".join(split) if kind == "name" else document.name


class FieldAblation:
    """Scores single documents again as if one field of them were empty; all other documents keep theirs.

    Word vectors and document frequencies learned from that field stay; leaving them out would take one build per query.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts, self._words, self._encoder = parts, word_table(parts), parts.dense.encoder
        self._mean_length = float(parts.lexical.postings.lengths().mean(dtype=np.float64)) or 1.0
        self._unit = unit_rows(self._encoder.vectors)
        self._mean = self._mean_vector() if parts.dense.centre else np.zeros(self._unit.shape[1], np.float32)

    def of(self, queries: list[SyntheticQuery]) -> list[AblatedScores | None]:
        """The scores of each query's document without the field that ranking must not see; None if there is none."""
        return [
            self.scores(query.text, query.row, ABLATED_FIELDS[query.kind]) if query.kind in ABLATED_FIELDS else None
            for query in queries
        ]

    def scores(self, text: str, row: int, field: Field | None) -> AblatedScores:
        """The scores of a row without a field (None: with all fields) for a query."""
        words = list(read_intent(text, self._parts.facts.languages).words)
        expansion = expand(words, self._parts.lexical.postings, lambda: list(self._words.vocabulary))
        stems, idf = stem_all(words), self._parts.lexical.postings.idf(words)
        frequencies, saturation = self._frequencies(row, field)
        return AblatedScores(
            row,
            lexical=self._bm25(expansion.query, frequencies, saturation),
            meaning=float(self._vector(row, field) @ self._encoder.query(" ".join(words))),
            coverage=sum(weight for stem, weight in idf.items() if stem in frequencies) / max(sum(idf.values()), 1e-9),
            name=0.0 if field == "name" else None,
            spelling=self._bm25(expansion.other_spellings, frequencies, saturation),
            plain=self._bm25({stem: float(stems.count(stem)) for stem in stems}, frequencies, saturation),
            general=float(self._parts.general.scores(words, np.array([row]), field)[0]) if self._parts.general else 0.0,
        )

    def _frequencies(self, row: int, field: Field | None) -> tuple[Mapping[str, float], float]:
        """The frequency of each stem in a row, weighted by field and without one field, and the saturation of BM25."""
        ranker, length = self._parts.lexical, 0.0
        frequencies: dict[str, float] = defaultdict(float)
        for name, weight in ranker.weights.items():
            if name != field and weight:
                ids = self._words.ids_of(row, name)
                length += weight * len(ids)
                for stem in stem_all(self._words.vocabulary.word(int(id)) for id in ids):
                    frequencies[stem] += weight
        return dict(frequencies), ranker.k1 * (1 - ranker.b + ranker.b * length / self._mean_length)

    def _bm25(self, weights: Mapping[str, float], frequencies: Mapping[str, float], saturation: float) -> float:
        """The BM25 score for stems of these weights."""
        postings, score = self._parts.lexical.postings, 0.0
        for stem, weight in weights.items():
            if frequency := frequencies.get(stem):
                score += weight * postings.idf_of(stem) * frequency / (frequency + saturation)
        return score

    def _vector(self, row: int, field: Field | None) -> Matrix:
        """The unit vector [d] of a row without a field, centered where the ranker centers."""
        ids = np.concatenate([self._words.ids_of(row, name) for name in NCS_FIELDS if name != field])
        ids, counts = np.unique(ids, return_counts=True)
        weights = ((1 + np.log(counts)) * self._encoder.idf[ids]).astype(np.float32)
        vector: Matrix = unit_rows((weights @ self._unit[ids])[None])[0]
        return unit_rows((vector - self._mean)[None])[0] if vector.any() else vector

    def _mean_vector(self) -> Matrix:
        """The mean of all documents, or of runs of RUN documents at evenly spaced rows."""
        n = len(self._words)
        starts, run = [0], n
        if n > SAMPLE:
            starts, run = np.linspace(0, n - RUN, SAMPLE // RUN).astype(int).tolist(), RUN
        means = [
            unit_rows(tfidf(self._words, self._encoder.idf, at, at + run) @ self._unit).mean(axis=0, dtype=np.float64)
            for at in starts
        ]
        mean: Matrix = np.mean(means, axis=0).astype(np.float32)
        return mean
