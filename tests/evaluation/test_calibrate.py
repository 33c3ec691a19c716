"""The automatic judge, and its calibration with the functions that questions list in clones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.ncs287 import Question
from evaluation import calibrate
from evaluation.calibrate import at_lines, find_examples, rates
from evaluation.stackoverflow import PAPER_THRESHOLD, judge
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.types import Document, Query
from tests import gitrepo
from tests.corpora.test_ncs287 import published

ANSWER = "InputMethodManager m = get(); m.hideSoftInput(token, 0);"
RIGHT = "void hide(Token token) { if (shown) { InputMethodManager m = get(); m.hideSoftInput(token, 0); } }"
WRONG = "int sum(int a, int b) { return a + b; }"
KEYBOARD = "void keyboard() { hide(get()); }"


def test_each_function_is_read_in_its_own_language() -> None:
    code = "def g(y):\n    f(x)\n"
    assert [judge("f(x);", code, language) for language in ("java", "python", "cobol")] == [1.0, 0.75, 0.0]


def test_rates_are_the_shares_of_each_kind() -> None:
    some = {"listed": [0.5, 0.9], "random": [0.1, 0.2, 0.3, 0.5], "outlines": list[float]()}
    assert rates(some, 0.25) == {"threshold": 0.25, "listed": 1.0, "random": 0.5, "outlines": None}
    with pytest.raises(BadInput, match="at least one of each"):
        rates({**some, "listed": []}, 0.25)


OLD = "class A {\n@Override\nvoid hide(View v) {\nv.hide();\n}\n\nvoid gone() {\nlog();\n}\n}\n"
NEW = OLD.replace("v.hide()", "v.show()").replace("gone", "other")
ABSENT = "0123456789" * 4


def link(commit: str, first: int, last: int, repository: str = "o/n", path: str = "src/A.java") -> str:
    return f"https://github.com/{repository}/blob/{commit}/{path}#L{first}-L{last}"


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clones")
    repository = gitrepo.repository(root / "o+n" / "repo", {"src/A.java": OLD})
    (root / "commit").write_text(gitrepo.git(repository, "rev-parse", "HEAD").strip())
    gitrepo.commit(repository, {"src/A.java": NEW})
    return root


def functions_of(clones: Path, *urls: str) -> list[Document]:
    return [function for _, function in find_examples([Question(Query("7", "hide"), "v.hide();", urls)], clones)]


def test_a_function_is_read_at_the_commit_of_its_link_and_at_head_without_it(clones: Path) -> None:
    commit = (clones / "commit").read_text()
    gone, hide, at_head = functions_of(
        clones, link(commit, 7, 9).removesuffix("-L9"), link(commit, 2, 5), link(ABSENT, 2, 5)
    )
    assert [(each.name, "v.show();" in each.code) for each in (gone, hide, at_head)] == [
        ("gone", False), ("hide", False), ("hide", True),
    ]  # fmt: skip


def test_links_to_nothing_are_left_out_and_what_is_no_link_is_refused(clones: Path) -> None:
    absent = [link(ABSENT, 2, 5, "o/none"), link(ABSENT, 2, 5, path="B.java"), link(ABSENT, 2, 5, path="a.md")]
    assert functions_of(clones, *absent, link(ABSENT, 20, 22)) == []
    with pytest.raises(BadInput, match="no link to lines"):
        functions_of(clones, "https://github.com/o/n")


def test_the_function_that_fits_lines_best_is_meant() -> None:
    source = b"class A {\nvoid f() {\nnew B() {\nvoid g() {\nh();\n}\n};\n}\nvoid i() {}\n}"
    functions = list(extract(source, "java"))
    spans = {(2, 8): "f", (4, 6): "g", (5, 5): "g", (9, 9): "i", (9, 20): None, (1, 1): None}
    assert {span: (best := at_lines(functions, *span)) and best.name for span in spans} == spans


def test_calibration_judges_listed_and_random_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions, index, clones, out = (tmp_path / name for name in ("questions.json", "index", "clones", "out/c.json"))
    gitrepo.repository(clones / "o" / "n", {"A.java": f"class A {{\n{RIGHT}\n{WRONG}\n{KEYBOARD}\n}}\n"})
    urls = [link(ABSENT, 2, 2, path="A.java")]
    questions.write_text(json.dumps([published(1, "hide keyboard", ANSWER) | {"examples_url": urls}]))
    Index.build(clones, index).close()
    arguments = [str(questions), str(index), "--clones", str(clones)]
    assert calibrate.main([*arguments, "--out", str(out), "-q"]) == 0
    similar = {code: judge(ANSWER, code, "java") for code in (RIGHT, WRONG, KEYBOARD)}
    assert [value >= PAPER_THRESHOLD for value in similar.values()] == [True, False, False]
    printed = capsys.readouterr().out
    assert "| 0.25      | 100.0% | 33.333% |" in printed
    assert "1 listed functions of 1 of 1 questions; 3 random" in printed
    record = json.loads(out.read_text())
    assert record["listed_similarities"] == [round(similar[RIGHT], 4)]
    assert (record["listed"], record["random_pairs"]) == (1, 3)
    shares = {row["threshold"]: (row["random"], row["outlines"]) for row in record["rates"]}
    assert shares[0.25] == (1 / 3, 1.0)  # the only document that is no function is the class, which holds the answer
    assert calibrate.main([*arguments[:3], str(tmp_path / "none"), "-q"]) == 2
    assert "no folder " in capsys.readouterr().err
