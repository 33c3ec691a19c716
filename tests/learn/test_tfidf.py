"""TF-IDF weighted vectors of documents and queries."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncs.learn.tfidf import TfidfEncoder, inverse_document_frequency
from ncs.types import NCS_FIELDS
from tests.words import id_of, table

if TYPE_CHECKING:
    from ncs.learn.tfidf import QueryWeights
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

DOCUMENTS = (
    "name: hide keyboard; calls: hide soft input window; doc: hides the soft keyboard; types: activity whole",
    "name: show keyboard; calls: show soft input; doc: shows the keyboard the keyboard",
    "name: read; calls: open read close; doc: the whole file",
    "types: only ignored; identifiers: fields",
    "name: the",
)


def lists(words: WordTable) -> list[list[str]]:
    """The words of NCS_FIELDS a document, read one by one."""
    return [
        [words.vocabulary.word(int(id)) for field in NCS_FIELDS for id in words.ids_of(row, field)]
        for row in range(len(words))
    ]


def vectors_for(words: WordTable, dim: int = 6) -> Matrix:
    vectors: Matrix = np.random.default_rng(3).normal(size=(len(words.vocabulary), dim)).astype(np.float32)
    return vectors


def published(documents: list[list[str]], word: str, row: int) -> float:
    """(1 + log tf) * log(n / df), from the paper's text."""
    tf = documents[row].count(word)
    df = sum(word in document for document in documents)
    return (1 + math.log(tf)) * math.log(len(documents) / df) if tf else 0.0


def test_a_document_is_the_sum_of_its_unique_words_unit_vectors_by_weight() -> None:
    words = table(*DOCUMENTS)
    vectors, documents = vectors_for(words), lists(words)
    vectors[id_of(words, "the")] = 0
    encoder = TfidfEncoder(words.vocabulary, vectors, inverse_document_frequency(words))
    encoded = next(encoder.chunks(words, [0]))
    for row, document in enumerate(documents):
        total = np.zeros(vectors.shape[1])
        for word in set(document):
            vector = vectors[id_of(words, word)].astype(np.float64)
            total += vector / max(np.linalg.norm(vector), 1e-9) * published(documents, word, row)
        length = np.linalg.norm(total)
        np.testing.assert_allclose(encoded[row], total / length if length else total, atol=1e-6)
    assert encoded.any(axis=1).tolist() == [True, True, True, False, False]
    assert encoded[1:].tobytes() == next(encoder.chunks(words, [1])).tobytes()


@pytest.mark.parametrize("documents", [("hide keyboard",), ("hide keyboard",) * 4])
def test_words_that_every_document_has_weigh_nothing_and_make_no_nan(documents: tuple[str, ...]) -> None:
    words = table(*documents)
    idf = inverse_document_frequency(words)
    assert idf.tolist() == [0.0, 0.0]
    encoder = TfidfEncoder(words.vocabulary, vectors_for(words), idf, query_weights="idf")
    assert not next(encoder.chunks(words, [0])).any()
    assert not encoder.query("hide the keyboard").any()


@pytest.mark.parametrize("weights", ["mean", "idf"])
def test_a_query_is_the_mean_of_its_words_vectors_plain_or_as_a_document(weights: QueryWeights) -> None:
    words = table(*DOCUMENTS)
    vectors, idf = vectors_for(words), inverse_document_frequency(words)
    encoder = TfidfEncoder(words.vocabulary, vectors, idf, query_weights=weights)
    total = np.zeros(vectors.shape[1])
    for word, times in Counter(["hide", "the", "keyboard", "keyboard"]).items():
        id = id_of(words, word)
        vector = vectors[id].astype(np.float64)
        by_idf = (1 + math.log(times)) * idf[id] * vector / np.linalg.norm(vector)
        total += times * vector if weights == "mean" else by_idf
    np.testing.assert_allclose(encoder.query("hideThe KEYBOARD qqq-keyboard"), total / np.linalg.norm(total), atol=1e-6)
    for text in ("   ", "qqq zzz", "#!?"):
        assert encoder.query(text).tolist() == [0.0] * 6


def test_stop_words_of_a_query_are_left_out_only_if_set_and_if_other_words_are_left() -> None:
    words = table(*DOCUMENTS, "how do i")
    idf = inverse_document_frequency(words)
    keeping = TfidfEncoder(words.vocabulary, vectors_for(words), idf)
    without = TfidfEncoder(words.vocabulary, vectors_for(words), idf, stop_words=False)
    assert without.query("how do i hide the keyboard").tolist() == without.query("hide keyboard").tolist()
    assert keeping.query("how do i hide the keyboard").tolist() != keeping.query("hide keyboard").tolist()
    assert without.query("how do i").any()
