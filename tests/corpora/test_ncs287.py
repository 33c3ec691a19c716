"""The NCSE release: questions, repository links, score sheets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.download import RemoteFile
from corpora.ncs287 import ScoreSheet, read_links, read_questions, read_score_sheet, write_score_sheet
from ncs.errors import BadInput

SHEET = (
    "No.,StackOverflow ID,NCS FRank,UNIF_android FRank\r\n"
    "1,100,NF,1\r\n"
    "2,200,7,2\r\n"
    "3,100,1,NF\r\n"
    "4,300,11,NF\r\n"
)  # fmt: skip


def published(id: object, question: str, answer: str) -> dict[str, object]:
    return {"stackoverflow_id": id, "question": question, "answer": answer, "examples_url": ["https://x"]}


def test_two_questions_of_one_post_get_ids_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(
        json.dumps([published(7, "How to x", "a();"), published("7", "How to x", "b();"), published(8, "y", "c();")])
    )
    questions = read_questions(path)
    assert [question.query.id for question in questions] == ["7", "7-2", "8"]
    assert (questions[1].answer, questions[1].examples) == ("b();", ("https://x",))
    path.write_text(json.dumps([published(7, "How to x", "a();")] * 2))
    with pytest.raises(BadInput, match="two questions have the stackoverflow_id '7'"):
        read_questions(path)
    path.write_text(json.dumps([published(7, " ", "a();")]))
    with pytest.raises(BadInput, match="question 1 lacks stackoverflow_id, question or answer"):
        read_questions(path)


def test_a_sheet_is_read_and_written_back_byte_for_byte(tmp_path: Path) -> None:
    path, again = tmp_path / "sheet.csv", tmp_path / "again.csv"
    path.write_bytes(SHEET.encode())
    sheet = read_score_sheet(path)
    ranks = {"NCS": (None, 7, 1, 11), "UNIF_android": (1, 2, None, None)}
    assert sheet == ScoreSheet(("100", "200", "100", "300"), ranks)
    write_score_sheet(sheet.posts, sheet.ranks, again)
    assert again.read_bytes() == path.read_bytes()


def test_links_become_one_file_a_repository_and_commit(tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    first = "https://example.org/a-b/c.d/archive/" + "0" * 40 + ".zip"
    second = "https://example.org/x/y/archive/" + "1" * 40 + ".zip"
    newer = first.replace("0" * 40, "2" * 40)
    path.write_text(f"{first}\n\n{second}\n{first}\n{newer}\n")
    assert read_links(path) == [
        RemoteFile(first, "a-b+c.d.zip"),
        RemoteFile(second, "x+y.zip"),
        RemoteFile(newer, f"a-b+c.d+{'2' * 40}.zip"),
    ]
