"""Near spellings against edits counted by hand."""

from __future__ import annotations

import pytest

from ncs.text.spelling import WordList, nearest_words

VOCABULARY = WordList(["file", "fill", "keyboard", "keyboards", "keyword", "naïve", "tile", "to", "zip"])


@pytest.mark.parametrize(
    ("word", "n", "nearest"),
    [
        ("keybaord", 5, ["keyboard", "keyboards", "keyword"]),  # a swap is one edit; the others are two away
        ("flie", 5, ["file"]),  # one edit only in a word of four letters: tile and fill are two away
        ("KEYBORD", 5, ["keyboard", "keyword", "keyboards"]),
        ("keyboar", 1, ["keyboard"]),
        ("fiels", 5, ["file", "fill"]),  # two edits, from five letters on
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
