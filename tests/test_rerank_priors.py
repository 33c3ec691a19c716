"""What functions are worth before any question, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ncs.search.signals.priors import BODY, UNFINISHED, bodies, quality
from ncs.text.stems import Stems
from tests.words import table

LONG = " ".join(["open read close send"] * 3)  # twelve words


def body(*documents: str, inside: float = 0.0, outline: tuple[int, ...] = (), named: float = 0.0) -> list[float]:
    rows, names = np.arange(len(documents)), np.full(len(documents), named)
    values: list[float] = bodies(table(*documents), rows, np.isin(rows, outline), inside, names).tolist()
    return values


def test_twelve_words_are_a_thin_body_and_thirteen_are_not_whatever_stands_around_it() -> None:
    assert body(f"calls: {LONG}", f"calls: {LONG}; literals: x", f"name: {LONG} x; doc: {LONG} x; calls: go") == [
        BODY,
        1.0,
        BODY,
    ]


def test_a_class_is_no_thin_body() -> None:
    assert body("calls: go", "calls: go", outline=(1,)) == [BODY, 1.0]


def test_inside_one_project_thin_bodies_are_worth_as_much() -> None:
    assert body("calls: go", inside=1.0) == [1.0]
    assert body("calls: go", inside=0.5) == pytest.approx([1 - (1 - BODY) / 2])


def test_a_thin_body_whose_name_is_the_question_is_worth_as_much() -> None:
    assert body("calls: go", named=1.0) == body("calls: go", named=4.0) == [1.0]  # 4: and says the question's way
    assert body("calls: go", named=0.5) == pytest.approx([1 - (1 - BODY) / 2])
    assert body("calls: go", named=-3.0) == [BODY]  # it says the opposite


def worth(*documents: str, **factors: float) -> list[float]:
    found = table(*documents)
    values: list[float] = quality(found, Stems(found.vocabulary), np.arange(len(documents)), **factors).tolist()
    return values


def test_a_small_body_that_says_it_is_not_written_counts_less() -> None:
    assert worth(
        "calls: not implemented error",
        "types: unsupported operation exception",
        "calls: unimplemented",
        "calls: implemented error",  # which says the opposite
        "identifiers: not implemented",  # a value that Python's operators give back
        "doc: not implemented",  # a comment may speak of something else
        f"calls: not implemented error {LONG}",  # one branch of many
    ) == [UNFINISHED, UNFINISHED, UNFINISHED, 1, 1, 1, 1]


def test_marks_of_todo_count_only_where_they_are_asked_to() -> None:
    documents = "comments: todo later", "comments: fixed", "comments: fixme; calls: not implemented error"
    assert worth(*documents) == [1, 1, UNFINISHED]
    assert worth(*documents, marked=0.7, unfinished=1.0) == [0.7, 1, 0.7]
    assert worth(*documents, marked=0.5) == [0.5, 1, UNFINISHED / 2]
