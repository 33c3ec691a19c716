"""Listed functions found in clones: at the commit of the link, at HEAD, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.ncs287 import Question
from evaluation.judges.examples import Example, at_lines, find_examples, listed_qrels, parse_link, rows_of
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.types import Query
from tests import gitrepo

OLD = """class A {
    @Override
    void hide(View v) {
        v.clear();
        v.close();
        v.hide();
    }

    void gone() {
        log();
    }
}
"""
NEW = """class A {
    int count;

    @Override
    void hide(View v) {
        v.clear();
        v.close();
        v.show();
    }

    void other() {
        run();
    }
}
"""
GONE = "0123456789012345678901234567890123456789"


def question(*urls: str) -> Question:
    return Question(Query("7", "hide a view"), "v.hide();", urls)


def link(commit: str, first: int, last: int, repository: str = "o/n", path: str = "src/A.java") -> str:
    return f"https://github.com/{repository}/blob/{commit}/{path}#L{first}-L{last}"


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clones")
    repository = gitrepo.repository(root / "o+n" / "repo", {"src/A.java": OLD, "src/copy/B.java": OLD})
    (root / "commit").write_text(gitrepo.git(repository, "rev-parse", "HEAD").strip())
    gitrepo.commit(repository, {"src/A.java": NEW})
    gitrepo.bare(root / "bare" / "one.git", {"A.java": OLD})
    return root


def commit(clones: Path) -> str:
    return (clones / "commit").read_text()


def found(clones: Path, *urls: str) -> list[Example]:
    return find_examples([question(*urls)], clones)


def test_a_link_has_its_parts_and_what_is_none_is_named() -> None:
    parsed = parse_link("https://github.com/o/n/blob/ab/a%20b/C.java#L5")
    assert (parsed.repository, parsed.commit, parsed.path) == ("o/n", "ab", "a b/C.java")
    assert (parsed.first, parsed.last) == (5, 5)
    with pytest.raises(BadInput, match="no link to lines"):
        parse_link("https://github.com/o/n")


def test_a_function_is_read_at_the_commit_and_found_at_head_by_its_name(clones: Path) -> None:
    [example] = found(clones, link(commit(clones), 3, 7))
    assert (example.question, example.document.name, example.document.start_line) == ("7", "hide", 2)
    assert "v.hide();" in example.document.code
    assert example.current is not None
    assert example.current.id == "o/n/src/A.java:4"
    assert "v.show();" in example.current.code


def test_a_function_that_is_gone_has_become_nothing(clones: Path) -> None:
    [example] = found(clones, link(commit(clones), 9, 11))
    assert (example.document.name, example.current) == ("gone", None)


def test_without_the_commit_the_lines_at_head_count(clones: Path) -> None:
    [example] = found(clones, link(GONE, 5, 9))
    assert example.current == example.document
    assert example.document.name == "hide"
    assert "v.show();" in example.document.code


def test_what_is_not_at_hand_is_left_out_and_order_is_kept(clones: Path) -> None:
    absent = [
        link(GONE, 1, 2),
        link(GONE, 5, 9, "o/none"),
        link(GONE, 5, 9, path="B.java"),
        link(GONE, 5, 9, path="a.md"),
    ]
    last, first = link(commit(clones), 9, 11), link(commit(clones), 3, 7)
    assert [example.document.name for example in found(clones, *absent, last, first)] == ["gone", "hide"]


def test_the_function_that_fits_lines_best_is_meant() -> None:
    source = b"class A {\nvoid f() {\nnew B() {\nvoid g() {\nh();\n}\n};\n}\nvoid i() {}\n}"
    functions = list(extract(source, "java"))

    def name(first: int, last: int) -> str | None:
        function = at_lines(functions, first, last)
        return function.name if function else None

    assert [name(2, 8), name(4, 6), name(5, 5), name(9, 9), name(9, 20), name(1, 1)] == ["f", "g", "g", "i", None, None]


def test_examples_have_rows_in_an_index_of_the_clones(clones: Path, tmp_path: Path) -> None:
    urls = [link(commit(clones), 3, 7), link(commit(clones), 9, 11), link(GONE, 2, 7, path="src/copy/B.java")]
    examples = found(clones, *urls)
    with Index.build(clones, tmp_path / "index") as index:
        rows = list(rows_of(index, examples))
        assert rows[1] is None
        ids = index.documents.ids([row for row in rows if row is not None])
        assert ids == ["o+n/repo/src/A.java:4", "bare/one/A.java:2"]  # the last is a copy of what stands in B.java
        assert listed_qrels(index, examples) == {"7": {"o+n/repo/src/A.java:4": 1, "bare/one/A.java:2": 1}}
        (copy,) = index.documents.document(rows[2] or 0).copies
        assert (copy.repository, copy.path, copy.start_line) == ("o+n/repo", "src/copy/B.java", 2)
