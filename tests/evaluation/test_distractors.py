"""A query's function among fixed distractors."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from evaluation.distractors import batch_distractors, draw_distractors
from ncs.errors import BadInput

RELEVANT = {f"q{i}": [3 * i] for i in range(60)}


def test_every_query_gets_its_own_document_and_as_many_different_others_as_asked_for() -> None:
    for query, rows in draw_distractors(RELEVANT, 400, count=99).items():
        assert len(set(rows.tolist())) == 100
        assert RELEVANT[query][0] in rows
        assert 0 <= rows.min() <= rows.max() < 400
        assert (np.diff(rows) > 0).all()


def test_a_draw_depends_on_seed_and_query_and_not_on_the_other_queries() -> None:
    every = draw_distractors(RELEVANT, 400, count=99)
    alone = draw_distractors({"q7": RELEVANT["q7"]}, 400, count=99)
    assert (alone["q7"] == every["q7"]).all()
    assert (draw_distractors({"q7": [21]}, 400, count=99, seed=1)["q7"] != every["q7"]).any()
    assert (draw_distractors({"other": [21]}, 400, count=99)["other"] != every["q7"]).any()


def test_all_relevant_documents_stay_and_none_of_them_is_a_distractor() -> None:
    rows = draw_distractors({"q": [1, 5, 9]}, 13, count=10)["q"]
    assert rows.tolist() == list(range(13))


def test_every_document_is_drawn_about_as_often_as_any_other() -> None:
    counts = Counter(
        row for rows in draw_distractors({f"q{i}": [0] for i in range(2000)}, 41, count=10).values() for row in rows
    )
    others = [
        counts[row] for row in range(1, 41)
    ]  # each draw_distractors with probability 10 / 40: 500 times, deviation 19
    assert sum(others) == 20_000
    assert 400 < min(others) < max(others) < 600


def test_batches_are_whole_share_no_document_and_rank_a_query_among_the_documents_of_its_batch() -> None:
    found = batch_distractors(RELEVANT, size=25)
    batches = {tuple(rows.tolist()) for rows in found.values()}
    assert len(found) == 50
    assert len(batches) == 2
    assert len({row for batch in batches for row in batch}) == 50
    for query, rows in found.items():
        assert RELEVANT[query][0] in rows
        assert len(rows) == 25
    assert list(found) == [query for query in RELEVANT if query in found]


def test_too_few_documents_or_queries_are_refused_in_one_line() -> None:
    with pytest.raises(BadInput, match="999 distractors for 'q', but only 4 other documents"):
        draw_distractors({"q": [1]}, 5)
    with pytest.raises(BadInput, match="60 queries fill no batch of 1000"):
        batch_distractors(RELEVANT)
    with pytest.raises(BadInput, match="two queries have the same document"):
        batch_distractors({"a": [1], "b": [1]}, size=2)
