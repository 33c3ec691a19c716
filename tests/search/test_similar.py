"""Functions like one function, from the line of a file to what the command prints."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncs.answer import ask_similar
from ncs.config import BuildConfig
from ncs.errors import BadInput, SourceError
from ncs.index import Index
from ncs.search.aroma import features, similarity
from ncs.search.similar import SHARED, candidates, function_at, parse_place, without
from ncs.text.tokens import field_tokens
from ncs.types import Document, Location
from tests import gitrepo
from tests.command import invoke
from tests.corpus import QUICK

HIDE = "app/src/Keyboards.java"
OWN = """class Own {
    // close it
    void closeIt(Activity a) {
        InputMethodManager m = (InputMethodManager) a.getSystemService(Activity.INPUT_METHOD_SERVICE);
        m.hideSoftInputFromWindow(a.getCurrentFocus().getWindowToken(), 0);
    }

    int x;
    void outer() {
        run(new Runnable() {
            public void run() {
                go();
            }
        });
    }
}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("own") / "Own.java"
    file.write_text(OWN)
    return file


def test_the_innermost_function_at_a_line_is_meant_and_else_the_nearest_is_named(own: Path) -> None:
    names = {3: "closeIt", 6: "closeIt", 9: "outer", 10: "outer", 11: "run", 12: "run", 15: "outer"}
    assert {line: function_at(own, line).name for line in names} == names
    assert function_at(own, 3).path == own.as_posix()
    with pytest.raises(BadInput, match=r"no function at line 8 of .*; the nearest is outer, lines 9-15"):
        function_at(own, 8)
    with pytest.raises(BadInput, match="in no language"):
        function_at(own.with_name("notes.txt"), 1)
    with pytest.raises(SourceError, match="No such file"):
        function_at(own.with_name("None.java"), 1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes of this kind")
def test_a_pipe_under_the_name_of_a_source_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.java")
    with pytest.raises(SourceError, match="not a regular file"):
        function_at(tmp_path / "pipe.java", 1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_code_that_takes_too_much_memory_to_parse_ends_similar_with_one_line(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "Evil.java").write_text("class A { void f() { " + "a<" * 15_000 + " } }")
    run = invoke("similar", "Evil.java:1", "-i", str(demo / ".ncs"), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("ncs: this code cannot be parsed (")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("place", ["Own.java", "Own.java:", ":3", "Own.java:0", "Own.java:x", "Own.java:-1"])
def test_a_place_without_a_line_is_refused(place: str) -> None:
    with pytest.raises(BadInput, match="is not FILE:LINE"):
        parse_place(place)


@pytest.mark.parametrize("place", ["a/Own.java:4", "a/Own.java:4:17", "a/Own.java:4:", "a/Own.java:4-9"])
def test_a_place_may_have_a_column_or_a_last_line(place: str) -> None:
    assert parse_place(place) == (Path("a/Own.java"), 4)


def test_a_function_is_meant_by_its_name_and_of_several_the_places_are_said(tmp_path: Path) -> None:
    one = "def open_door(door):\n    door.lock.turn(door.key)\n    return door\n"
    other = one.replace("open_door", "open_gate").replace("return", "yield")
    files = {"a.py": one, "b.py": f"{other}\n\nclass Old:\n    def open_gate(self):\n        return self\n"}
    Index.build(gitrepo.write(tmp_path / "src", files), tmp_path / ".ncs", config=QUICK).close()

    def similar(place: str) -> list[str]:
        run = invoke("similar", place, "--no-code", cwd=tmp_path / "src")
        return [run.stdout, run.stderr, str(run.returncode)]

    assert similar("open_door") == similar("a.py:2")
    assert similar("a.py::openDoor") == similar("a.py:2")
    assert similar("a.py:2")[0].startswith("1. open_gate  b.py:1  ")
    assert similar("Old.open_gate") == similar("b.py:8")
    assert similar("open_gate")[1:] == ["ncs: several have this name; give the place of one: b.py:1, b.py:7\n", "2"]
    assert similar("Gate.open_door")[::2] == similar("a.py:2")[::2]
    assert similar("Gate.open_door")[1] == "ncs: no open_door in Gate; elsewhere:\n"
    assert similar("open_date")[1:] == ["ncs: no match for 'open_date'; similar: open_gate\n", "2"]
    assert similar("a.py")[1].startswith("ncs: 'a.py' is not FILE:LINE; name a line of a function, as src/Main.java:42")


def test_a_renamed_function_finds_its_likes_with_the_shares_of_their_features(own: Path, demo_index: Index) -> None:
    function = function_at(own, 4)
    first, second = demo_index.similar(function, 2)
    assert (first.document.name, second.document.name) == ("hideSoftKeyboard", "showSoftKeyboard")
    features_of_own = features(function.code, "java")
    for hit in (first, second):
        others = features(hit.document.code, "java")
        has, of = similarity(others, features_of_own), similarity(features_of_own, others)
        assert hit.score == pytest.approx(1 / (1 / has + 1 / of - 1))
    assert first.score > 0.8 > second.score > 0.2


def test_a_function_is_not_like_itself_and_its_exact_copies_come_first(demo: Path, demo_index: Index) -> None:
    function = function_at(demo / "repos" / HIDE, 12)
    first, second = demo_index.similar(function, 2)
    assert (first.document.repository, first.document.name, first.score) == ("copy", "hideSoftKeyboard", 1.0)
    assert first.document.digest == function.digest
    assert first.document.copies == ()
    assert (second.document.repository, second.document.name) == ("app", "showSoftKeyboard")
    assert [copy.repository for copy in second.document.copies] == ["copy"]


@pytest.mark.parametrize(
    ("path", "before", "repository", "copies"),
    [(HIDE, "\n\n", "copy", []), ("Keyboards.java", "", "app", ["copy"])],
    ids=["moved lines", "another path"],
)
def test_a_function_whose_lines_moved_is_itself_and_one_of_another_path_is_a_copy(
    demo: Path, demo_index: Index, tmp_path: Path, path: str, before: str, repository: str, copies: list[str]
) -> None:
    gitrepo.write(tmp_path, {path: before + (demo / "repos" / HIDE).read_text()})
    (hit,) = demo_index.similar(function_at(tmp_path / path, 12 + len(before)), 1)
    assert (hit.document.repository, hit.document.name) == (repository, "hideSoftKeyboard")
    assert [copy.repository for copy in hit.document.copies] == copies


def test_filters_hold_for_the_place_that_is_shown(demo: Path, demo_index: Index) -> None:
    function = function_at(demo / "repos" / HIDE, 12)
    in_app = [(hit.document.repository, hit.document.name) for hit in demo_index.similar(function, repository="app")]
    assert in_app[0] == ("app", "showSoftKeyboard")
    assert ("app", "hideSoftKeyboard") not in in_app
    copies = [hit.document for hit in demo_index.similar(function, repository="copy")]
    assert {document.repository for document in copies} == {"copy"}
    assert {document.name for document in copies} >= {"hideSoftKeyboard", "showSoftKeyboard"}
    assert {hit.document.language for hit in demo_index.similar(function, language="python")} <= {"python"}
    assert demo_index.similar(function, path="nowhere") == demo_index.similar(function, kind="class") == []
    every = [hit.document for hit in demo_index.similar(function, 50)]
    methods = [document for document in every if document.kind == "method"]
    assert [hit.document for hit in demo_index.similar(function, 50, kind="method")] == methods != every


def test_a_function_with_less_besides_comes_first(tmp_path: Path) -> None:
    body = "{ alpha(); beta(gamma); }"
    more = f"class A {{ void f() {{ if (q) {body} else {{ other(); more(); }} }} }}"
    less = f"class B {{ void f() {{ if (q) {body} }} }}"
    gitrepo.write(tmp_path / "r", {"A.java": f"{more}\n{less}\n"})
    (tmp_path / "Q.java").write_text(f"class Q {{ void f() {body} }}")
    with Index.build(tmp_path / "r", tmp_path / "i") as index:
        first, second = index.similar(function_at(tmp_path / "Q.java", 1), 3)
    assert first.score > second.score > 0.4
    assert [first.document.qualified_name, second.document.qualified_name] == ["B.f", "A.f"]


def test_candidates_share_most_words_by_idf_whatever_their_length(own: Path, demo_index: Index) -> None:
    function, postings = function_at(own, 4), demo_index.ranker("bm25").postings  # type: ignore[attr-defined]
    words = {word for field in SHARED for word in field_tokens(field, function.words.get(field, ()))}
    idf = {
        term.stem: math.log(1 + len(demo_index) / term.documents)
        for term in postings.terms(sorted(words))
        if term.documents
    }
    shared = {}
    for row in range(len(demo_index)):
        fields = demo_index.documents.document(row).words.items()
        tokens = [token for field, spellings in fields if field != "path" for token in field_tokens(field, spellings)]
        shared[row] = sum(idf.get(stem, 0) for stem in {term.stem for term in postings.terms(tokens)})
    rows = candidates(function, postings, 10)
    assert rows == sorted((row for row in shared if shared[row]), key=lambda row: (-shared[row], row))[:10]
    assert candidates(function, postings, 9, np.arange(len(demo_index)) != rows[0]) == rows[1:]


def test_only_the_place_of_the_function_itself_is_taken_away() -> None:
    there = Location("s", "B.java", 1, 3, "B.f")
    both = Document("r/a/A.java:3", "r", "a/A.java", 3, 5, "java", "method", "f", "A.f", digest=b"1", copies=(there,))
    own = Document("/x/r/a/A.java:3", "", "/x/r/a/A.java", 3, 5, "java", "method", "f", "A.f", digest=b"1")
    left = without(both, own)
    assert left is not None
    assert (left.location, left.copies) == (there, ())
    assert without(both, replace(own, path="/x/ar/a/A.java")) == both
    assert without(replace(both, copies=(), digest=b"2"), own) is None
    moved, edited = replace(own, start_line=9), replace(both, digest=b"2")
    assert without(both, moved) == left
    assert without(edited, moved) == edited


def test_an_index_without_code_and_a_wrong_k_are_refused(
    demo: Path, own: Path, demo_index: Index, tmp_path: Path
) -> None:
    function = function_at(own, 4)
    with pytest.raises(BadInput, match="k is 0"):
        demo_index.similar(function, 0)
    bare = Index.build(demo / "repos", tmp_path / "bare", config=BuildConfig(store_code=False))
    with bare, pytest.raises(BadInput, match="keeps no code"):
        bare.similar(function)


def test_the_answer_has_the_shape_of_a_querys_and_more(demo: Path, demo_index: Index) -> None:
    answer = ask_similar(demo_index, f"{demo / 'repos' / HIDE}:12", 2)
    assert set(answer) == {"query", "ranker", "index", "unknown_words", "notes", "function", "marked", "hits"}
    first, second = answer["hits"]
    assert (first["score"], first["reverse"], first["exact_copy"], second["exact_copy"]) == (1.0, 1.0, True, False)
    assert {"get", "system", "window", "hide", "keyboard"} <= set(first["matched"])


def test_the_command_prints_places_code_and_copies(demo: Path) -> None:
    done = invoke("similar", f"repos/{HIDE}:12", "-k", "2", cwd=demo)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    place = "repos/copy/src/Keyboards.java:11"
    assert lines[:2] == [f"1. Keyboards.hideSoftKeyboard  {place}  100% similar", "   exact copy"]
    assert lines[2].startswith("    11  public static void hideSoftKeyboard")
    assert "   also at repos/copy/src/Keyboards.java:17" in lines
    assert done.stderr == ""
    hits = [json.loads(line) for line in invoke("similar", f"repos/{HIDE}:12", "--jsonl", cwd=demo).stdout.splitlines()]
    answer = json.loads(invoke("similar", f"repos/{HIDE}:12", "--json", cwd=demo).stdout)
    assert hits == answer["hits"]
