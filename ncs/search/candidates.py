"""The documents that a query is answered from: the best by words and by vectors, and what defines its symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import NcsRanker
from ncs.search.signals.head import FAR, HeadSignal
from ncs.storage.arrays import distinct
from ncs.storage.postings import top_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.expansion import Expansion
    from ncs.search.question import Intent
    from ncs.search.rankers import Ranker
    from ncs.search.ranking import Hidden
    from ncs.storage.document_facts import DocumentFacts
    from ncs.types import Mask

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

DEPTH = 1000
"""Documents that each part retrieves."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the default ranker is made of. head: where the index has a learnt one that counts."""

    lexical: Bm25Ranker
    dense: NcsRanker
    facts: DocumentFacts
    head: HeadSignal | None = None

    @classmethod
    def of(cls, rankers: Sequence[Ranker], facts: DocumentFacts, head: HeadSignal | None, name: str) -> Parts:
        """BadInput where the rankers are not a lexical and a dense one."""
        lexical, dense = rankers
        if not isinstance(lexical, Bm25Ranker):
            raise BadInput(f"the first part of {name!r} must be a bm25 ranker, not {lexical.name!r}")
        if not isinstance(dense, NcsRanker):
            raise BadInput(f"the second part of {name!r} must be an ncs ranker, not {dense.name!r}")
        return cls(lexical, dense, facts, head)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows and what the parts score them, [n] each: lexical, with `spelling` of it by other spellings; meaning, the
    cosine; learnt, values of a head."""

    rows: Rows
    lexical: Scores
    spelling: Scores
    meaning: Scores
    learnt: Scores

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, positions: NDArray[np.int64]) -> Candidates:
        """Some of them, in this order."""
        scores = (each[positions] for each in (self.lexical, self.spelling, self.meaning, self.learnt))
        return Candidates(self.rows[positions], *scores)

    def base(self, meaning: float, head: float = 0.0) -> Scores:
        """The score by words, vectors and head alone, [n]; words count by the best lexical score."""
        best = max(float(self.lexical.max(initial=0)), 1e-9)
        return self.lexical / best + meaning * np.maximum(self.meaning, 0.0) + head * self.learnt


def find(
    parts: Parts,
    intent: Intent,
    expansion: Expansion,
    n: int,
    *,
    meaning: float,
    head: float = 0.0,
    allowed: Mask | None = None,
    hidden: Hidden | None = None,
) -> Candidates:
    """Ascending rows: the best n by all parts together, the hidden one, and what defines a symbol of the query.

    meaning, head: what a cosine and a head's value count.
    """
    words, postings, dense = " ".join(intent.words), parts.lexical.postings, parts.dense.vectors
    query, counts, depth = parts.dense.encoder.query(words), expansion.counts, max(n, DEPTH)
    some = [postings.top_rows(counts, depth, allowed=allowed)[0]]
    if query.any():
        nearest, _ = dense.search(query[None], min(depth, max(1, len(dense))), allowed=allowed)
        some.append(nearest[0][nearest[0] >= 0])
    head_query = parts.head.question(words) if parts.head else query
    if parts.head:
        some.append(np.array(parts.head.near(head_query, depth, allowed=allowed), np.int64))
    best = np.concatenate([*some, np.array([hidden.row] if hidden else [], np.int64)])
    matches = [parts.facts.definitions.match(symbol, allowed=allowed)[0] for symbol in intent.symbols]
    defining = distinct(np.concatenate([*matches, np.zeros(0, np.int64)]))
    rows = distinct(np.concatenate([best, defining]))
    candidates = Candidates(
        rows,
        postings.scores(counts, rows),
        np.zeros(len(rows)),
        dense.similarities(query, rows).astype(np.float64),
        parts.head.values(head_query, rows, words) if parts.head else np.zeros(len(rows)),
    )
    if hidden:
        at = rows == hidden.row
        candidates.lexical[at], candidates.meaning[at] = hidden.lexical + hidden.spelling, hidden.meaning
        candidates.learnt[at] = max(0.0, hidden.learnt) / FAR
    retrieved = candidates.at(np.flatnonzero(_among(rows, best)))
    chosen = _among(rows, top_rows(retrieved.rows, retrieved.base(meaning, head), n)[0]) | _among(rows, defining)
    candidates = candidates.at(np.flatnonzero(chosen))
    spelling = postings.scores(expansion.added, candidates.rows)
    if hidden:
        spelling[candidates.rows == hidden.row] = hidden.spelling
    return replace(candidates, spelling=spelling)


def _among(rows: Rows, some: Rows) -> NDArray[np.bool_]:
    """Which of these rows, ascending and distinct, are among some of them."""
    among = np.zeros(len(rows), np.bool_)
    among[np.searchsorted(rows, some)] = True
    return among
