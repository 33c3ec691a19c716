"""Explanations of scores as plain dictionaries: the shares of signals and words, and their causes.

The signals of hybrid, bm25, ncs and rrf are explained; for other rankers, which query words are in the document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ncs.learn.tfidf import unit_rows
from ncs.text.stems import stem_all
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.types import FIELDS, NCS_FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.tfidf import TfidfEncoder
    from ncs.search.rankers import Internals, Ranker
    from ncs.search.ranking import Ranking
    from ncs.storage.definitions import Symbol
    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.vectors import Vectors
    from ncs.storage.words import WordReader
    from ncs.types import Matrix

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

DIGITS = 6
NEAR_FIELDS: frozenset[Field] = frozenset(NCS_FIELDS)
"""Fields searched for the nearest word: those of a document's vector."""


class Explanation(NamedTuple):
    """query: how the query was analyzed. hits: why each hit has its score, in order.

    Keys of the query: words (searched for), grammar and languages (words left out: stop words, and languages
    that nearly every document is in), added (words the ranker added), symbols (whose definitions are searched), kind
    (of query) and gates: number of candidates that vote in the consensus, the repositories of these, their effective
    number; support (repositories that use each leading name, on average), and the factors of the consensus and the
    file signal.

    Keys of a hit: score; shares (signal -> what it adds to the score, factors multiplied in; None where the ranker
    does not say); factors; words (of the query: word, met, the document's word of its stem, or else the nearest one
    by the word vectors, similarity, the fields of it, idf, shares); names (shared by good candidates: name,
    repositories of candidates that use it, share); title and title_share (words that the file's name says, and what
    that adds); defines (symbols of the query that it defines).
    """

    query: dict[str, Any]
    hits: list[dict[str, Any]]


def explain(ranker: Ranker, text: str, ranking: Ranking, table: WordReader) -> Explanation:
    """The hits of `ranker.rank(text, ...)`. table: the words of all documents."""
    content = content_words(tokenize(text))
    words = content if ranking.words is None else list(ranking.words)
    internals, rows = ranker.internals(), np.array(ranking.rows, np.int64)
    stems = first_words(words)
    idf = internals.postings.idf(words) if internals.postings else {}
    by_word = _word_scores(words, ranking, internals, rows)
    causes = _Causes(ranking, internals.facts, rows, internals.title) if internals.facts else None
    hits = []
    for at, (row, score) in enumerate(ranking.hits):
        factors = {name: float(values[at]) for name, values in ranking.factors.items()}
        factor = float(np.prod(list(factors.values())))
        shares = {name: float(values[at]) * factor for name, values in ranking.signals.items()}
        parts = {name: rescale(values[:, at], shares[name]) for name, values in by_word.items()}
        entries = match_words(words, table, row, internals.encoder)
        for i, (stem, entry) in enumerate(zip(stems, entries, strict=True)):
            entry |= {"idf": idf.get(stem), "shares": {name: float(values[i]) for name, values in parts.items()}}
        hit = {"score": score, "shares": shares or None, "factors": factors, "words": tuple(entries)}
        hits.append({**hit, **(causes.of(at, shares) if causes else NO_CAUSES)})
    intent, gates = ranking.intent, causes.gates() if causes else None
    query = {
        "words": tuple(dict.fromkeys(words)),
        "grammar": tuple(word for word in dict.fromkeys(tokenize(text)) if word not in content and word not in words),
        "languages": tuple(word for word in dict.fromkeys(content) if word not in words),
        "added": tuple(ranking.added),
        "symbols": tuple(map(_spelling, intent.symbols)) if intent else (),
        "kind": intent.kind if intent else None,
        "gates": gates,
    }
    return Explanation(query, hits)


NO_CAUSES: Mapping[str, Any] = {"names": (), "title": (), "title_share": 0.0, "defines": ()}


class _Causes:
    """The causes of the default ranker's signals: shared names, file names, definitions."""

    def __init__(self, ranking: Ranking, facts: DocumentFacts, rows: Rows, title: float) -> None:
        self._ranking, self._facts, self._rows = ranking, facts, rows
        self._evidence, analysis = ranking.evidence, ranking.analysis
        self._title_words: list[tuple[str, NDArray[np.bool_]]] = []
        self._titles = np.zeros(len(rows))
        if self._evidence and analysis:
            places, words = facts.file_roles, first_words(analysis.intent.words)
            self._title_words = [(word, places.title_match({stem: 1.0}, rows) > 0) for stem, word in words.items()]
            factors = np.prod(list(ranking.factors.values()), axis=0)
            self._titles = self._evidence.inside * title * places.title_match(analysis.idf, rows) * factors
        self._repositories = self._name_repositories()

    def _name_repositories(self) -> list[int]:
        """How many repositories of the pool use each name of the consensus."""
        if not self._evidence:
            return []
        pool, uses = self._evidence.pool, self._facts.uses
        ids, lengths = uses.of(pool)
        owners = np.repeat(self._facts.file_roles.repositories_of(pool), lengths)
        return [len(np.unique(owners[ids == name])) for name in self._evidence.consensus.names]

    def gates(self) -> dict[str, Any] | None:
        """The weights of the signals that are computed from the candidates."""
        if not self._evidence:
            return None
        consensus, inside = self._evidence.consensus, float(self._evidence.inside)
        owners = self._facts.file_roles.repositories_of(self._evidence.pool)
        numbers = {
            "effective": 1 / inside, "support": float(consensus.support), "consensus": consensus.gate, "inside": inside
        }  # fmt: skip
        rounded = {name: round(value, DIGITS) for name, value in numbers.items()}
        return {"candidates": len(owners), "repositories": len(np.unique(owners)), **rounded}

    def of(self, at: int, shares: Mapping[str, float]) -> dict[str, Any]:
        """The keys of one hit; shares: of its signals."""
        return {
            "names": tuple(self._names(at, shares.get("consensus", 0.0))),
            "title": tuple(word for word, rows in self._title_words if rows[at]),
            "title_share": float(self._titles[at]),
            "defines": tuple(self._defines(at)) if shares.get("definition") else (),
        }

    def _names(self, at: int, share: float) -> list[dict[str, Any]]:
        """The names of the consensus that the hit uses; their shares add up to the signal's."""
        if not self._evidence or not share:
            return []
        consensus, uses = self._evidence.consensus, self._facts.uses
        ids, _ = uses.of(self._rows[at : at + 1])
        used = np.flatnonzero(np.isin(consensus.names, ids))
        parts = rescale(consensus.lifts[used], share)
        return [
            {
                "name": uses.names.word(int(consensus.names[i])),
                "repositories": self._repositories[i],
                "share": float(part),
            }
            for i, part in zip(used.tolist(), parts, strict=True)
        ]

    def _defines(self, at: int) -> list[str]:
        symbols = self._ranking.intent.symbols if self._ranking.intent else ()
        return [_spelling(each) for each in symbols if self._rows[at] in self._facts.definitions.match(each)[0]]


def _spelling(symbol: Symbol) -> str:
    return ".".join((*symbol.qualifiers, symbol.name))


def _word_scores(words: Sequence[str], ranking: Ranking, internals: Internals, rows: Rows) -> dict[str, Scores]:
    """Signal -> what each stem of the query adds to it before weights, [stems, hits]; of signals made of words."""
    stems, scores = first_words(words), {}
    if internals.postings and "lexical" in ranking.signals:
        postings, impacts = internals.postings, dict(ranking.impacts)
        terms = [term for term in postings.terms(words) if term.documents]
        counts: Mapping[str, float] = Counter(term.stem for term in terms)
        if ranking.analysis:
            counts = ranking.analysis.expansion.query
        lexical = {stem: np.zeros(len(rows)) for stem in stems}
        for term in terms:
            own = impacts[term.stem] if term.stem in impacts else postings.scores({term.stem: 1.0}, rows)
            lexical[term.stem] = counts[term.stem] * own
        scores["lexical"] = np.array(list(lexical.values())).reshape(len(stems), len(rows))
    if internals.encoder and internals.vectors and "meaning" in ranking.signals:
        cosines = cosine_shares(" ".join(words), internals.encoder, internals.vectors, rows)
        zero = np.zeros(len(rows))
        scores["meaning"] = np.array([cosines.get(stem, zero) for stem in stems]).reshape(len(stems), len(rows))
    return scores


def first_words(words: Sequence[str]) -> dict[str, str]:
    """stem -> the first of the words that has it, in order."""
    result: dict[str, str] = {}
    for stem, word in zip(stem_all(words), words, strict=True):
        result.setdefault(stem, word)
    return result


def match_words(
    words: Sequence[str], table: WordReader, row: int, encoder: TfidfEncoder | None = None
) -> list[dict[str, Any]]:
    """For each stem of the query: word, met, similarity and fields.

    met: the row's word of this stem, with similarity 1; else the nearest one by the encoder's word vectors, with its
    cosine; None without a vector.
    """
    fields: dict[int, list[Field]] = {}
    for field in FIELDS:
        for id in dict.fromkeys(table.ids_of(row, field).tolist()):
            fields.setdefault(id, []).append(field)
    spellings = [table.vocabulary.word(id) for id in fields]
    stems = stem_all(spellings)
    candidates = [id for id, each in fields.items() if not NEAR_FIELDS.isdisjoint(each)]
    vectors = unit_rows(np.asarray(encoder.vectors[candidates], np.float32)) if encoder and candidates else None
    result = []
    for stem, word in first_words(words).items():
        entry: dict[str, Any] = {"word": word, "met": None, "similarity": None, "fields": ()}
        same = [at for at, other in enumerate(stems) if other == stem]
        if same:
            same_fields = {field for at in same for field in fields[list(fields)[at]]}
            match = word if any(spellings[at] == word for at in same) else spellings[same[0]]
            entry |= {
                "met": match,
                "similarity": 1.0,
                "fields": tuple(field for field in FIELDS if field in same_fields),
            }
        elif vectors is not None and encoder is not None and (nearest := _nearest(word, vectors, encoder)):
            at, similarity = nearest
            match = encoder.vocabulary.word(candidates[at])
            entry |= {"met": match, "similarity": similarity, "fields": tuple(fields[candidates[at]])}
        result.append(entry)
    return result


def _nearest(word: str, vectors: Matrix, encoder: TfidfEncoder) -> tuple[int, float] | None:
    """The unit vector nearest to a word's vector, and their cosine; None if there is none."""
    id = encoder.vocabulary.id(word)
    vector = unit_rows(np.asarray(encoder.vectors[[] if id is None else [id]], np.float32))
    nonzero = vectors.any(axis=1)
    if not vector.any() or not nonzero.any():
        return None
    cosines = np.where(nonzero, vectors @ vector[0], -2.0)
    best = int(np.argmax(cosines))
    return best, float(cosines[best])


def cosine_shares(text: str, encoder: TfidfEncoder, vectors: Vectors, rows: Rows) -> dict[str, Scores]:
    """stem -> its share of the cosine of each row, [len(rows)]; shares add up to the cosine.

    A query's vector is a normalized sum over its words, so each word's part has a product with the document's vector.
    """
    words, parts = query_parts(text, encoder)
    shares = {stem: np.zeros(len(rows)) for stem in first_words(words)}
    for stem, part in zip(stem_all(words), parts, strict=True):
        shares[stem] += vectors.similarities(part, rows)
    return shares


def query_parts(text: str, encoder: TfidfEncoder) -> tuple[list[str], Matrix]:
    """The words of `encoder.query` and the part of each in the vector, [n, d]; zero rows for unknown words."""
    words, positions, known_parts = encoder.parts(text)
    parts = np.zeros((len(words), encoder.vectors.shape[1]), np.float32)
    parts[positions] = known_parts
    length = float(np.linalg.norm(parts.sum(axis=0, dtype=np.float64)))
    return words, (parts / length).astype(np.float32) if length else parts


def rescale(parts: Scores, total: float) -> Scores:
    """The parts scaled to add up to the total, with the rounding error spread over them; zeros for a zero total.

    >>> rescale(np.array([0.25, 0.0, 0.75]), 2.0).tolist()
    [0.5, 0.0, 1.5]
    >>> rescale(np.array([0.5, -0.25]), 0.0).tolist()
    [0.0, 0.0]
    """
    size = float(np.abs(parts).sum())
    if not total or not size:
        return np.zeros(len(parts))
    parts_total = float(parts.sum())
    scaled = parts * (total / parts_total) if parts_total * total > 0 else parts
    size = float(np.abs(scaled).sum())
    return scaled + (total - float(scaled.sum())) * np.abs(scaled) / size
