"""Functions like one function, from the line of a file to what the command prints."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ncs.answer import ask_similar
from ncs.config import BuildConfig
from ncs.errors import BadInput, SourceError
from ncs.index import Index
from ncs.search.aroma import features, similarity
from ncs.search.similar import SHARED, candidates, function_at, parse_place, similar, without
from ncs.text.tokens import field_tokens
from ncs.types import Document, Location
from tests import corpus
from tests.command import ncs

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
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    corpus.write(home / "repos")
    (home / "Own.java").write_text(OWN)
    (home / "notes.txt").write_text("no code")
    Index.build(home / "repos", home / ".ncs").close()
    return home


def names(index: Index, function: Document, k: int = 10) -> list[str]:
    return [f"{hit.document.repository}/{hit.document.name}" for hit in index.similar(function, k)]


def test_the_innermost_function_at_a_line_is_meant(home: Path) -> None:
    file = home / "Own.java"
    assert [function_at(file, line).name for line in (3, 6, 9, 10, 11, 12, 15)] == [
        "closeIt", "closeIt", "outer", "outer", "run", "run", "outer",
    ]  # fmt: skip
    assert function_at(file, 3).path == file.as_posix()


def test_where_no_function_stands_the_nearest_is_named(home: Path) -> None:
    with pytest.raises(BadInput, match=r"no function at line 8 of .*; the nearest is outer, lines 9-15"):
        function_at(home / "Own.java", 8)
    with pytest.raises(BadInput, match="in no language"):
        function_at(home / "notes.txt", 1)
    with pytest.raises(SourceError, match="No such file"):
        function_at(home / "None.java", 1)
    for place in ("Own.java", "Own.java:", ":3", "Own.java:0", "Own.java:x", "Own.java:-1"):
        with pytest.raises(BadInput, match="is not FILE:LINE"):
            parse_place(place)


def test_a_renamed_function_finds_its_likes_with_the_shares_of_their_features(home: Path) -> None:
    function = function_at(home / "Own.java", 4)
    with Index.load(home / ".ncs") as index:
        first, second = index.similar(function, 2)
    assert (first.document.name, second.document.name) == ("hideSoftKeyboard", "showSoftKeyboard")
    own = features(function.code, "java")
    for hit in (first, second):
        assert hit.score == similarity(features(hit.document.code, "java"), own)
    assert first.score > 0.9 > second.score > 0.3


def test_a_function_is_not_like_itself_and_its_exact_copies_come_first(home: Path) -> None:
    function = function_at(home / "repos" / HIDE, 12)
    with Index.load(home / ".ncs") as index:
        first, second = index.similar(function, 2)
    assert (first.document.repository, first.document.name, first.score) == ("copy", "hideSoftKeyboard", 1.0)
    assert first.document.digest == function.digest
    assert first.document.copies == ()
    assert (second.document.repository, second.document.name) == ("app", "showSoftKeyboard")
    assert [copy.repository for copy in second.document.copies] == ["copy"]


def test_a_function_whose_lines_moved_is_still_itself(home: Path, tmp_path: Path) -> None:
    moved = tmp_path / "app" / "src" / "Keyboards.java"
    moved.parent.mkdir(parents=True)
    moved.write_text("\n\n" + (home / "repos" / HIDE).read_text())
    with Index.load(home / ".ncs") as index:
        assert names(index, function_at(moved, 14), 1) == ["copy/hideSoftKeyboard"]


def test_the_same_code_under_another_path_is_a_copy(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "Keyboards.java"
    elsewhere.write_bytes((home / "repos" / HIDE).read_bytes())
    with Index.load(home / ".ncs") as index:
        (hit,) = index.similar(function_at(elsewhere, 12), 1)
    assert (hit.document.repository, [copy.repository for copy in hit.document.copies]) == ("app", ["copy"])


def test_filters_hold_for_the_place_that_is_shown(home: Path) -> None:
    function = function_at(home / "repos" / HIDE, 12)
    with Index.load(home / ".ncs") as index:
        found = index.similar(function, repository="app")
        assert [(hit.document.repository, hit.document.name) for hit in found][:1] == [("app", "showSoftKeyboard")]
        assert "hideSoftKeyboard" not in [hit.document.name for hit in found]
        copies = index.similar(function, repository="copy")
        assert {hit.document.repository for hit in copies} == {"copy"}
        assert {hit.document.name for hit in copies} >= {"hideSoftKeyboard", "showSoftKeyboard"}
        assert {hit.document.language for hit in index.similar(function, language="python")} <= {"python"}
        assert index.similar(function, path="nowhere") == []
        every = [(hit.document.kind, hit.document.qualified_name) for hit in index.similar(function, 50)]
        assert len({kind for kind, _ in every}) > 1
        for kind in {kind for kind, _ in every}:
            of_kind = [hit.document.qualified_name for hit in index.similar(function, 50, kind=kind)]
            assert of_kind == [name for is_kind, name in every if is_kind == kind]
        assert index.similar(function, kind="class") == []  # an outline is no function


def test_ties_go_to_the_function_with_least_besides(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    body = "{ alpha(); beta(gamma); }"
    more = f"class A {{ void f() {{ if (q) {body} else {{ other(); more(); }} }} }}"
    less = f"class B {{ void f() {{ if (q) {body} }} }}"
    (tmp_path / "r" / "A.java").write_text(f"{more}\n{less}\n")
    (tmp_path / "Q.java").write_text(f"class Q {{ void f() {body} }}")
    function = function_at(tmp_path / "Q.java", 1)
    with Index.build(tmp_path / "r", tmp_path / "i") as index:
        first, second = similar(function, index.ranker("bm25").postings, index.documents, 3)  # type: ignore[attr-defined]
    assert first.share == second.share > 0.7
    assert [first.document.qualified_name, second.document.qualified_name] == ["B.f", "A.f"]
    assert first.reverse > second.reverse


def test_candidates_share_most_words_by_idf_whatever_their_length(home: Path) -> None:
    function = function_at(home / "Own.java", 4)
    with Index.load(home / ".ncs") as index:
        postings = index.ranker("bm25").postings  # type: ignore[attr-defined]
        found = candidates(function, postings, 10)
        words = {word for field in SHARED for word in field_tokens(field, function.words.get(field, ()))}
        terms = {term.stem: term.documents for term in postings.terms(sorted(words)) if term.documents}
        shared = {}
        for row in range(len(index)):
            held = index.documents.document(row)
            stems = {
                term.stem for f, s in held.words.items() if f != "path" for term in postings.terms(field_tokens(f, s))
            }
            shared[row] = sum(math.log(1 + len(index) / n) for stem, n in terms.items() if stem in stems)
        assert found == sorted((row for row in shared if shared[row]), key=lambda row: (-shared[row], row))
        mask = np.arange(len(index)) != found[0]
        assert candidates(function, postings, 10, mask) == found[1:]
        assert candidates(function, postings, 1) == found[:1]


def test_only_the_place_of_the_function_itself_is_taken_away() -> None:
    here, there = Location("r", "a/A.java", 3, 5, "A.f"), Location("s", "B.java", 1, 3, "B.f")
    both = Document("r/a/A.java:3", "r", "a/A.java", 3, 5, "java", "method", "f", "A.f", digest=b"1", copies=(there,))
    asked = Document("/x/r/a/A.java:3", "", "/x/r/a/A.java", 3, 5, "java", "method", "f", "A.f", digest=b"1")
    left = without(both, asked)
    assert left is not None
    assert (left.location, left.copies) == (there, ())
    other = Document("/x/ar/a/A.java:3", "", "/x/ar/a/A.java", 3, 5, "java", "method", "f", "A.f", digest=b"1")
    assert without(both, other) == both
    alone = Document("r/a/A.java:3", "r", "a/A.java", 3, 5, "java", "method", "f", "A.f", digest=b"2")
    assert without(alone, asked) is None
    assert here == both.location


def test_an_index_without_code_says_so(home: Path, tmp_path: Path) -> None:
    with (
        Index.build(home / "repos", tmp_path / "bare", config=BuildConfig(store_code=False)) as index,
        pytest.raises(BadInput, match="no code to compare"),
    ):
        index.similar(function_at(home / "Own.java", 4))


def test_a_wrong_k_is_refused(home: Path) -> None:
    with Index.load(home / ".ncs") as index, pytest.raises(BadInput, match="k is 0"):
        index.similar(function_at(home / "Own.java", 4), 0)


def test_the_answer_has_the_shape_of_a_querys_and_more(home: Path) -> None:
    with Index.load(home / ".ncs") as index:
        answer = ask_similar(index, f"{home / 'repos' / HIDE}:12", 2)
    assert set(answer) == {"query", "ranker", "index", "unknown_words", "notes", "function", "marked", "hits"}
    first, second = answer["hits"]
    assert (first["score"], first["reverse"], first["exact_copy"], second["exact_copy"]) == (1.0, 1.0, True, False)
    assert {"get", "system", "window", "hide", "keyboard"} <= set(first["matched"])


@pytest.mark.slow
def test_the_command_prints_places_code_and_copies(home: Path) -> None:
    done = ncs("similar", f"repos/{HIDE}:12", "-k", "2", cwd=home)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["1. Keyboards.hideSoftKeyboard  copy/src/Keyboards.java:11  1.0000", "   exact copy"]
    assert lines[2].startswith("    11  public static void hideSoftKeyboard")
    assert "   also at copy/src/Keyboards.java:17" in lines
    assert done.stderr == ""
    hits = [json.loads(line) for line in ncs("similar", f"repos/{HIDE}:12", "--jsonl", cwd=home).stdout.splitlines()]
    answer = json.loads(ncs("similar", f"repos/{HIDE}:12", "--json", cwd=home).stdout)
    assert hits == answer["hits"]


@pytest.mark.slow
def test_the_command_says_what_is_wrong_in_one_line(home: Path) -> None:
    done = ncs("similar", "Own.java:8", cwd=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ncs: no function at line 8 of Own.java; the nearest is outer, lines 9-15\n"
    nothing = ncs("similar", "Own.java:4", "--path", "nowhere", cwd=home)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert nothing.stderr == "ncs: no functions similar to Own.closeIt\n"
