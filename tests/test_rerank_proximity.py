"""Words near each other, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ncs.search.signals.proximity import DEPTH, agreement
from ncs.storage.postings import stem_all
from ncs.text.stems import Stems
from tests.words import table

IDF = {"pars": 3.0, "date": 2.0, "file": 1.0}


def near(*documents: str, words: str = "parse date file") -> list[float]:
    found = table(*documents, field="calls")
    stems = stem_all(words.split())
    values: list[float] = agreement(found, Stems(found.vocabulary), np.arange(len(documents)), stems, IDF).tolist()
    return values


def test_a_pair_counts_up_to_four_words_apart_and_not_beyond_in_any_order() -> None:
    # pairs of the question: parse date (idf 5), date file (idf 3)
    found = near(
        "parse the date",
        "date we want to parse",  # four words on
        "date that we want to parse",  # five
        "file of dates one two three four parse",
        "parse date file",
        "parse one two three four file",  # no pair of the question at all
    )
    assert found == pytest.approx([5 / 8, 5 / 8, 0, 3 / 8, 1, 0])


def test_words_of_different_documents_are_not_near_and_a_pair_counts_once() -> None:
    assert near("only parse", "date only", "parse date parse date") == [0, 0, 5 / 8]


def test_a_question_of_one_word_or_of_one_word_twice_has_no_pairs() -> None:
    assert near("parse parse", words="parse") == [0]
    assert near("parse parse", words="parse parse") == [0]


def test_only_the_first_candidates_are_read() -> None:
    found = near(*["parse date"] * (DEPTH + 1), words="parse date")
    assert found == [1.0] * DEPTH + [0.0]


def test_a_name_stands_beside_its_class_and_comments_say_nothing() -> None:
    found = near("name: parse; scope: date", "doc: parse date", "literals: parse date", words="parse date")
    assert found == [1.0, 0.0, 0.0]
