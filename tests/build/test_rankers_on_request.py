"""Rankers on request, fitted by a build or added to an index: what cannot be built changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ncs.build.pipeline import add_rankers
from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexNotFound
from ncs.extract import extract
from ncs.index import Index
from ncs.search.rankers import read_ranker
from ncs.storage.snapshot import read_description
from tests import corpus
from tests.command import invoke
from tests.corpus import QUICK
from tests.gitrepo import contents
from tests.heads import SOURCE, head


def built(folder: Path, *rankers: str) -> Path:
    with Index.of(extract(SOURCE, "python"), folder, config=BuildConfig(rankers=rankers)):
        return folder


def answers(folder: Path, ranker: str) -> list[tuple[str, float]]:
    with Index.load(folder, verify=True) as index:
        return [(hit.document.name, hit.score) for hit in index.search("close the file", ranker=ranker)]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    head().save(tmp_path / "run" / "head")
    return tmp_path / "run"


def test_a_ranker_added_once_or_again_answers_as_one_that_was_built_and_the_others_stay(
    tmp_path: Path, trained: Path
) -> None:
    one, other = built(tmp_path / "one"), built(tmp_path / "other", f"unif:head={trained}")
    before = answers(one, "hybrid")
    with pytest.raises(BadInput, match="built without 'unif'"):
        answers(one, "unif")
    assert set(add_rankers(one, [f"unif:head={trained}", "two_field"])) == {"unif", "two_field"}
    assert answers(one, "unif") == answers(other, "unif")
    assert answers(one, "hybrid") == before
    assert answers(one, "two_field")
    description = read_description(one)
    assert description.config["rankers"] == [f"unif:head={trained}", "two_field"]
    assert {"unif", "two_field", "bm25"} <= set(description.counts["seconds"])
    head(seed=5).save(tmp_path / "second")
    add_rankers(one, [f"unif:head={tmp_path / 'second'}"])
    assert answers(one, "unif") != answers(other, "unif")
    assert read_description(one).config["rankers"] == ["two_field", f"unif:head={tmp_path / 'second'}"]


def test_an_index_stays_as_it_was_where_a_ranker_fails(tmp_path: Path, trained: Path) -> None:
    folder = built(tmp_path / "index", f"unif:head={trained}")
    before = contents(folder)
    wrong = tmp_path / "pairs.jsonl"
    wrong.write_text("no JSON\n")
    for text in (f"unif:head={tmp_path}", "unif", "bm25", "nothing", f"ncs_enhanced:pairs={wrong}"):
        with pytest.raises(BadInput):
            add_rankers(folder, ["two_field", text])
        assert contents(folder) == before
    replace(head(), reads="source").save(tmp_path / "source")
    bare = tmp_path / "bare"
    Index.of(extract(SOURCE, "python"), bare, config=BuildConfig(store_code=False)).close()
    before = contents(bare)
    with pytest.raises(BadInput, match="keeps no code"):  # found out when the other one is fitted
        add_rankers(bare, ["two_field", f"unif:head={tmp_path / 'source'}"])
    assert contents(bare) == before
    with pytest.raises(IndexNotFound):
        add_rankers(tmp_path / "nowhere", ["two_field"])
    assert not (tmp_path / "nowhere").exists()


def test_to_an_index_with_updates_only_rankers_that_follow_updates_are_added(tmp_path: Path) -> None:
    root, folder = corpus.write(tmp_path / "repos"), tmp_path / "idx"
    Index.build(root, folder, config=QUICK).close()
    (root / "tools" / "files.py").write_text("def read_other_file(path):\n    return open(path).read()\n")
    Index.update(folder)[0].close()
    before = contents(folder)
    with pytest.raises(BadInput, match="ncs update --compact"):
        add_rankers(folder, ["two_field"])
    assert contents(folder) == before
    add_rankers(folder, ["ncs_postrank"])
    with Index.load(folder, verify=True) as index:
        names = [hit.document.name for hit in index.search("read file", ranker="ncs_postrank")]
        assert "read_other_file" in names
        assert "read_text_file" not in names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "no ranker 'nonsense'; choose from bm25, ncs"),
        ("bm25", "no ranker on request 'bm25'; choose from two_field, ncs_postrank"),
        ("ncs_enhanced", "cannot be built without its pairs; write ncs_enhanced:pairs="),
        ("ncs_enhanced:pairs=none.jsonl", "cannot read .*none.jsonl"),
        ("transformers:device=cpu", "cannot be built without its model"),
        ("two_field:k2=1", "no setting 'k2' of two_field; choose from k1, b"),
        ("two_field:k1", "'k1' is no setting of a ranker; write two_field:key=value"),
        ("two_field:b=7", "BM25 needs"),
        ("two_field:k1=high", "k1 is 1.2 by default; 'high' has another type"),
        ("ncs_postrank:depth=2.5", "depth is 500 by default; 2.5 has another type"),
        ("ncs_postrank:stop_words=no", "stop_words is False by default; 'no' has another type"),
        ("transformers:model=3", "the ranker transformers needs|cannot open the model 3 "),
        ("transformers:model=x,pooling=median", "no pooling 'median'; choose from"),
    ],
)
def test_a_ranker_that_cannot_be_built_is_refused_before_anything_is_read(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message) as error:
        Index.build(tmp_path / "nowhere", tmp_path / "idx", config=BuildConfig(rankers=(text,)))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "idx").exists()


def test_a_setting_may_be_an_address() -> None:
    url = "http://localhost:8080/v1"
    assert read_ranker(f"endpoint:url={url},batch=8") == ("endpoint", {"url": url, "batch": 8})


@pytest.mark.slow
def test_the_command_builds_rankers_on_request(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    rankers = ("--ranker", "two_field", "--ranker", "ncs_postrank:depth=100")
    done = invoke("build", "repos", "-i", "idx", "-q", *rankers, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with Index.load(tmp_path / "idx", verify=True) as index:
        for name in ("two_field", "ncs_postrank"):
            assert index.search("hide keyboard", 1, ranker=name)[0].document.name == "hideSoftKeyboard"
        assert index.description.config["rankers"] == ["two_field", "ncs_postrank:depth=100"]
        assert index.ranker("ncs_postrank").config["depth"] == 100
