"""Rankers that a build is asked for: what cannot be built is refused before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.rankers import create_ranker, read_ranker
from tests import corpus
from tests.command import ncs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "no ranker called 'nonsense'; there are: bm25, ncs"),
        ("bm25", "'bm25' is no ranker on request; these are: two_field, ncs_postrank"),
        ("ncs_enhanced", "cannot be built without its pairs; write ncs_enhanced:pairs="),
        ("ncs_enhanced:pairs=none.jsonl", "cannot read .*none.jsonl"),
        ("transformers:device=cpu", "cannot be built without its model"),
        ("two_field:k2=1", "'two_field' has no setting 'k2'; there are: k1, b"),
        ("two_field:k1", "'k1' is no setting of a ranker; write two_field:key=value"),
        ("two_field:b=7", "BM25 needs"),
        ("transformers:model=x,pooling=median", "pooling is one of"),
    ],
)
def test_a_ranker_that_cannot_be_built_is_refused_before_anything_is_read(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message) as error:
        Index.build(tmp_path / "nowhere", tmp_path / "idx", config=BuildConfig(rankers=(text,)))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "idx").exists()


def test_settings_are_read_as_json_where_they_can_be() -> None:
    assert read_ranker("ncs:centre=true,query_weights=idf") == ("ncs", {"centre": True, "query_weights": "idf"})
    assert read_ranker("endpoint:url=http://localhost:8080/v1,batch=8") == (
        "endpoint", {"url": "http://localhost:8080/v1", "batch": 8}
    )  # fmt: skip
    with pytest.raises(BadInput, match="'ncs' has no setting 'center'; there are: query_weights, centre, stop_words"):
        create_ranker("ncs", center=True)


@pytest.mark.slow
def test_the_command_builds_rankers_on_request_and_query_uses_them(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    rankers = ("--ranker", "two_field", "--ranker", "ncs_postrank:depth=100")
    built = ncs("build", "repos", "-i", "idx", "-q", *rankers, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    for name in ("two_field", "ncs_postrank"):
        done = ncs("query", "-i", "idx", "--ranker", name, "-k", "1", "--json", "hide", "keyboard", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "hideSoftKeyboard" in done.stdout
    with Index.load(tmp_path / "idx", verify=True) as index:
        assert index.description.config["rankers"] == ["two_field", "ncs_postrank:depth=100"]
        assert index.ranker("ncs_postrank").config["depth"] == 100
        with pytest.raises(BadInput, match="built without 'ncs_enhanced'"):
            index.search("hide", ranker="ncs_enhanced")
