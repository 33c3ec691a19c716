"""Learning word vectors from other code on the machine: what is read, and that it is not searched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.learn import warm_start
from ncs.learn.embeddings import Embeddings, LsaConfig
from tests.words import table


def test_two_tables_are_joined_under_one_vocabulary_documents_of_the_first_in_front() -> None:
    own, other = table("hide keyboard", "open"), table("name: open file; doc: hide", "zip")
    both, here = warm_start.joined(own, other)
    assert list(both.vocabulary) == ["file", "hide", "keyboard", "open", "zip"]
    assert [both.vocabulary.word(int(id)) for id in here] == list(own.vocabulary)
    said = [[both.vocabulary.word(int(id)) for id in both.select_rows(("name", "doc"), np.array([row]))[0]]
            for row in range(len(both))]  # fmt: skip
    assert said == [["hide", "keyboard"], ["open"], ["open", "file", "hide"], ["zip"]]


def test_words_are_near_because_of_the_other_code(tmp_path: Path) -> None:
    sources = {"own": ["fetch", "download"], "other": ["fetch download url", "zip pack byte"] * 6}
    for name, docs in sources.items():
        (tmp_path / name).mkdir()
        for n, said in enumerate(docs):
            (tmp_path / name / f"f{n}.py").write_text(f'def f{n}():\n    """{said}"""\n    return {n}\n')
    alone = BuildConfig(lsa=LsaConfig(dim=2))
    configs = {"alone": alone, "warm": replace(alone, warm_start=str(tmp_path / "other"))}
    cosine = {}
    for name, config in configs.items():
        with Index.build(tmp_path / "own", tmp_path / name, config=config) as index:
            assert len(index) == 2
            cosine[name] = dict(index.neighbours("fetch", 20) or []).get("download", 0.0)
            training = cast("dict[str, Any]", index.manifest.counts["training"])
            assert index.manifest.config["warm_start"] == config.warm_start
            assert ("warm_start" in training) == (name == "warm")
    assert cosine["warm"] > cosine["alone"] + 0.3
    assert training["warm_start"]["documents"] == 12


def test_an_index_lends_its_words_without_being_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def hide_keyboard():\n    return window.hide()\n")
    with Index.build(tmp_path / "a.py", tmp_path / "index") as index:
        lent = warm_start.other_words(str(tmp_path / "index"))
        assert lent.ids.tolist() == index.words().ids.tolist()


def test_the_standard_library_is_read_without_tests_and_installed_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("zipper.py", "net/client.py", "site-packages/alien.py", "test/test_zip.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        stem = Path(name).stem
        (tmp_path / name).write_text(f"def {stem}_word():\n    return 1\n")
    monkeypatch.setattr("ncs.learn.warm_start.sysconfig.get_paths", lambda: {"stdlib": str(tmp_path)})
    words = set(warm_start.other_words("stdlib").vocabulary)
    assert {"zipper", "client"} <= words
    assert not {"alien", "zip"} & words


def test_what_is_not_there_or_holds_no_code_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no code to learn from at .*; name a folder"):
        warm_start.other_words(str(tmp_path / "nothing"))
    (tmp_path / "note.md").write_text("Nothing to run.\n")
    with pytest.raises(BadInput, match="no function found in"):
        warm_start.other_words(str(tmp_path))


def test_vectors_beside_other_code_are_those_of_both_together(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def open_file(path):\n    return open(path)\n")
    own, config = table("open file", "close file"), LsaConfig(dim=3)
    found, about = warm_start.train_beside(own, str(tmp_path), config)
    both, here = warm_start.joined(own, warm_start.other_words(str(tmp_path)))
    np.testing.assert_allclose(found.vectors, Embeddings.train(both, config).vectors[here])
    assert (about["source"], about["documents"]) == (str(tmp_path), 1)
