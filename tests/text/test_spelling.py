"""Near spellings against edits counted by hand."""

from __future__ import annotations

import pytest

from ncs.text.spelling import CACHE_SIZE, WordList, nearest_words
from ncs.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary.of(["file", "fill", "keyboard", "keyboards", "keyword", "naïve", "tile", "to", "zip"])


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("keybaord", ["keyboard", "keyboards", "keyword"]),  # a swap is one edit; the others are two away
        ("flie", ["file"]),  # one edit only in a word of four letters: tile and fill are two away
        ("KEYBORD", ["keyboard", "keyword", "keyboards"]),
        ("naive", ["naïve"]),
        ("xyzzyx", []),
        ("", []),
    ],
)
def test_near_words_are_those_within_the_edits(word: str, want: list[str]) -> None:
    assert nearest_words(word, VOCABULARY, 5) == want


def test_the_more_frequent_of_two_equally_near_words_comes_first() -> None:
    assert nearest_words("bile", VOCABULARY, count={"tile": 9, "file": 1}.__getitem__) == ["tile", "file"]
    assert nearest_words("bile", VOCABULARY) == ["file", "tile"]


def test_a_known_word_is_not_its_own_neighbour() -> None:
    assert nearest_words("file", VOCABULARY) == ["fill", "tile"]


def test_no_more_than_n_words_are_given() -> None:
    assert nearest_words("keyboar", VOCABULARY, 1) == ["keyboard"]
    assert nearest_words("keyboar", Vocabulary.of([])) == []


def test_a_word_list_answers_what_comparing_all_words_does() -> None:
    words = [
        a + b + c for a in ("read", "rea", "wri", "fi", "") for b in ("file", "table", "t", "") for c in ("s", "er", "")
    ]
    known = WordList(sorted({word for word in words if word}))
    for _ in range(2):
        for word in (*known, "raedfile", "filer", "tabel", "x", "", "wrietables"):
            for n in (1, 5, 100):
                assert nearest_words(word, known, n) == nearest_words(word, list(known), n)
    often = {"fier": 9, "file": 1}
    counts = [nearest_words("filr", words, count=lambda word: often.get(word, 0)) for words in (known, list(known))]
    assert counts[0] == counts[1] == ["fier", "file"]


def test_the_cache_of_a_word_list_is_bounded() -> None:
    known = WordList(["file"])
    for number in range(CACHE_SIZE + 5):
        nearest_words(f"word{number}", known)
    assert len(known._cache) <= CACHE_SIZE
