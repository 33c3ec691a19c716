"""Rankers added to an index answer as those of a build with them, and a failure changes nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ncs.build.add_ranker import add_rankers
from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexNotFound
from ncs.extract import extract
from ncs.index import Index
from tests.heads import head

SOURCE = b"def open_file(path):\n    return open(path)\n\n\ndef close_socket(sock):\n    sock.close()\n"


def built(folder: Path, *rankers: str) -> Path:
    with Index.of(extract(SOURCE, "python"), folder, config=BuildConfig(rankers=rankers)):
        return folder


def answers(folder: Path, ranker: str) -> list[tuple[str, float]]:
    with Index.load(folder, verify=True) as index:
        return [(hit.document.name, hit.score) for hit in index.search("close the file", ranker=ranker)]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    head().save(tmp_path / "run" / "head")
    return tmp_path / "run"


def test_a_ranker_added_answers_as_one_that_was_built_and_the_others_stay(tmp_path: Path, trained: Path) -> None:
    one, other = built(tmp_path / "one"), built(tmp_path / "other", f"unif:head={trained}")
    before = answers(one, "hybrid")
    with pytest.raises(BadInput, match="built without 'unif'"):
        answers(one, "unif")
    assert set(add_rankers(one, [f"unif:head={trained}", "two_field"])) == {"unif", "two_field"}
    assert answers(one, "unif") == answers(other, "unif")
    assert answers(one, "hybrid") == before
    assert answers(one, "two_field")
    with Index.load(one) as index:
        assert index.description.config["rankers"] == [f"unif:head={trained}", "two_field"]
        seconds = index.description.counts["seconds"]
        assert isinstance(seconds, dict)
        assert {"unif", "two_field", "bm25"} <= set(seconds)


def test_a_ranker_added_again_is_made_anew(tmp_path: Path, trained: Path) -> None:
    folder = built(tmp_path / "index", f"unif:head={trained}")
    first = answers(folder, "unif")
    shutil.rmtree(trained)
    head(seed=5).save(tmp_path / "second")
    add_rankers(folder, [f"unif:head={tmp_path / 'second'}"])
    assert answers(folder, "unif") != first
    with Index.load(folder) as index:
        assert index.description.config["rankers"] == [f"unif:head={tmp_path / 'second'}"]


def test_an_index_stays_as_it_was_where_a_ranker_fails(tmp_path: Path, trained: Path) -> None:
    folder = built(tmp_path / "index", f"unif:head={trained}")
    before = files(folder)
    wrong = tmp_path / "pairs.jsonl"
    wrong.write_text("no JSON\n")
    for asked in (f"unif:head={tmp_path}", "unif", "bm25", "nothing", f"ncs_enhanced:pairs={wrong}"):
        with pytest.raises(BadInput):
            add_rankers(folder, ["two_field", asked])
        assert files(folder) == before
    replace(head(), reads="source").save(tmp_path / "source")
    bare = tmp_path / "bare"
    Index.of(extract(SOURCE, "python"), bare, config=BuildConfig(store_code=False)).close()
    before = files(bare)
    with pytest.raises(BadInput, match="keeps no code"):  # found out when the other one is fitted
        add_rankers(bare, ["two_field", f"unif:head={tmp_path / 'source'}"])
    assert files(bare) == before
    with pytest.raises(IndexNotFound):
        add_rankers(tmp_path / "nowhere", ["two_field"])
    assert not (tmp_path / "nowhere").exists()
