"""An index from source files to hits."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput, IndexNotFound
from ncs.index import BuildConfig, Index
from ncs.search.rankers import ON_REQUEST, RANKERS
from ncs.types import Query
from tests import corpus


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("index")
    return Index.build(corpus.write(folder / "repos"), folder / "idx")


@pytest.mark.parametrize("ranker", [name for name in RANKERS if name not in ON_REQUEST])
def test_every_ranker_finds_the_function_that_hides_the_keyboard_first(index: Index, ranker: str) -> None:
    hits = index.search("hide soft keyboard", ranker=ranker)
    assert hits[0].document.qualified_name == "Keyboards.hideSoftKeyboard"
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_exact_duplicates_are_kept_once_with_their_copies_listed(index: Index) -> None:
    hit = index.search("hide soft keyboard", ranker="bm25")[0].document
    assert hit.repository == "app"
    assert [(copy.repository, copy.path, copy.start_line) for copy in hit.copies] == [
        ("copy", "src/Keyboards.java", 11)
    ]
    assert index.description.counts["copies"] == 3  # two functions and their class
    assert np.count_nonzero(index.functions()) == 6
    assert {hit.document.kind for hit in index.search("keyboard file", functions_only=True)} == {"method", "function"}


def test_a_filter_that_only_a_copy_meets_shows_the_copy(index: Index) -> None:
    hits = index.search("hide soft keyboard", repository="copy")
    assert [hit.document.repository for hit in hits] == ["copy"] * len(hits)
    assert hits[0].document.copies[0].repository == "app"


@pytest.mark.parametrize("ranker", [name for name in RANKERS if name not in ON_REQUEST])
def test_filters_hold_for_every_ranker(index: Index, ranker: str) -> None:
    found = {
        hit.document.language for hit in index.search("read file connection keyboard", ranker=ranker, language="python")
    }
    assert found <= {"python"}
    assert index.search("hide soft keyboard", ranker=ranker, path="nowhere/*") == []


def test_the_code_words_and_lines_come_back_as_extracted(index: Index) -> None:
    document = index.search("read text file", ranker="bm25")[0].document
    assert document.qualified_name == "read_text_file"
    assert (document.start_line, document.end_line) == (4, 7)
    assert document.code.startswith("def read_text_file(path")
    assert document.words["calls"] == ("open", "read")
    assert document.words["doc"] == ("Read a whole text file from disk.",)


def test_a_run_has_every_query_and_the_ids_of_search(index: Index) -> None:
    queries = [Query("1", "hide soft keyboard"), Query("2", "zzzz")]
    run = index.run(queries, ranker="bm25", k=3)
    assert list(run) == ["1", "2"]
    assert list(run["1"]) == [hit.document.id for hit in index.search("hide soft keyboard", 3, ranker="bm25")]
    assert run["2"] == {}


def test_unknown_words_are_named_with_known_ones_of_near_spelling(index: Index) -> None:
    unknown = index.unknown_words("hide the keybord")
    assert list(unknown) == ["keybord"]
    assert "keyboard" in unknown["keybord"]


def test_the_same_input_gives_the_same_files(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    first = Index.build(tmp_path / "repos", tmp_path / "a", workers=1)
    second = Index.build(tmp_path / "repos", tmp_path / "b", workers=2)
    assert dict(first.manifest.files) == dict(second.manifest.files)


def test_a_failed_build_leaves_the_index_that_was_there(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    Index.build(tmp_path / "repos", tmp_path / "idx")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no function found"):
        Index.build(tmp_path / "empty", tmp_path / "idx")
    assert Index.load(tmp_path / "idx", verify=True).search("hide soft keyboard")


def test_an_index_answers_after_its_sources_are_gone(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    Index.build(tmp_path / "repos", tmp_path / "idx")
    shutil.rmtree(tmp_path / "repos")
    assert "hideSoftInputFromWindow" in Index.load(tmp_path / "idx").search("hide soft keyboard")[0].document.code


def test_without_stored_code_paths_and_lines_stay_and_the_code_is_nowhere(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    index = Index.build(tmp_path / "repos", tmp_path / "idx", config=BuildConfig(store_code=False))
    hit = index.search("hide soft keyboard")[0].document
    assert (hit.code, hit.path, hit.start_line) == ("", "src/Keyboards.java", 11)
    stored = b"".join(path.read_bytes() for path in (tmp_path / "idx").rglob("*") if path.is_file())
    assert b"getWindowToken(), 0)" not in stored


def test_there_is_no_index_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="ncs build"):
        Index.load(tmp_path / "none")


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(index: Index, k: int) -> None:
    with pytest.raises(BadInput, match="at least 1"):
        index.search("keyboard", k)


def test_an_open_index_answers_while_and_after_another_build_replaces_it(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    opened = Index.build(tmp_path / "repos", tmp_path / "idx")  # no ranker is open yet
    (tmp_path / "repos" / "tools" / "files.py").unlink()
    with Index.build(tmp_path / "repos", tmp_path / "idx") as rebuilt:
        assert len(rebuilt) == 5  # three functions and their two classes
    assert opened.search("read text file")[0].document.name == "read_text_file"
    opened.close()


@pytest.mark.slow
def test_kill_9_at_any_moment_of_a_build_leaves_an_index_that_answers(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    Index.build(tmp_path / "repos", tmp_path / "idx").close()
    build = [sys.executable, "-m", "ncs.cli", "build", str(tmp_path / "repos"), "-i", str(tmp_path / "idx"), "-q"]
    start = time.perf_counter()
    subprocess.run(build, check=True)
    whole = time.perf_counter() - start
    draw = random.Random(7)
    for _ in range(8):
        with subprocess.Popen(build, start_new_session=True) as process:
            time.sleep(draw.uniform(0.2, 1.1) * whole)
            os.killpg(process.pid, signal.SIGKILL)
        with Index.load(tmp_path / "idx", verify=True) as index:
            assert index.search("hide soft keyboard")[0].document.name == "hideSoftKeyboard"
    subprocess.run(build, check=True)
    left = {path.name for path in (tmp_path / "idx").iterdir() if path.name.startswith("data-")}
    assert left == {Index.load(tmp_path / "idx").data.name}


def test_how_likely_a_hit_is_does_not_hang_on_how_many_are_asked_for(index: Index) -> None:
    longest = index.search("hide soft keyboard", 10)
    assert len(longest) == 3
    for k in range(1, len(longest)):
        assert index.search("hide soft keyboard", k) == longest[:k]
        confidences = index.results("hide soft keyboard", k, explain=True).ranking.confidences
        assert confidences == [hit.confidence for hit in longest[:k]]
