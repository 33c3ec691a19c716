"""The automatic judge and its calibration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.ncs287 import Question, read_questions
from evaluation.judges import calibrate
from evaluation.judges.aroma import PAPER_THRESHOLD, STRICT_THRESHOLD, judge
from evaluation.judges.calibrate import Rates, Similarities, rates
from evaluation.judges.examples import find_examples
from ncs.index import Index
from ncs.types import Query
from tests import gitrepo

ANSWER = "InputMethodManager m = get(); m.hideSoftInput(token, 0);"
RIGHT = "void hide(Token token) { if (shown) { InputMethodManager m = get(); m.hideSoftInput(token, 0); } }"
WRONG = "int sum(int a, int b) { return a + b; }"


def test_a_function_that_holds_the_answer_passes_and_another_does_not() -> None:
    judged = judge(ANSWER)
    assert judged(RIGHT) > STRICT_THRESHOLD
    assert judged(WRONG) < PAPER_THRESHOLD
    assert judged(f"void f() {{ {ANSWER} }}") > judged(RIGHT)


def test_the_share_is_counted_by_hand() -> None:
    """Of the twelve features of a.f(1); a.f() shares a, f and a -> f, and of their steps those in #.## and #;"""
    assert judge("a.f(1);")("a.f();") == 7 / 12


def test_each_function_is_read_in_its_own_language() -> None:
    judged = judge("f(x)", "python")
    assert judged("def g(y):\n    f(x)\n") == 1.0
    assert judged("f(x)", "cobol") == 0.0
    assert judge("if a: f(x)", "python")("if (a) f(x);", "java") < judge("if a: f(x)", "python")("if a:\n    f(x)\n")


def test_rates_are_the_shares_of_each_kind() -> None:
    found = rates(Similarities([0.5, 0.9], [0.9], [0.1, 0.2, 0.3, 0.5], [], [0.25, 0.6]), [0.25, 0.6])
    assert found == [Rates(0.25, 1.0, 1.0, 0.5, None, 1.0), Rates(0.6, 0.5, 1.0, 0.0, None, 0.5)]
    assert rates(Similarities([1], [1], [0], [0.2, 0.3], [1]), [0.25])[0].outlines == 0.5


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    source = f"class A {{\n{RIGHT}\n{WRONG}\nvoid keyboard() {{ hide(get()); }}\n}}\n"
    repository = gitrepo.repository(home / "clones" / "o" / "n", {"A.java": source})
    commit = gitrepo.git(repository, "rev-parse", "HEAD").strip()
    row = {
        "stackoverflow_id": "1",
        "question": "hide keyboard",
        "answer": ANSWER,
        "examples_url": [f"https://github.com/o/n/blob/{commit}/A.java#L2-L2"],
    }
    (home / "questions.json").write_text(json.dumps([row]))
    Index.build(home / "clones", home / "index").close()
    return home


def test_calibration_judges_listed_random_and_found_functions(home: Path) -> None:
    questions = [Question(Query("1", "hide keyboard"), ANSWER, ())]
    listed = read_questions(home / "questions.json")
    with Index.load(home / "index") as index:
        found = calibrate.measure(questions, find_examples(listed, home / "clones"), index)
    share = judge(ANSWER)(RIGHT)
    assert list(found.listed) == list(found.current) == [share]
    keyboard = judge(ANSWER)("void keyboard() { hide(get()); }")
    assert sorted(found.random) == sorted([share, judge(ANSWER)(WRONG), keyboard])  # all three that there are
    assert list(found.bm25) == [keyboard]  # hide is left out: it is the listed one


def test_the_command_prints_the_table_and_writes_the_record(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(home / "questions.json"), str(home / "index"), "--clones", str(home / "clones")]
    assert calibrate.main([*arguments, "--out", str(home / "out" / "c.json"), "-q"]) == 0
    printed = capsys.readouterr().out
    judged = [judge(ANSWER)(code) for code in (RIGHT, WRONG, "void keyboard() { hide(get()); }")]
    assert [value >= PAPER_THRESHOLD for value in judged] == [True, False, False]
    assert "| 0.25      | 100.0% | 100.0%          | 33.333% |" in printed
    assert "1 listed functions of 1 of 1 questions, 1 of them still at HEAD" in printed
    record = json.loads((home / "out" / "c.json").read_text())
    assert {0.25, 0.6} <= {row["threshold"] for row in record["rates"]}
    assert (record["listed"], record["random_pairs"]) == (1, 3)


def test_wrong_input_gives_one_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions, index, clones = str(home / "questions.json"), str(home / "index"), str(home / "clones")
    for arguments, message in (
        ([questions, index, "--clones", str(home / "none")], "no folder "),
        ([questions, index, "--clones", clones, "--draw", "0"], "must be at least 1"),
        ([questions, index, "--clones", str(home / "index")], "at least one of each"),
    ):
        assert calibrate.main([*arguments, "-q"]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
