"""Rankers that a build is asked for: what is refused before it starts, and the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ncs.cli.main import app
from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.search.rankers import create_ranker, read_ranker
from tests import corpus


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "no ranker called 'nonsense'; there are: bm25, ncs"),
        ("bm25", "'bm25' is no ranker on request; these are: two_field, ncs_postrank"),
        ("ncs_enhanced", "cannot be built without its pairs; write ncs_enhanced:pairs="),
        ("transformers:device=cpu", "cannot be built without its model"),
        ("two_field:k2=1", "'two_field' has no setting 'k2'; there are: k1, b"),
        ("two_field:k1", "'k1' is no setting of a ranker; write two_field:key=value"),
        ("two_field:b=7", "BM25 needs"),
        ("transformers:model=x,pooling=median", "pooling is one of"),
    ],
)
def test_a_ranker_that_cannot_be_built_is_refused_before_the_build(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        BuildConfig(rankers=(text,))
    assert "\n" not in str(caught.value)


def test_what_is_not_to_be_had_is_told_before_anything_is_read(tmp_path: Path) -> None:
    config = BuildConfig(rankers=(f"ncs_enhanced:pairs={tmp_path / 'none.jsonl'}",))
    with pytest.raises(BadInput, match=r"cannot read .*none.jsonl"):
        Index.build(tmp_path / "nowhere", tmp_path / "idx", config=config)
    assert not (tmp_path / "idx").exists()


def test_settings_are_read_as_json_where_they_can_be() -> None:
    assert read_ranker("ncs:centre=true,query_weights=idf") == ("ncs", {"centre": True, "query_weights": "idf"})
    assert read_ranker("endpoint:url=http://localhost:8080/v1,batch=8") == (
        "endpoint", {"url": "http://localhost:8080/v1", "batch": 8}
    )  # fmt: skip
    with pytest.raises(BadInput, match="'ncs' has no setting 'center'; there are: query_weights, centre, stop_words"):
        create_ranker("ncs", center=True)


def test_the_command_builds_them_and_query_asks_them(tmp_path: Path) -> None:
    run = CliRunner()
    repos, folder = corpus.write(tmp_path / "repos"), tmp_path / "idx"
    asked = ["--ranker", "two_field", "--ranker", "ncs_postrank:depth=100"]
    built = run.invoke(app, ["build", str(repos), "-i", str(folder), "-q", *asked])
    assert built.exit_code == 0, built.output
    for name in ("two_field", "ncs_postrank"):
        found = run.invoke(app, ["query", "-i", str(folder), "--ranker", name, "-k", "1", "--json", "hide", "keyboard"])
        assert found.exit_code == 0, found.output
        assert "hideSoftKeyboard" in found.output
    with Index.load(folder, verify=True) as index:
        assert index.description.config["rankers"] == ["two_field", "ncs_postrank:depth=100"]
        assert index.ranker("ncs_postrank").config["depth"] == 100
        with pytest.raises(BadInput, match="built without 'ncs_enhanced'"):
            index.search("hide", ranker="ncs_enhanced")
