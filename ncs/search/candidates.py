"""The documents that a question is answered from: the best of the words, of the vectors, and what defines a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.search.bm25 import Bm25Ranker
from ncs.search.head_signal import FAR, HeadSignal
from ncs.search.ncs import NcsRanker
from ncs.storage.arrays import distinct
from ncs.storage.postings import leading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ncs.search.expansion import Wording
    from ncs.search.question import Intent
    from ncs.search.rankers import Ranker
    from ncs.search.ranking import Hidden
    from ncs.search.weights import Weights
    from ncs.storage.document_facts import Structure
    from ncs.types import Mask

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

DEPTH = 1000
"""Documents that each part is asked for."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the default ranker is made of. head: where the index has a learnt one that counts."""

    lexical: Bm25Ranker
    dense: NcsRanker
    structure: Structure
    head: HeadSignal | None = None

    @classmethod
    def of(cls, rankers: Sequence[Ranker], structure: Structure, head: HeadSignal | None, name: str) -> Parts:
        """BadInput where the rankers are not a lexical and a dense one."""
        lexical, dense = rankers
        if not isinstance(lexical, Bm25Ranker):
            raise BadInput(f"the first part of {name!r} must be a bm25 ranker, not {lexical.name!r}")
        if not isinstance(dense, NcsRanker):
            raise BadInput(f"the second part of {name!r} must be an ncs ranker, not {dense.name!r}")
        return cls(lexical, dense, structure, head)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows and what the parts score them, [n] each: lexical, with `spelling` of it by other spellings; meaning, the
    cosine; learnt, what a head says."""

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

    def best_first(self, weights: Weights) -> tuple[Candidates, Scores, float]:
        """In the order of `base`, with that, and the lexical score that counts 1; there must be some."""
        best = max(float(self.lexical.max()), 1e-9)
        base = self.base(weights, best)
        order = np.argsort(-base, kind="stable")
        return self.at(order), base[order], best

    def signals(self, weights: Weights, best: float, *, head: bool) -> dict[str, Scores]:
        """Name -> [n]: what these scores count; best: the lexical score that counts 1."""
        found = {"lexical": (self.lexical - self.spelling) / best, "spelling": self.spelling / best}
        found["meaning"] = weights.meaning * np.maximum(self.meaning, 0.0)
        return {**found, "learnt": weights.head * self.learnt} if head else found

    def base(self, weights: Weights, best: float) -> Scores:
        """The sum of these signals, [n]."""
        return self.lexical / best + weights.meaning * np.maximum(self.meaning, 0.0) + weights.head * self.learnt


def find(
    parts: Parts,
    intent: Intent,
    wording: Wording,
    weights: Weights,
    n: int,
    *,
    allowed: Mask | None = None,
    hidden: Hidden | None = None,
) -> Candidates:
    """Ascending rows: the best n by all parts together, the hidden one, and what defines a name in the question."""
    ids, words = {**wording.asked, **wording.added}, " ".join(intent.words)
    query, dense = parts.dense.encoder.query(words), parts.dense.index
    some = [parts.lexical.postings.leading(ids, max(n, DEPTH), allowed=allowed)[0]]
    if query.any():
        near, _ = dense.search(query[None], min(max(n, DEPTH), max(1, len(dense))), allowed=allowed)
        some.append(near[0][near[0] >= 0])
    asked = parts.head.question(words) if parts.head else query
    if parts.head:
        some.append(np.array(parts.head.near(asked, max(n, DEPTH), allowed=allowed), np.int64))
    found = np.concatenate([*some, np.array([hidden.row] if hidden else [], np.int64)])
    defining = [parts.structure.symbols.match(symbol, allowed=allowed)[0] for symbol in intent.symbols]
    defined = distinct(np.concatenate([*defining, np.zeros(0, np.int64)]))
    rows = distinct(np.concatenate([found, defined]))
    learnt = parts.head.values(asked, rows, words) if parts.head else np.zeros(len(rows))
    meaning = dense.similarities(query, rows).astype(np.float64)
    scored = Candidates(rows, parts.lexical.postings.scores(ids, rows), np.zeros(len(rows)), meaning, learnt)
    best = _best(_told(scored, hidden), _among(rows, found), _among(rows, defined), weights, n)
    return _added(best, parts, wording.added, hidden)


def _among(rows: Rows, some: Rows) -> NDArray[np.bool_]:
    """Which of these rows, ascending and distinct, are among some of them."""
    met = np.zeros(len(rows), np.bool_)
    met[np.searchsorted(rows, some)] = True
    return met


def _told(scored: Candidates, hidden: Hidden | None) -> Candidates:
    """With what is told of the hidden document instead of what the parts say."""
    if hidden:
        at = scored.rows == hidden.row
        scored.lexical[at], scored.meaning[at] = hidden.lexical + hidden.spelling, hidden.meaning
        scored.learnt[at] = max(0.0, hidden.learnt) / FAR
    return scored


def _best(
    scored: Candidates, found: NDArray[np.bool_], defined: NDArray[np.bool_], weights: Weights, n: int
) -> Candidates:
    """The n best that were found, and all that are defined."""
    at = np.flatnonzero(found)
    some = scored.at(at)
    base = some.base(weights, max(float(some.lexical.max(initial=0)), 1e-9))
    kept = _among(scored.rows, leading(some.rows, base, n)[0])
    return scored.at(np.flatnonzero(kept | defined))


def _added(found: Candidates, parts: Parts, added: Mapping[int, float], hidden: Hidden | None) -> Candidates:
    """With what other spellings are in the lexical scores."""
    spelling = parts.lexical.postings.scores(added, found.rows)
    if hidden:
        spelling[found.rows == hidden.row] = hidden.spelling
    return replace(found, spelling=spelling)
