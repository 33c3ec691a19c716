"""The bm25 ranker on the functions of the Python standard library, against bm25s."""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest

from ncs.extract import extract
from ncs.search.bm25 import Bm25Ranker
from ncs.search.rankers import create_ranker
from ncs.storage.words import WordTable
from ncs.text.stems import stem_all
from ncs.text.tokens import content_words, field_tokens, tokenize
from ncs.types import FIELDS, Document, Field
from tests.words import table_of

QUESTIONS = (
    "how do I read a text file line by line",
    "parse command line arguments",
    "convert a string to an integer",
    "open a socket connection with timeout",
    "remove directory tree",
    "is the thread alive",
    "decode base64",
    "what is this",
    "iterate over sorted sorted keys",
    "getaddrinfo",
)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Functions of the standard library's top level from `p` on, in path order."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[p-z]*.py"))
    return [document for file in files for document in extract(file.read_bytes(), "python", path=file.name)]


@pytest.fixture(scope="module")
def words(documents: Sequence[Document]) -> WordTable:
    return table_of({field: field_tokens(field, d.words[field]) for field in d.words} for d in documents)


def fitted(words: WordTable, **config: object) -> Bm25Ranker:
    ranker = create_ranker("bm25", **config)
    assert isinstance(ranker, Bm25Ranker)
    ranker.fit(words)
    return ranker


def reference(documents: Sequence[Document], weights: Mapping[Field, int], k1: float, b: float) -> bm25s.BM25:
    """bm25s over text in which the words of each field stand as often as its weight says."""
    texts = [
        [word for field, weight in weights.items() for word in field_tokens(field, d.words.get(field, ())) * weight]
        for d in documents
    ]
    engine = bm25s.BM25(method="lucene", k1=k1, b=b)
    engine.index([stem_all(text) for text in texts], show_progress=False)
    return engine


@pytest.mark.parametrize(
    ("weights", "k1", "b"),
    [
        (dict.fromkeys(FIELDS, 1), 1.2, 0.75),
        ({**dict.fromkeys(FIELDS, 1), "name": 3, "doc": 2}, 1.5, 0.6),
        ({"name": 4, "calls": 1}, 0.9, 0.4),
    ],
    ids=["plain", "weighted", "two fields"],
)
def test_scores_agree_with_bm25s_to_four_decimals(
    documents: list[Document], words: WordTable, weights: dict[Field, int], k1: float, b: float
) -> None:
    ranker = fitted(words, weights=weights, k1=k1, b=b)
    engine = reference(documents, weights, k1, b)
    assert len(documents) > 2500
    for text in QUESTIONS:
        known = [stem for stem in stem_all(content_words(tokenize(text))) if stem in engine.vocab_dict]
        want = engine.get_scores(known)
        got = np.zeros(len(documents))
        for row, score in ranker.search(text, len(documents)):
            got[row] = score
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-5)


def test_stop_words_are_left_out_unless_alone(words: WordTable) -> None:
    ranker = fitted(words)
    assert ranker.search("how do I open the file", 9) == ranker.search("open file", 9)
    assert ranker.query_words("what is this") == ["what", "is", "this"]
    assert ranker.search("what is this", 1)
