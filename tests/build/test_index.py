"""The public `Index`: from source files to hits."""

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

from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexNotFound
from ncs.index import Index
from ncs.search.rankers import ON_REQUEST, RANKERS
from tests import corpus
from tests.gitrepo import contents


def test_every_ranker_finds_the_function_first_and_within_filters(demo_index: Index) -> None:
    for ranker in set(RANKERS) - set(ON_REQUEST):
        hits = demo_index.search("hide soft keyboard", ranker=ranker)
        assert hits[0].document.qualified_name == "Keyboards.hideSoftKeyboard", ranker
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        python = demo_index.search("read file connection keyboard", ranker=ranker, language="python")
        assert {hit.document.language for hit in python} <= {"python"}, ranker
        assert demo_index.search("hide soft keyboard", ranker=ranker, path="nowhere/*") == []


def test_exact_duplicates_are_one_hit_with_its_copies_listed(demo_index: Index) -> None:
    document = demo_index.search("hide soft keyboard", ranker="bm25")[0].document
    assert document.repository == "app"
    assert [(copy.repository, copy.path, copy.start_line) for copy in document.copies] == [
        ("copy", "src/Keyboards.java", 11)
    ]
    assert demo_index.description.counts["copies"] == 3  # two functions and their class
    assert np.count_nonzero(demo_index.functions()) == 6
    assert {hit.document.kind for hit in demo_index.search("keyboard file", functions_only=True)} == {
        "method",
        "function",
    }
    hits = demo_index.search("hide soft keyboard", repository="copy")
    assert [hit.document.repository for hit in hits] == ["copy"] * len(hits)
    assert hits[0].document.copies[0].repository == "app"


def test_the_same_input_gives_the_same_files(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "repos")
    with Index.build(root, tmp_path / "a", workers=1) as one, Index.build(root, tmp_path / "b", workers=2) as other:
        files, others = (
            {name: entry for name, entry in each.description.files.items() if "/files/" not in name}
            for each in (one, other)
        )
    assert files == others


def test_without_stored_code_places_stay_and_the_code_is_nowhere(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "repos")
    with Index.build(root, tmp_path / "idx", config=BuildConfig(store_code=False)) as index:
        document = index.search("hide soft keyboard")[0].document
    assert (document.code, document.path, document.start_line) == ("", "src/Keyboards.java", 11)
    assert b"getWindowToken(), 0)" not in b"".join(contents(tmp_path / "idx").values())


def test_an_index_answers_though_a_build_fails_another_replaces_it_and_its_sources_go(tmp_path: Path) -> None:
    root, folder = corpus.write(tmp_path / "repos"), tmp_path / "idx"
    with pytest.raises(IndexNotFound, match="ncs build"):
        Index.load(folder)
    opened = Index.build(root, folder)  # no ranker is open yet
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no function found"):
        Index.build(tmp_path / "empty", folder)
    Index.load(folder, verify=True).close()
    (root / "tools" / "files.py").unlink()
    with Index.build(root, folder) as rebuilt:
        assert len(rebuilt) == 5  # three functions and their two classes
    shutil.rmtree(root)
    assert opened.search("read text file")[0].document.name == "read_text_file"
    opened.close()
    with Index.load(folder) as index:
        assert "hideSoftInputFromWindow" in index.search("hide soft keyboard")[0].document.code


@pytest.mark.slow
def test_kill_9_at_any_moment_leaves_an_index_that_answers(tmp_path: Path) -> None:
    """At random; `bin/fuzz crash` kills at every system call that writes."""
    root, folder = corpus.write(tmp_path / "repos"), tmp_path / "idx"
    Index.build(root, folder).close()
    commands = [["build", str(root), "-i", str(folder), "-q"], ["update", "-i", str(folder), "-q"]]
    draw, start = random.Random(7), time.perf_counter()
    subprocess.run([sys.executable, "-m", "ncs.cli", *commands[0]], check=True)
    seconds = time.perf_counter() - start
    for number in range(4):
        (root / "tools" / "changing.py").write_text(f"def version_of_this():\n    return {number}\n")
        command = [sys.executable, "-m", "ncs.cli", *commands[number % 2]]
        with subprocess.Popen(command, start_new_session=True) as process:
            time.sleep(draw.uniform(0.4, 1.1) * seconds)
            os.killpg(process.pid, signal.SIGKILL)
        with Index.load(folder, verify=True) as index:
            assert index.search("hide soft keyboard")[0].document.name == "hideSoftKeyboard"
    Index.update(folder)[0].close()
    with Index.load(folder) as index:
        assert index.search("version of this")[0].document.code.endswith("return 3")
        named = {segment.name for segment in index.snapshot.segments}
        assert {path.name for path in (folder / "segments").iterdir()} == named
