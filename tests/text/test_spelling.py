"""Near spellings against edits counted by hand, and against comparing all words."""

from __future__ import annotations

from itertools import product

import pytest
from rapidfuzz.distance import OSA

from ncs.text.spelling import WordList, nearest_words

VOCABULARY = WordList(["file", "fill", "keyboard", "keyboards", "keyword", "naïve", "tile", "to", "zip"])


@pytest.mark.parametrize(
    ("word", "n", "nearest"),
    [
        ("keybaord", 5, ["keyboard", "keyboards", "keyword"]),  # a swap is one edit; the others are two away
        ("flie", 5, ["file"]),  # one edit only in a word of four letters: tile and fill are two away
        ("KEYBORD", 5, ["keyboard", "keyword", "keyboards"]),
        ("keyboar", 1, ["keyboard"]),
        ("naive", 5, ["naïve"]),
        ("file", 5, ["fill", "tile"]),  # not itself
        ("xyzzyx", 5, []),
        ("", 5, []),
    ],
)
def test_near_words_are_those_within_the_edits(word: str, n: int, nearest: list[str]) -> None:
    assert nearest_words(word, VOCABULARY, n) == nearest


def test_the_more_frequent_of_two_equally_near_words_comes_first() -> None:
    assert nearest_words("bile", VOCABULARY, count={"tile": 9, "file": 1}.__getitem__) == ["tile", "file"]
    assert nearest_words("bile", VOCABULARY) == ["file", "tile"]
    assert nearest_words("bile", []) == []


def test_a_word_list_answers_what_comparing_all_words_does() -> None:
    parts = product(("read", "rea", "wri", "fi", ""), ("file", "table", "t", ""), ("s", "er", ""))
    words = WordList(sorted({"".join(part) for part in parts} - {""}))
    for word in (*words, "raedfile", "filer", "tabel", "x", "", "wrietables"):
        distances = sorted((OSA.distance(word, other), other) for other in words)
        near = [other for distance, other in distances if 0 < distance <= (2 if len(word) >= 5 else 1)]
        assert nearest_words(word, words, 100) == near
