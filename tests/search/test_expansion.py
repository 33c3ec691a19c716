"""A question's words as a corpus writes them: counted by hand over a few documents."""

from __future__ import annotations

import numpy as np
import pytest

from ncs.search.expansion import Expansion, expand
from ncs.storage.postings_builder import build
from ncs.text.stems import stem
from ncs.types import FIELDS
from tests.words import table

DOCUMENTS = (
    "name: lowercase text; doc: handy string",
    "name: lowercase name; calls: string; doc: handy",
    "calls: lower initialize; comments: string case",
    "calls: lower case initialize; literals: string",
    "identifiers: inlist case money",
)
WORDS = table(*DOCUMENTS)
POSTINGS = build(WORDS, weights=dict.fromkeys(FIELDS, 1))


def read(query: str, **settings: float) -> Expansion:
    return expand(query.split(), POSTINGS, lambda: list(WORDS.vocabulary), **settings)


def test_a_word_counts_by_the_share_of_its_documents_that_have_it_in_code() -> None:
    query = read("handy string lower").query
    # handy: in two comments; string: in code in one of its four documents; lower: always in code
    assert query == pytest.approx({stem("handy"): 0.5, stem("string"): 0.5 + 0.5 / 4, stem("lower"): 1.0})
    assert read("handy string", prose=0.2).query[stem("handy")] == pytest.approx(0.2)


def test_a_repeated_word_counts_more_but_less_each_time() -> None:
    # c times count 3c / (c + 2): 1, 1.5, 1.8 ...
    assert read("handy lower handy").query == pytest.approx({stem("handy"): 0.5 * 1.5, stem("lower"): 1.0})
    assert read("lower " * 3).query == pytest.approx({stem("lower"): 1.8})
    assert read("lower " * 500).query[stem("lower")] < 3


def test_without_the_prose_setting_all_words_count_alike() -> None:
    assert set(read("handy string", prose=1.0).query.values()) == {1.0}


def test_neighbours_that_the_corpus_writes_as_one_word_are_looked_for_so_too() -> None:
    found = read("lower case", spelling=0.25)
    assert (found.words, found.other_spellings) == (("lowercase",), {stem("lowercase"): 0.25})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("money in list", ()),  # a preposition is not joined to what follows it
        ("stringlower", ("string", "lower")),
        ("stringmoney", ()),  # `money` stands in one document only: not enough for a part
        ("intialize", ("initialize",)),
        ("honey", ()),  # another first letter
        ("mony", ()),  # too short for a slip
        ("lowrr", ("lower",)),
        ("lwwrr", ()),  # two edits are too many below eight letters
        ("initialize string", ()),
        ("lower case lowercase", ()),  # is in the question already
        ("aaqqqqqq bbqqqqqq ccqqqqqq ddqqqqqq intialize", ("initialize",)),
        ("aaqqqqqq bbqqqqqq ccqqqqqq ddqqqqqq eeqqqqqq intialize", ()),  # the first five unknown words are looked at
    ],
)
def test_unknown_words_are_split_or_read_as_the_known_word_of_a_slip(query: str, words: tuple[str, ...]) -> None:
    assert read(query).words == words


def test_spelling_can_be_turned_off() -> None:
    assert read("lower case intialize", spelling=0.0).other_spellings == {}


def test_counts_are_factors_of_the_scores() -> None:
    counts, rows = read("lower case case").counts, np.arange(len(DOCUMENTS))
    want = sum(count * POSTINGS.scores({term: 1.0}, rows) for term, count in counts.items())
    assert POSTINGS.scores(counts, rows) == pytest.approx(want)
    assert len(counts) == 3
