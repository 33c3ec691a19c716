"""The reasons of a ranker's hits: what it can truthfully say of its scores, and nothing where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ncs.search.bm25 import Bm25Ranker
from ncs.search.explain.explanation import Explanation, Met, Reasons
from ncs.search.explain.hybrid import explain_hybrid
from ncs.search.explain.meeting import adding_up, cosine_shares, distinct, lexical_shares, meet
from ncs.search.hybrid import HybridRanker
from ncs.search.ncs import NcsRanker
from ncs.search.rrf import RrfRanker
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize

if TYPE_CHECKING:
    from ncs.search.rankers import Ranker
    from ncs.storage.words import WordTable
    from ncs.types import Mask


def explain(
    ranker: Ranker, text: str, k: int, words: WordTable, *, allowed: Mask | None = None, unfold: bool = False
) -> Explanation:
    """The best k rows of any ranker, as its `search` gives them, with their reasons.

    hybrid: every signal. bm25: the share of every word. ncs: the share of every word of the cosine. rrf: the share
    of every part. A ranker around one of these passes on the words it put to the question. Of any other: which words
    stand in the document, and no shares. unfold: near duplicates too, which the default ranker folds.
    """
    if isinstance(ranker, HybridRanker):
        return explain_hybrid(ranker, text, k, allowed=allowed, unfold=unfold)
    if isinstance(ranker, Bm25Ranker):
        return _explain_bm25(ranker, text, k, words, allowed)
    if isinstance(ranker, NcsRanker):
        return _explain_ncs(ranker, text, k, words, allowed)
    if isinstance(ranker, RrfRanker):
        return _explain_rrf(ranker, text, k, words, allowed)
    from ncs.search.baselines.enhanced import EnhancedRanker  # here, because a plain question needs none of it

    if isinstance(ranker, EnhancedRanker):
        added = ranker.added(text)
        return replace(explain(ranker.part, " ".join([text, *added]), k, words, allowed=allowed), added=tuple(added))
    return _meetings_only(ranker.search(text, k, allowed=allowed), text, words)


def _explain_bm25(ranker: Bm25Ranker, text: str, k: int, words: WordTable, allowed: Mask | None) -> Explanation:
    terms = ranker.terms(text)
    asked = [term.word for term in terms]
    idf = ranker.postings.idf(asked)
    reasons = []
    for row, score in ranker.search(text, k, allowed=allowed):
        shares = lexical_shares(asked, ranker.postings, row)
        met = [
            replace(one, idf=idf[stem], shares={"lexical": shares[stem]})
            for stem, one in zip(distinct(asked), meet(asked, words, row), strict=True)
        ]
        reasons.append(Reasons(row, score, {"lexical": score}, words=tuple(met)))
    return _explanation(text, asked, reasons)


def _explain_ncs(ranker: NcsRanker, text: str, k: int, words: WordTable, allowed: Mask | None) -> Explanation:
    tokens = tokenize(text)
    asked = tokens if ranker.encoder.stop_words else content_words(tokens)
    hits = ranker.search(text, k, allowed=allowed)
    columns, cosines = cosine_shares(text, ranker.encoder, ranker.index, np.array([row for row, _ in hits], np.int64))
    reasons = []
    for at, (row, score) in enumerate(hits):
        shares = adding_up(cosines[at], score)
        met = [
            replace(one, shares={"meaning": float(shares[columns[stem]])})
            for stem, one in zip(distinct(asked), meet(asked, words, row, ranker.encoder), strict=True)
        ]
        reasons.append(Reasons(row, score, {"meaning": score}, words=tuple(met)))
    return _explanation(text, asked, reasons)


def _explain_rrf(ranker: RrfRanker, text: str, k: int, words: WordTable, allowed: Mask | None) -> Explanation:
    """Each part adds 1 / (constant + its rank of the row)."""
    hits = ranker.search(text, k, allowed=allowed)
    depth = max(k, ranker.depth)
    ranks = {
        part.name: {row: rank for rank, (row, _) in enumerate(part.search(text, depth, allowed=allowed), 1)}
        for part in ranker.rankers
    }
    found = _meetings_only(hits, text, words)
    shares = [
        {name: 1 / (ranker.constant + rank[row]) if row in rank else 0.0 for name, rank in ranks.items()}
        for row, _ in hits
    ]
    return replace(
        found, reasons=tuple(replace(one, shares=each) for one, each in zip(found.reasons, shares, strict=True))
    )


def _meetings_only(hits: Sequence[tuple[int, float]], text: str, words: WordTable) -> Explanation:
    asked = content_words(tokenize(text))
    return _explanation(text, asked, [Reasons(row, score, words=_met(asked, words, row)) for row, score in hits])


def _met(asked: Sequence[str], words: WordTable, row: int) -> tuple[Met, ...]:
    return tuple(meet(asked, words, row))


def _explanation(text: str, asked: Sequence[str], reasons: Sequence[Reasons]) -> Explanation:
    grammar = [word for word in dict.fromkeys(tokenize(text)) if word not in asked]
    return Explanation(tuple(dict.fromkeys(asked)), grammar=tuple(grammar), reasons=tuple(reasons))
