"""The map of an index: the same picture each time, similar functions near each other, and the index as it was."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from ncs.build import update as updating
from ncs.build.map import SIDE, VECTORS, Map, make_map, project, sample
from ncs.cli.main import app as cli
from ncs.errors import BadInput, IndexDamaged
from ncs.index import Index
from ncs.serve.http.app import create_app
from ncs.serve.http.settings import Settings
from ncs.storage.vectors import VectorIndex, Vectors
from tests import corpus

pytestmark = pytest.mark.skipif(not find_spec("openTSNE"), reason="the extra `map` is not installed")


def clouds() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Three clouds of 40 unit vectors, far from each other."""
    centers = np.eye(3, 16)[np.repeat(np.arange(3), 40)]
    vectors = (centers + 0.1 * np.random.default_rng(5).standard_normal((120, 16))).astype(np.float32)
    unit: np.ndarray[tuple[int, int], np.dtype[np.float32]] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def test_vectors_of_one_cloud_are_nearer_to_each_other_than_to_others_and_the_seed_draws_the_map() -> None:
    drawn = project(clouds(), seed=1)
    places = drawn.astype(float)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = np.repeat(np.arange(3), 40)[:, None] == np.repeat(np.arange(3), 40)
    nearest = np.argsort(apart + np.diag([np.inf] * 120), axis=1)[:, :5]
    assert same[np.arange(120)[:, None], nearest].all()
    assert (places.min(), places.max()) == (0, SIDE)
    assert np.array_equal(drawn, project(clouds(), seed=1))
    assert not np.array_equal(drawn, project(clouds(), seed=2))


def test_a_sample_is_seeded_and_leaves_out_documents_without_words() -> None:
    vectors = np.eye(8, dtype=np.float32)
    vectors[[2, 5]] = 0
    index = Vectors([VectorIndex.build([vectors], 8)])
    assert sample(index, 100, 1).tolist() == [0, 1, 3, 4, 6, 7]
    assert sample(index, 5, 1).tolist() == sample(index, 5, 1).tolist()
    assert set(sample(index, 5, 1).tolist()) < {0, 1, 3, 4, 6, 7}
    with pytest.raises(BadInput, match="4 points"):
        sample(index, 4, 1)
    with pytest.raises(BadInput, match="1 document with vectors"):
        sample(Vectors([VectorIndex.build([vectors[:1]], 8)]), 5, 1)


def test_a_document_that_is_no_point_stands_amid_the_five_most_like_it() -> None:
    vectors = Vectors([VectorIndex.build([clouds()], 16)])
    rows = np.array([row for row in range(120) if row != 50], np.int32)
    places = project(vectors.vectors(rows.astype(np.int64)), seed=1)
    drawn = Map(rows, places, {})
    similar = clouds()[50] @ clouds()[rows].T
    nearest = np.argsort(-similar)[:5]
    expected = np.median(places[nearest], axis=0).astype(int)
    assert drawn.where(vectors, [50, 7]) == [tuple(expected), tuple(places[7].tolist())]


def test_a_map_leaves_the_index_as_it_was_and_an_update_keeps_the_points_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repositories = corpus.write(tmp_path / "repos")
    folder = tmp_path / "index"
    with Index.build(repositories, folder) as index:
        before = [hit.document.id for hit in index.search("hide keyboard", 5)]
        rows = Vectors.open(index.snapshot, VECTORS).nonzero_rows()
    drawn = make_map(folder)
    with Index.load(folder, verify=True) as index:
        assert [hit.document.id for hit in index.search("hide keyboard", 5)] == before
        loaded = Map.load(index.snapshot)
        assert loaded is not None
        assert np.array_equal(loaded.places, drawn.places)
        assert loaded.rows.tolist() == rows.tolist()
        assert index.description.counts["map"] == len(rows)
        places = dict(zip(index.documents.ids(loaded.rows.tolist()), loaded.places.tolist(), strict=True))
    (repositories / "tools" / "files.py").write_text("def read_other_file(path):\n    return open(path).read()\n")
    with Index.update(folder)[0] as index:
        assert len(index.snapshot.segments) == 2
        loaded = Map.load(index.snapshot)
        assert loaded is not None
        left = dict(zip(index.documents.ids(loaded.rows.tolist()), loaded.places.tolist(), strict=True))
        assert left == {id: place for id, place in places.items() if "files.py" not in id}
        row = index.documents.row_of("tools/files.py:1")
        assert row is not None
        assert len(loaded.where(Vectors.open(index.snapshot, VECTORS), [row])) == 1
    drawn, end = make_map(folder), index.snapshot.segments[1].first
    assert drawn.rows[-1] >= end
    monkeypatch.setattr(updating, "MAX_SEGMENTS", 2)
    (repositories / "tools" / "more.py").write_text("def write_file(path, text):\n    open(path).write(text)\n")
    with Index.update(folder)[0] as index:  # it merges all segments but the first
        loaded = Map.load(index.snapshot)
        assert loaded is not None
        assert loaded.rows.tolist() == [row for row in drawn.rows.tolist() if row < end]
        (index.snapshot.statistics / "map" / "places.npy").write_bytes(b"nothing")
        with pytest.raises(IndexDamaged, match="ncs map"):
            Map.load(index.snapshot)


def test_the_command_draws_and_the_server_shows_every_point_with_its_place(demo: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(demo / ".ncs", tmp_path / "index")
    settings = Settings({"demo": folder})
    with TestClient(create_app(settings), "http://localhost") as client:
        refused = client.get("/api/map")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "no_map")
        assert "ncs map" in refused.json()["error"]["remedy"]
    ran = CliRunner().invoke(cli, ["map", "-i", str(folder), "--points", "6"])
    assert ran.exit_code == 0, ran.output
    with TestClient(create_app(settings), "http://localhost") as client:
        shown = client.get("/api/map").json()
        assert (shown["points"], shown["side"]) == (6, SIDE)
        hits = client.get("/api/search", params={"query": "hide soft keyboard", "k": 5}).json()["hits"]
        asked = [*shown["ids"], hits[0]["id"], "nobody/knows.py:1"]
        places = client.post("/api/map/places", json={"ids": asked}).json()["places"]
        documents = [client.get("/api/document", params={"id": id}).json() for id in shown["ids"]]
    named = {place["id"]: (place["x"], place["y"]) for place in places}
    assert set(named) == {*shown["ids"], hits[0]["id"]}
    for at, document in enumerate(documents):
        assert named[document["id"]] == (shown["x"][at], shown["y"][at])
        assert shown["names"][at] == document["qualified_name"]
        assert shown["languages"][shown["language"][at]] == document["language"]
        assert shown["repositories"][shown["repository"][at]] == document["repository"]


def test_marks_are_where_the_questions_words_stand(demo: Path) -> None:
    with TestClient(create_app(Settings({"demo": demo / ".ncs"})), "http://localhost") as client:
        asked = {"query": "hiding the keyboards", "marks": True}
        hit = client.post("/api/search", json=asked).json()["hits"][0]
        like = client.get("/api/similar", params={"id": hit["id"], "marks": "true"})
        plain = client.post("/api/search", json={**asked, "marks": False}).json()["hits"][0]
    words = {hit["code"][start:end].lower() for start, end in hit["marks"]}
    assert words == {"hide", "keyboard"}
    assert all("marks" in each for each in like.json()["hits"])
    assert "marks" not in plain
