"""Questions judged by similarity to their answers, from the JSON file to the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.ncs287 import read_questions
from evaluation import record
from evaluation.stackoverflow import main
from ncs.errors import BadInput
from ncs.index import Index
from tests import corpus

QUESTIONS = [
    {
        "stackoverflow_id": "1",
        "question": "How to hide the soft keyboard?",
        "answer": "InputMethodManager imm = (InputMethodManager) getSystemService(Activity.INPUT_METHOD_SERVICE);\n"
        "imm.hideSoftInputFromWindow(view.getWindowToken(), 0);",
        "examples_url": ["x"],
    },
    {"stackoverflow_id": 2, "question": "keyboard", "answer": "byte[] b = MessageDigest.getInstance(s).digest();"},
    {"stackoverflow_id": "3", "question": "zzzz", "answer": "int x = 1;"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("so")
    Index.build(corpus.write(folder / "repos"), folder / "idx").close()
    (folder / "questions.json").write_text(json.dumps(QUESTIONS))
    return folder


def test_a_question_counts_where_a_hit_holds_its_answer_and_0_where_nothing_is_found(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "result.json"
    assert main([str(folder / "questions.json"), str(folder / "idx"), "--ranker", "bm25", "-q", "--out", str(out)]) == 0
    found = record.read(out)
    assert found.queries == ["1", "2", "3"]
    system = found.builds[0].systems[0]
    assert system.system == "bm25"
    assert system.values["answered@1 at 0.6"] == [1, 0, 0]
    assert system.values["mrr@10 at 0.25"][0] == 1
    assert system.means["answered@10 at 0.6"] == pytest.approx(1 / 3)
    assert "1 (33.3%)" in capsys.readouterr().out


def test_bm25_is_always_a_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder / "questions.json"), str(folder / "idx"), "--ranker", "ncs", "-q"]) == 0
    assert "| bm25" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "no list of questions"),
        ('[{"stackoverflow_id": "1", "question": "x"}]', "question 1 lacks"),
        ("[1]", "question 1 is not a JSON object"),
        (json.dumps([QUESTIONS[0], QUESTIONS[0]]), "two questions have the stackoverflow_id '1'"),
    ],
)
def test_what_is_wrong_with_a_questions_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "q.json").write_text(content)
    with pytest.raises(BadInput, match=message):
        read_questions(tmp_path / "q.json")


def test_a_missing_file_or_index_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["none.json", str(folder / "idx"), "-q"]) == 2
    assert main([str(folder / "questions.json"), str(folder / "none"), "-q"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert ["there is no none.json" in lines[0], "no index at" in lines[1], len(lines)] == [True, True, 2]
