"""Neural Code Search as a ranker."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.index import Index
from ncs.learn.embeddings import Embeddings
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import create_ranker
from tests.words import id_of, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable

DOCUMENTS = (
    "name: hide keyboard; calls: hide soft input window; doc: hides the soft keyboard",
    "name: show keyboard; calls: show soft input; doc: shows the keyboard",
    "name: read file; calls: open read close; doc: the whole file",
    "types: only",
    "name: write file; calls: open write close",
    "name: read file; calls: open read close; doc: the whole file",
)


@pytest.fixture(scope="module")
def words() -> WordTable:
    return table(*DOCUMENTS)


@pytest.fixture(scope="module")
def embeddings(words: WordTable) -> Embeddings:
    drawn = np.random.default_rng(3).normal(size=(len(words.vocabulary), 8)).astype(np.float32)
    drawn[[id_of(words, word) for word in ("the", "only")]] = 0
    return Embeddings(drawn, "fasttext")


def fitted(words: WordTable, embeddings: Embeddings, name: str) -> NcsRanker:
    ranker = create_ranker(name)
    assert isinstance(ranker, NcsRanker)
    ranker.fit(words, embeddings)
    return ranker


def cosines(ranker: NcsRanker, words: WordTable, text: str) -> NDArray[np.float64]:
    """Query by document similarity from the encoder's own vectors, centered if the ranker is."""
    vectors = next(ranker.encoder.chunks(words, [0])).astype(np.float64)
    if ranker.centre:
        empty = ~vectors.any(axis=1)
        vectors = vectors - vectors.mean(axis=0)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[empty] = 0
    found: NDArray[np.float64] = vectors @ ranker.encoder.query(text).astype(np.float64)
    return found


@pytest.mark.parametrize("name", ["ncs", "ncs_centred"])
@pytest.mark.parametrize("text", ["hide soft keyboard", "how do I read a file", "close"])
def test_hits_are_all_documents_with_words_by_cosine_then_row(
    words: WordTable, embeddings: Embeddings, name: str, text: str
) -> None:
    ranker = fitted(words, embeddings, name)
    similarity = cosines(ranker, words, text)
    order = [int(row) for row in np.lexsort((np.arange(6), -similarity.round(6))) if row != 3]
    hits = ranker.search(text, 10)
    assert [row for row, _ in hits] == order
    np.testing.assert_allclose([score for _, score in hits], similarity[order], atol=1e-6)


@pytest.mark.parametrize("name", ["ncs", "ncs_centred"])
@pytest.mark.parametrize("text", ["", "qqq zzz", "the", "only", "?!", "404"])
def test_a_question_without_a_word_that_has_a_vector_finds_nothing(
    words: WordTable, embeddings: Embeddings, name: str, text: str
) -> None:
    assert fitted(words, embeddings, name).search(text, 3) == []


@pytest.mark.parametrize("documents", [("hide keyboard",), ("hide keyboard",) * 5, (), ("types: only",)])
@pytest.mark.parametrize("name", ["ncs", "ncs_centred"])
def test_documents_that_cannot_be_told_apart_are_not_found_and_nothing_fails(
    documents: tuple[str, ...], name: str
) -> None:
    words = table(*documents)
    embeddings = Embeddings(np.ones((len(words.vocabulary), 4), np.float32), "lsa")
    ranker = fitted(words, embeddings, name)
    assert ranker.search("hide keyboard only", 5) == []


def test_an_unknown_weighting_of_the_query_is_refused() -> None:
    with pytest.raises(BadInput, match="query_weights are"):
        NcsRanker(query_weights="sum")  # type: ignore[arg-type]


def test_files_of_another_configuration_or_vocabulary_are_refused(demo: Path, tmp_path: Path) -> None:
    with Index.load(shutil.copytree(demo / ".ncs", tmp_path / "copy")) as copy:
        with pytest.raises(IndexDamaged, match="build the index again"):
            create_ranker("ncs", centre=True).load(copy.snapshot)
        create_ranker("ncs", query_weights="idf", stop_words=False).load(copy.snapshot)
        np.save(copy.snapshot.statistics / "ncs" / "idf.npy", np.zeros(3, np.float32))
        with pytest.raises(IndexDamaged, match="do not fit the vocabulary"):
            create_ranker("ncs").load(copy.snapshot)
        np.save(copy.snapshot.statistics / "embeddings.npy", np.zeros(3, np.float32))
        with pytest.raises(IndexDamaged, match=r"embeddings .*\(holds float32 \(3,\)\); build the index again"):
            Embeddings.load(copy.snapshot.statistics)
