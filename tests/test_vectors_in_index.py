"""An index whose vectors are searched approximately: asked for by name, said by info, the same to who asks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncs.answer import describe
from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.search.baselines.dense import DenseRanker, text_of
from ncs.search.rankers import create_ranker
from ncs.storage.vector_kinds import read_about
from tests import corpus

if TYPE_CHECKING:
    from ncs.types import Matrix

QUESTIONS = ["hide the soft keyboard", "read a text file", "parse json", "open the camera", "close the stream"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("vectors")
    sources = corpus.write(root / "repos")
    for kind in ("exact", "pq", "ivf", "hnsw", "rabitq"):
        Index.build(sources, root / kind, config=BuildConfig(vectors=kind, embeddings="lsa")).close()
    return {kind: root / kind for kind in ("exact", "pq", "ivf", "hnsw", "rabitq")}


@pytest.mark.parametrize("kind", ["pq", "ivf", "hnsw", "rabitq"])
@pytest.mark.parametrize("ranker", ["hybrid", "ncs_centred", "ncs"])
def test_every_kind_finds_what_exact_search_finds_in_a_small_index(
    folders: dict[str, Path], kind: str, ranker: str
) -> None:
    with Index.load(folders["exact"]) as exact, Index.load(folders[kind]) as other:
        for text in QUESTIONS:
            wanted = exact.search(text, 3, ranker=ranker)
            assert [hit.document.id for hit in other.search(text, 3, ranker=ranker)][:1] == [
                hit.document.id for hit in wanted
            ][:1]


def test_filters_leave_what_they_leave_to_exact_search(folders: dict[str, Path]) -> None:
    with Index.load(folders["exact"]) as exact, Index.load(folders["pq"]) as other:
        languages = list(exact.store.counts["languages"])
        assert len(languages) > 1
        for language in languages:
            found = [
                {hit.document.id for hit in index.search("read a file", 5, ranker="ncs_centred", language=language)}
                for index in (exact, other)
            ]
            assert found[0] == found[1]
            assert {exact.store.document(row).language for row in _rows(exact, found[1])} <= {language}


def _rows(index: Index, ids: set[str]) -> list[int]:
    return [row for id in ids if (row := index.store.row_of(id)) is not None]


def test_info_and_the_folder_say_which_kind_it_is(folders: dict[str, Path]) -> None:
    for kind, folder in folders.items():
        with Index.load(folder, verify=True) as index:
            assert describe(index)["vectors"]["kind"] == kind
            assert index.manifest.config["vectors"] == kind
            assert (read_about(index.data / "ncs_centred") is None) == (kind == "exact")


def test_a_kind_that_there_is_not_is_refused_before_anything_is_read() -> None:
    with pytest.raises(BadInput, match="not 'lsh'"):
        BuildConfig(vectors="lsh")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="not 'lsh'"):
        create_ranker("ncs_centred", vectors="lsh")


def test_functions_like_one_are_found_whatever_the_kind(folders: dict[str, Path]) -> None:
    with Index.load(folders["exact"]) as exact, Index.load(folders["pq"]) as other:
        function = exact.search("hide the soft keyboard", 1)[0].document
        found = [[hit.document.id for hit in index.similar(function, 5)] for index in (exact, other)]
        assert found[0] == found[1]


class Letters:
    """A model of texts: how often each letter is in them."""

    def documents(self, texts: Sequence[str]) -> Matrix:
        counts = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrst"] for text in texts]
        return np.array(counts, np.float32)

    queries = documents


def test_vectors_of_a_model_are_searched_approximately_where_there_are_many(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncs.storage.vector_kinds.EXACT", 3)
    ranker = DenseRanker("transformers", {"model": "letters"}, lambda _: Letters(), needs="model")
    with Index.load(folders["exact"]) as index:
        ranker.fit_documents(index.store)
        texts = [text_of(document) for document in index.store.documents(range(len(index)))]
    ranker.save(tmp_path)
    opened = DenseRanker("transformers", {"model": "letters"}, lambda _: Letters(), needs="model")
    opened.load(tmp_path)
    vectors = Letters().documents(texts)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for each in (ranker, opened):
        assert each.index.about.kind == "pq"
        for row, text in enumerate(texts):
            best, score = each.search(text, 1)[0]
            assert vectors[best] @ vectors[row] == pytest.approx(1, abs=0.005)
            assert score == pytest.approx(1, abs=0.01)
