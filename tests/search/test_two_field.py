"""The two-field ranker beside its formula by hand, and its analyser beside the regex library."""

from __future__ import annotations

import math
import string
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from ncs.config import BuildConfig
from ncs.index import Index
from ncs.search.baselines.two_field import standard_tokens
from ncs.types import Document


def test_the_formula_holds_where_a_document_has_no_name_and_one_is_long(tmp_path: Path) -> None:
    """By hand: N and the mean length of a field are over the documents that have it; 100 words count as 96."""
    texts = {"open_file": "open open file", "": "file", "read": "read the file" + " word" * 97}
    documents = [
        Document(f"x:{line}", "r", "x", line, line, "python", "function", name, name, {}, code)
        for line, (name, code) in enumerate(texts.items(), 1)
    ]

    def part(n: int, df: int, tf: int, length: float, mean: float) -> float:
        return math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (tf + 1.5 * (1 - 0.5 + 0.5 * length / mean))

    opening = part(2, 1, 1, 2, 1.5) + part(3, 1, 2, 3, 104 / 3)
    filing = [part(2, 1, 1, 2, 1.5) + part(3, 3, 1, 3, 104 / 3), *(part(3, 3, 1, n, 104 / 3) for n in (1, 96))]
    config = BuildConfig(deduplicate=False, embeddings="lsa", rankers=("two_field:k1=1.5,b=0.5",))
    with Index.of(documents, tmp_path / "index", config=config) as index:
        ranker = index.ranker("two_field")
        assert ranker.config == {"k1": 1.5, "b": 0.5}
        assert dict(ranker.search("OPEN", 3)) == {0: pytest.approx(opening, rel=1e-6)}
        hits = ranker.search("file", 3)
    assert [row for row, _ in hits] == [0, 1, 2]
    assert [score for _, score in hits] == pytest.approx(filing, rel=1e-6)


@pytest.mark.filterwarnings("error")
def test_a_corpus_without_names_is_ranked_by_its_text(tmp_path: Path) -> None:
    documents = [Document(f"x:{n}", "r", "x", n, n, "", "program", "", "", {}, f"word{n} file") for n in (1, 2)]
    config = BuildConfig(deduplicate=False, embeddings="lsa", rankers=("two_field",))
    with Index.of(documents, tmp_path / "index", config=config) as index:
        assert [row for row, _ in index.ranker("two_field").search("word2", 2)] == [1]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("don't 'quoted' 1,000 1;2 a,b", ["don't", "quoted", "1,000", "1;2", "a", "b"]),
        ("K:A std::map", ["k:a", "std", "map"]),
        ("na\u00efve na\u0069\u0308ve \u00c4RGER", ["na\u00efve", "nai\u0308ve", "\u00e4rger"]),
        ("\u6771\u4eac \u30ab\u30e1\u30e9", ["\u6771", "\u4eac", "\u30ab\u30e1\u30e9"]),
        ("\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 x\u00b2", ["\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22", "x"]),
        ("a" * 300, ["a" * 255, "a" * 45]),
    ],
)
def test_the_analyser_breaks_text_as_lucenes_does(text: str, tokens: list[str]) -> None:
    assert standard_tokens(text) == tokens


ALPHABET = "aZ\u00e9\u03c9\u0434\u05d0\u0661\u09050\u00379_.,;()+- \n\u2024\u6f22\u3042\u00b7"


@given(st.text(st.sampled_from(ALPHABET), max_size=30))
def test_tokens_are_the_word_segments_of_the_regex_library(text: str) -> None:
    """Without the colon, which Unicode 15.1 took out of the rules and Lucene has in them; without quotes and
    combining marks, which that library treats in its own way."""
    segments = regex.split(r"(?w)\b", text, flags=regex.V1)
    words = [s.lower() for s in segments if regex.search(r"[\p{L}\p{Nd}]", s)]
    assert standard_tokens(text) == words


@given(st.text(string.printable, max_size=60))
def test_ascii_text_is_broken_alike_on_the_fast_and_the_slow_path(text: str) -> None:
    assert standard_tokens(text + " \u00b2") == standard_tokens(text)
