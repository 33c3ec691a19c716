"""Cached stems against stemming every word."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from ncs.text.stems import Stems, stem, stem_all
from ncs.text.vocabulary import Vocabulary

WORDS = ["abilities", "ability", "dying", "file", "filed", "files", "hide", "hiding", "only", "open", "opener", "ties"]


@given(st.lists(st.integers(0, len(WORDS) - 1), max_size=30), st.lists(st.integers(0, len(WORDS) - 1), max_size=30))
def test_two_words_have_one_number_exactly_where_they_have_one_stem_whoever_asks_first(
    first: list[int], second: list[int]
) -> None:
    stems, expected = Stems(Vocabulary.of(WORDS)), stem_all(WORDS)
    a, b = stems.of_stems([expected[i] for i in first]), stems.numbers(np.array(second, np.int32))
    same = np.array([[expected[i] == expected[j] for j in second] for i in first], np.bool_)
    assert (a[:, None] == b[None]).tolist() == same.reshape(len(first), len(second)).tolist()
    assert stems.of_stems([expected[j] for j in second]).tolist() == b.tolist()


def test_threads_that_meet_words_at_once_agree_on_their_numbers() -> None:
    vocabulary = Vocabulary.of(f"word{n}s" for n in range(500))
    stems = Stems(vocabulary)
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: stems.numbers(np.arange(500, dtype=np.int32)).tolist(), range(16)))
    assert numbers == [numbers[0]] * 16
    assert len(set(numbers[0])) == 500


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("initialiser", "initializer"), ("customised", "customized"), ("recognising", "recognizing"),
        ("serialisation", "serialization"), ("tokenise", "tokenize"), ("memoised", "memoized"),
        ("analysed", "analyzed"), ("colours", "colors"), ("neighbouring", "neighboring"), ("centre", "center"),
        ("millimetres", "millimeters"), ("dialogue", "dialog"), ("licence", "license"), ("greyscale", "grayscale"),
    ],
)  # fmt: skip
def test_british_and_american_spelling_have_one_stem(british: str, american: str) -> None:
    assert stem(british) == stem(american)


def test_words_that_only_look_british_keep_their_own_stem() -> None:
    words = "promise premise precise exercise raise surprise advertise otherwise advise disable hour source analyses"
    assert stem_all(words.split()) == Stemmer.Stemmer("english").stemWords(words.split())
