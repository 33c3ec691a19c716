"""The map of an index: the same picture each time, alike functions near each other, beside the index as it was."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from ncs.build.map import SIDE, make_map, project, sample
from ncs.cli.main import app as cli
from ncs.errors import BadInput, IndexDamaged
from ncs.index import Index
from ncs.serve.http.app import create_app
from ncs.serve.http.settings import Settings
from ncs.storage.map_files import VECTORS, Map
from ncs.storage.vectors import VectorIndex
from tests import corpus

pytest.importorskip("openTSNE", reason="the extra `map` is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "index").close()
    return tmp_path / "index"


def clouds() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Three clouds of 40 unit vectors, far from each other."""
    drawn = np.random.default_rng(5)
    centres = np.eye(3, 16)[np.repeat(np.arange(3), 40)]
    vectors = (centres + 0.1 * drawn.standard_normal((120, 16))).astype(np.float32)
    unit: np.ndarray[tuple[int, int], np.dtype[np.float32]] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def test_vectors_of_one_cloud_are_nearer_to_each_other_on_the_map_than_to_others() -> None:
    places = project(clouds(), seed=1).astype(float)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = np.repeat(np.arange(3), 40)[:, None] == np.repeat(np.arange(3), 40)
    nearest = np.argsort(apart + np.diag([np.inf] * 120), axis=1)[:, :5]
    assert same[np.arange(120)[:, None], nearest].all()
    assert (places.min(), places.max()) == (0, SIDE)


def test_the_same_seed_draws_the_same_map_and_another_another() -> None:
    first, again, other = (project(clouds(), seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_sample_is_seeded_and_leaves_out_documents_without_words() -> None:
    vectors = np.eye(8, dtype=np.float32)
    vectors[[2, 5]] = 0
    index = VectorIndex.build([vectors], 8)
    assert sample(index, 100, 1).tolist() == [0, 1, 3, 4, 6, 7]
    assert sample(index, 5, 1).tolist() == sample(index, 5, 1).tolist()
    assert set(sample(index, 5, 1).tolist()) < {0, 1, 3, 4, 6, 7}
    with pytest.raises(BadInput, match="4 points"):
        sample(index, 4, 1)
    with pytest.raises(BadInput, match="1 documents"):
        sample(VectorIndex.build([vectors[:1]], 8), 5, 1)


def test_a_document_that_is_no_point_stands_amid_the_five_most_like_it() -> None:
    vectors = VectorIndex.build([clouds()], 16)
    rows = np.array([row for row in range(120) if row != 50], np.int32)
    places = project(vectors.vectors(rows.astype(np.int64)), seed=1)
    drawn = Map(rows, places, {})
    similar = clouds()[50] @ clouds()[rows].T
    nearest = np.argsort(-similar)[:5]
    expected = np.median(places[nearest], axis=0).astype(int)
    assert drawn.where(vectors, [50, 7]) == [tuple(expected), tuple(places[7].tolist())]


def test_a_map_leaves_the_index_as_it_was_and_an_update_without_changes_keeps_it(folder: Path) -> None:
    with Index.load(folder) as index:
        before = [hit.document.id for hit in index.search("hide keyboard", 5)]
        rows = len(VectorIndex.load(index.data / VECTORS).filled())
    made = make_map(folder)
    with Index.load(folder, verify=True) as index:
        assert [hit.document.id for hit in index.search("hide keyboard", 5)] == before
        found = Map.load(index.data)
        assert found is not None
        assert np.array_equal(found.places, made.places)
        assert len(found.rows) == rows == index.description.counts["map"]
        (index.data / "map" / "places.npy").write_bytes(b"nothing")
        with pytest.raises(IndexDamaged, match="ncs map"):
            Map.load(index.data)


def places(index: Index) -> dict[tuple[str, str, str], list[int]]:
    """(Repository, path, qualified name) of every point -> its place on the map."""
    drawn = Map.load(index.data)
    assert drawn is not None
    assert drawn.rows.tolist() == sorted(set(drawn.rows.tolist()))
    at = index.documents.locations(drawn.rows.tolist())
    return {
        (one.repository, one.path, one.qualified_name): xy for one, xy in zip(at, drawn.places.tolist(), strict=True)
    }


def test_an_update_carries_the_map_over_though_lines_move_and_new_functions_get_a_place(tmp_path: Path) -> None:
    repos = corpus.write(tmp_path / "repos")
    Index.build(repos, tmp_path / "index").close()
    make_map(tmp_path / "index")
    with Index.load(tmp_path / "index") as index:
        before = places(index)
    repository, path, old = next(name for name in before if name[2] == "Keyboards.showSoftKeyboard")
    (file,) = (file for file in repos.rglob("Keyboards.java") if file.as_posix().endswith(f"{repository}/{path}"))
    file.write_text("// a line more\n" + file.read_text().replace("showSoftKeyboard", "revealSoftKeyboard"))
    with Index.update(tmp_path / "index")[0] as index:
        after = places(index)
        assert len(after) == len(VectorIndex.load(index.data / VECTORS).filled()) == index.description.counts["map"]
    assert before.keys() - after.keys() <= {(repository, path, old)}
    assert {name: after[name] for name in before.keys() & after.keys()} == {
        name: before[name] for name in before.keys() & after.keys()
    }
    assert (repository, path, "Keyboards.revealSoftKeyboard") in after.keys() - before.keys()
    Index.load(tmp_path / "index", verify=True).close()


def test_a_map_of_which_most_has_gone_is_dropped_and_that_is_said(tmp_path: Path) -> None:
    repos = corpus.write(tmp_path / "repos")
    Index.build(repos, tmp_path / "index").close()
    make_map(tmp_path / "index")
    for path in repos.rglob("*.*"):
        if path.is_file():
            path.unlink()
    (repos / "other.py").write_text("def other_thing(path):\n    return path.strip()\n")
    with Index.build(repos, tmp_path / "index") as index:
        assert Map.load(index.data) is None
        assert "map" not in index.description.counts
        assert [note for note in index.description.notes if "draw it anew with: ncs map" in note]


def test_the_command_draws_and_the_server_shows_every_point_with_its_place(folder: Path) -> None:
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


def test_marks_are_where_the_questions_words_stand(folder: Path) -> None:
    with TestClient(create_app(Settings({"demo": folder})), "http://localhost") as client:
        asked = {"query": "hiding the keyboards", "marks": True}
        hit = client.post("/api/search", json=asked).json()["hits"][0]
        like = client.get("/api/similar", params={"id": hit["id"], "marks": "true"})
        plain = client.post("/api/search", json={**asked, "marks": False}).json()["hits"][0]
    words = {hit["code"][start:end].lower() for start, end in hit["marks"]}
    assert words == {"hide", "keyboard"}
    assert all("marks" in each for each in json.loads(like.text)["hits"])
    assert "marks" not in plain
