"""Queries are bounded, and up to the bound none takes long."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

import pytest

from ncs.answer import ask
from ncs.errors import BadInput
from ncs.index import UNKNOWN_WORDS, Index
from ncs.search.question import MAX_QUERY


def letters(n: int) -> str:
    """Five letters, others for each number."""
    return "".join("abcdefghij"[int(digit)] for digit in f"{n * 7919 % 100_000:05}")


PATTERNS: dict[str, Callable[[int], str]] = {
    "known words": lambda n: "hide keyboard ",
    "unknown words": lambda n: f"zq{letters(n)} ",
    "symbols": lambda n: f"View.set{letters(n)}() ",
    "humps": lambda n: letters(n).title(),
    "brackets": lambda n: "a(",
    "code": lambda n: f"x = {letters(n)}(y);\n",
    "conversions": lambda n: "file to key ",
    "one word": lambda n: "a",
    "no word": lambda n: "\t?",
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_longest_query_takes_seconds_and_a_longer_one_is_refused(demo_index: Index, pattern: str) -> None:
    text = ""
    for n in count():
        text += PATTERNS[pattern](n)
        if len(text) > MAX_QUERY:
            break
    began = time.process_time()
    answer = ask(demo_index, text[:MAX_QUERY], ranker="hybrid", explain=True)
    assert time.process_time() - began < 15  # (1 to 4 on an idle machine; without bounds 4 MB took a minute)
    assert len(answer["unknown_words"]) <= UNKNOWN_WORDS
    with pytest.raises(BadInput, match="the query has 32,769 characters; shorten it to 32,768"):
        ask(demo_index, text[: MAX_QUERY + 1], ranker="hybrid")
