"""Reciprocal-rank fusion against sums by hand and brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.errors import BadInput
from ncs.search.bm25 import Bm25Ranker
from ncs.search.fusion import RrfRanker, fuse
from ncs.types import Field
from tests.words import table


@given(st.lists(st.permutations(range(9)), max_size=4), st.integers(1, 12))
def test_any_rankings_are_fused_as_with_exact_fractions(rankings: list[list[int]], k: int) -> None:
    cut = [ranking[: 3 * number] for number, ranking in enumerate(rankings)]
    scores: dict[int, Fraction] = {}
    for ranking in cut:
        for rank, row in enumerate(ranking, 1):
            scores[row] = scores.get(row, Fraction(0)) + Fraction(1, 60 + rank)
    fused = fuse([[(row, -float(rank)) for rank, row in enumerate(ranking)] for ranking in cut], k)
    rows = sorted(scores, key=lambda row: (-scores[row], row))[:k]
    assert [row for row, _ in fused] == rows
    assert [score for _, score in fused] == pytest.approx([float(scores[row]) for row in rows], abs=1e-15)


# by their names row 1 is the best for "file", by their comments row 3
DOCUMENTS = (
    "name: open file; doc: a file is opened", "name: file; doc: a file or more", "name: open socket",
    "name: read big file; doc: file",
)  # fmt: skip


def fitted(name: str, field: Field) -> Bm25Ranker:
    ranker = Bm25Ranker(name, weights={field: 1})
    ranker.fit(table(*DOCUMENTS))
    return ranker


def test_depth_cuts_the_lists_of_parts() -> None:
    parts = fitted("by_name", "name"), fitted("by_doc", "doc")
    assert [part.search("file", 1)[0][0] for part in parts] == [1, 3]
    shallow, deep = RrfRanker(depth=1), RrfRanker(depth=100)
    shallow.compose(parts)
    deep.compose(parts)
    # a list of one row each, or all rows: 1 and 3 stand first and third, 0 second
    assert shallow.search("file", 1) == [(1, 1 / 61)]
    assert [row for row, _ in deep.search("file", 4)] == [1, 3, 0]
    assert [row for row, _ in shallow.search("file", 4)] == [1, 3, 0]  # never cut before k
    assert deep.search("file", 1)[0][1] == pytest.approx(1 / 61 + 1 / 63)


def test_a_fusion_of_itself_is_refused() -> None:
    with pytest.raises(BadInput, match="part of itself"):
        RrfRanker("rrf", parts=("bm25", "rrf"))


def test_the_same_ranks_in_any_order_of_the_rankings_tie_to_the_last_bit() -> None:
    ranks = np.array([1, 2, 7])  # of which sums differ by the order of the summands
    rankings = []
    for turn in range(3):
        rows = np.arange(100, 100 + ranks.max())
        rows[np.roll(ranks, turn) - 1] = [0, 1, 2]
        rankings.append([(int(row), 0.0) for row in rows])
    scores = dict(fuse(rankings, 100))
    assert scores[0] == scores[1] == scores[2]
