"""What holds for every ranker there is."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.index import Index
from ncs.search.rankers import FITTED, ON_REQUEST, RANKERS, Ranker, load_ranker
from ncs.storage.snapshot import Snapshot
from tests import heads
from tests.search import embeddings_server, tinybert

QUESTIONS = ("read a file line by line", "open the archive", "hide soft keyboard path close", "copy tree of files")
Fitted = Callable[..., Ranker]


def settings_of(name: str, folder: Path, url: str) -> dict[str, Any]:
    """What a ranker is given that cannot do without a setting."""
    if name == "ncs_enhanced":
        pair = {"query": "unpack an archive", "code": "def f(path):\n    tar.extractall(path)", "language": "python"}
        (folder / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
        return {"pairs": str(folder / "pairs.jsonl")}
    if name == "transformers":
        pytest.importorskip("sentence_transformers", reason="needs the extra transformers")
        path = folder / "tiny"
        return {"model": str(path if path.exists() else tinybert.write(path))}
    if name == "endpoint":
        pytest.importorskip("openai", reason="needs the extra endpoint")
        return {"url": url}
    if name == "unif":
        heads.head(words=tuple(sorted({word for text in QUESTIONS for word in text.split()}))).save(folder / "head")
        return {"head": str(folder)}
    return {}


@pytest.fixture(scope="module")
def fitted(library: Index, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fitted]:
    """A ranker by name, fitted over the library, or composed of rankers that are."""
    rankers: dict[str, Ranker] = {}
    folder = tmp_path_factory.mktemp("settings")

    def get(name: str, *, again: bool = False) -> Ranker:
        if name not in rankers or again:
            rankers[name] = library.fitted(name, **settings_of(name, folder, server.url))
            stack.callback(close, rankers[name])
        return rankers[name]

    with embeddings_server.serving() as server, ExitStack() as stack:
        yield get


def close(ranker: Ranker) -> None:
    """Close the connections of one that has some."""
    if closing := getattr(getattr(ranker, "_model", None), "close", None):
        closing()


@pytest.fixture(scope="module")
def saved(library: Index, fitted: Fitted, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Snapshot]:
    """A copy of the index with what a ranker on request saves."""

    def save(name: str) -> Snapshot:
        folder = tmp_path_factory.mktemp(name) / "copy"
        with Index.load(shutil.copytree(library.folder, folder)) as copy:
            snapshot = Snapshot(folder, replace(copy.description, files={}))
        if name in ON_REQUEST:
            fitted(name).save(snapshot.statistics, snapshot.segments[0].path)
        return snapshot

    return save


pytestmark = pytest.mark.parametrize("name", RANKERS)


def test_hits_are_ordered_by_score_and_row_each_once(name: str, library: Index, fitted: Fitted) -> None:
    for text in QUESTIONS:
        hits = fitted(name).search(text, 40)
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
        assert len({row for row, _ in hits}) == len(hits) <= 40
        assert all(type(row) is int and 0 <= row < len(library) for row, _ in hits)
        assert all(type(score) is float and math.isfinite(score) for _, score in hits)
        assert len(hits) > 1


def test_fewer_hits_are_the_first_of_more(name: str, fitted: Fitted) -> None:
    for text in QUESTIONS:
        assert fitted(name).search(text, 5) == fitted(name).search(text, 30)[:5]


@pytest.mark.parametrize("k", [4, 5, 6])
def test_a_confidence_does_not_depend_on_the_number_of_hits(name: str, fitted: Fitted, k: int) -> None:
    for text in QUESTIONS:
        few, many = (list(fitted(name).rank(text, n, confidences=True).confidences or ()) for n in (k, 30))
        assert few == pytest.approx(many[:k])
        assert len(few) == (k if name == "hybrid" else 0)


def test_only_allowed_rows_are_found(name: str, library: Index, fitted: Fitted) -> None:
    allowed = np.random.default_rng(2).random(len(library)) < 0.3
    for text in QUESTIONS:
        hits = fitted(name).search(text, len(library), allowed=allowed)
        assert hits
        assert all(allowed[row] for row, _ in hits)
        every = {row for row, _ in fitted(name).search(text, len(library))}
        assert {row for row, _ in hits} == {row for row in every if allowed[row]}
        assert fitted(name).search(text, 5, allowed=np.zeros(len(library), np.bool_)) == []
        assert fitted(name).search(text, 5, allowed=np.ones(len(library), np.bool_)) == fitted(name).search(text, 5)


def test_what_was_saved_answers_as_before(name: str, fitted: Fitted, saved: Callable[[str], Snapshot]) -> None:
    ranker, loaded = fitted(name), load_ranker(name, saved(name))
    for text in QUESTIONS:
        assert loaded.search(text, 20) == ranker.search(text, 20)
    assert json.loads(json.dumps(dict(loaded.config))) == json.loads(json.dumps(dict(ranker.config)))
    close(loaded)


def test_damaged_files_are_refused_with_the_remedy(name: str, saved: Callable[[str], Snapshot]) -> None:
    snapshot = saved(name)
    paths = [path for path in snapshot.folder.rglob("*") if name in path.parts[:-1] and path.is_file()]
    assert bool(paths) == (name in (*FITTED, *ON_REQUEST))
    for path in paths:
        content = path.read_bytes()
        replacements = [b"", content[:-2], b"[]"] if path.name == "config.json" else [b"", content[:-2]]
        for damaged in replacements:
            path.write_bytes(damaged)
            with pytest.raises(IndexDamaged, match="build the index again"):
                load_ranker(name, snapshot).search("read a file", 3)
        path.write_bytes(content)


def test_fitting_again_gives_the_same_answers(name: str, fitted: Fitted) -> None:
    answers = [fitted(name).search(text, 20) for text in QUESTIONS]
    assert [fitted(name, again=True).search(text, 20) for text in QUESTIONS] == answers


@pytest.mark.parametrize("k", [0, -1])
def test_fewer_than_one_hit_is_refused(name: str, fitted: Fitted, k: int) -> None:
    with pytest.raises(BadInput, match=f"k is {k}; it must be at least 1"):
        fitted(name).search("read a file", k)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_question_finds_nothing(name: str, fitted: Fitted, text: str) -> None:
    assert fitted(name).search(text, 5) == []


def test_those_on_request_are_named_with_what_they_need(name: str, library: Index, tmp_path: Path) -> None:
    assert library.has_ranker(name) == (name not in ON_REQUEST)
    if ON_REQUEST.get(name):
        with pytest.raises(BadInput, match=f"{ON_REQUEST[name]}="):
            library.fitted(name)
