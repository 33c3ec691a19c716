"""Candidate retrieval of the default ranker: the best documents by words and by vectors, and definitions of symbols."""

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
    from ncs.search.ranking import AblatedScores
    from ncs.storage.document_facts import DocumentFacts
    from ncs.types import Mask

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

DEPTH = 1000
"""Documents retrieved by each part."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the default ranker. head: of an index with a learned head of positive weight."""

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
    """Rows and their scores, [n] each: lexical, of which `spelling` from other spellings; meaning, the cosine;
    head_values, of a learned head.
    """

    rows: Rows
    lexical: Scores
    spelling: Scores
    meaning: Scores
    head_values: Scores

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, positions: NDArray[np.int64]) -> Candidates:
        """Some of them, in this order."""
        scores = (each[positions] for each in (self.lexical, self.spelling, self.meaning, self.head_values))
        return Candidates(self.rows[positions], *scores)

    def base(self, meaning: float, head: float = 0.0) -> Scores:
        """The score by words, vectors and head alone, [n]; lexical scores are divided by the best one."""
        best = max(float(self.lexical.max(initial=0)), 1e-9)
        return self.lexical / best + meaning * np.maximum(self.meaning, 0.0) + head * self.head_values


def find(
    parts: Parts,
    intent: Intent,
    expansion: Expansion,
    n: int,
    *,
    meaning: float,
    head: float = 0.0,
    allowed: Mask | None = None,
    ablated: AblatedScores | None = None,
) -> Candidates:
    """Candidates by ascending row: the best n by all parts together, the ablated one, and definitions of query symbols.

    meaning, head: weights of a cosine and of a head's value.
    """
    words, postings, dense = " ".join(intent.words), parts.lexical.postings, parts.dense.vectors
    query, counts, depth = parts.dense.encoder.query(words), expansion.counts, max(n, DEPTH)
    some = [postings.top_rows(counts, depth, allowed=allowed)[0]]
    if query.any():
        nearest, _ = dense.search(query[None], min(depth, max(1, len(dense))), allowed=allowed)
        some.append(nearest[0][nearest[0] >= 0])
    head_query = parts.head.query_vector(words) if parts.head else query
    if parts.head:
        some.append(np.array(parts.head.near(head_query, depth, allowed=allowed), np.int64))
    best = np.concatenate([*some, np.array([ablated.row] if ablated else [], np.int64)])
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
    if ablated:
        at = rows == ablated.row
        candidates.lexical[at], candidates.meaning[at] = ablated.lexical + ablated.spelling, ablated.meaning
        candidates.head_values[at] = max(0.0, ablated.head) / FAR
    retrieved = candidates.at(np.flatnonzero(_among(rows, best)))
    selected = _among(rows, top_rows(retrieved.rows, retrieved.base(meaning, head), n)[0]) | _among(rows, defining)
    candidates = candidates.at(np.flatnonzero(selected))
    spelling = postings.scores(expansion.other_spellings, candidates.rows)
    if ablated:
        spelling[candidates.rows == ablated.row] = ablated.spelling
    return replace(candidates, spelling=spelling)


def _among(rows: Rows, some: Rows) -> NDArray[np.bool_]:
    """Mask of the rows (ascending, distinct) that are in `some`, a subset."""
    among = np.zeros(len(rows), np.bool_)
    among[np.searchsorted(rows, some)] = True
    return among
