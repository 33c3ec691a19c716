"""The NCSE release: questions, repository links, search corpus, score sheets; archives reduced to their sources."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest

from corpora.download import NotFetched, RemoteFile, filter_zip
from corpora.ncs287 import ScoreSheet, read_links, read_questions, read_score_sheet, recompute, write_score_sheet
from ncs.errors import BadInput
from ncs.sources import walk

SHEET = (
    "No.,StackOverflow ID,NCS FRank,UNIF_android FRank\r\n"
    "1,100,NF,1\r\n"
    "2,200,7,2\r\n"
    "3,100,1,NF\r\n"
    "4,300,11,NF\r\n"
)  # fmt: skip


def asked(id: object, question: str, answer: str) -> dict[str, object]:
    return {"stackoverflow_id": id, "question": question, "answer": answer, "examples_url": []}


def test_two_questions_of_one_post_get_ids_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([asked(7, "How to x", "a();"), asked("7", "How to x", "b();"), asked(8, "y", "c();")]))
    assert [question.query.id for question in read_questions(path)] == ["7", "7-2", "8"]


def test_a_sheet_is_read_and_written_back_byte_for_byte(tmp_path: Path) -> None:
    path, again = tmp_path / "sheet.csv", tmp_path / "again.csv"
    path.write_bytes(SHEET.encode())
    sheet = read_score_sheet(path)
    assert sheet == ScoreSheet(
        ("100", "200", "100", "300"), {"NCS": (None, 7, 1, 11), "UNIF_android": (1, 2, None, None)}
    )
    assert sheet.ids == ["100", "200", "100-2", "300"]
    write_score_sheet(sheet.posts, sheet.ranks, again)
    assert again.read_bytes() == path.read_bytes()


def test_the_figures_of_a_sheet_are_those_counted_by_hand(tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text(SHEET)
    found = recompute(tmp_path / "sheet.csv")
    assert found["questions"] == 4
    assert found["systems"]["NCS"] == {
        "answered_1": 1, "answered_5": 1, "answered_10": 2, "mrr": (1 / 7 + 1 + 1 / 11) / 4
    }  # fmt: skip
    assert found["systems"]["UNIF_android"] == {"answered_1": 1, "answered_5": 2, "answered_10": 2, "mrr": 0.375}
    assert found["published"]["NCS"] == {"answered_1": 33, "answered_5": 74, "answered_10": 98, "mrr": 0.189}
    assert "ranks" not in json.dumps(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: the columns must be No., StackOverflow ID"),
        ("No.,StackOverflow ID,a FRank,a FRank\r\n1,2,3,4\r\n", ":1: a system has two columns"),
        ("No.,StackOverflow ID,a FRank\r\n1,2,3\r\n1,2\r\n", ":3: 2 columns instead of 3"),
        ("No.,StackOverflow ID,a FRank\r\n1,2,0\r\n", ":2: the rank '0' is neither NF"),
    ],
)
def test_a_wrong_line_of_a_sheet_is_reported_with_its_number(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sheet.csv").write_text(text)
    with pytest.raises(BadInput, match=message):
        read_score_sheet(tmp_path / "sheet.csv")


def test_a_sheet_takes_one_rank_from_1_for_each_question(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="ours has 1 ranks for 2 questions"):
        write_score_sheet(["1", "2"], {"ours": [1]}, tmp_path / "sheet.csv")


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


@pytest.mark.parametrize(
    "line", ["https://example.org/x/y/archive/main.zip", "x/y", "https://example.org/../y/archive/1234567.zip"]
)
def test_a_line_that_is_no_such_link_is_reported_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "links.txt").write_text(f"\n{line}\n")
    with pytest.raises(BadInput, match=r"links\.txt:2: .* is no link"):
        read_links(tmp_path / "links.txt")


def zipped(path: Path, files: dict[str, str], *, link: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        if link:
            entry = zipfile.ZipInfo(link)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, "/etc/passwd")
    return path


def test_a_reduced_archive_keeps_wanted_files_and_is_read_as_the_same_repository(tmp_path: Path) -> None:
    files = {"y-1/src/A.java": "class A {}", "y-1/logo.png": "x" * 50_000, "y-1/B.java": "class B {}"}
    archive = zipped(tmp_path / "x+y.zip", files, link="y-1/C.java")
    filter_zip(archive, lambda path: path.endswith(".java"))
    assert zipfile.ZipFile(archive).namelist() == ["y-1/src/A.java", "y-1/B.java"]
    read = [(file.path, file.data) for file in walk([archive], wanted=lambda path: True)]
    assert read == [("B.java", b"class B {}"), ("src/A.java", b"class A {}")]
    assert [path.name for path in tmp_path.iterdir()] == ["x+y.zip"]


def test_paths_that_lead_outside_are_left_out(tmp_path: Path) -> None:
    archive = zipped(
        tmp_path / "a.zip", {"../evil.java": "1", "/etc/evil.java": "2", "a/../../b.java": "3", "ok.java": "4"}
    )
    filter_zip(archive, lambda path: True)
    assert zipfile.ZipFile(archive).namelist() == ["ok.java"]


def test_an_archive_that_unpacks_to_too_much_or_is_none_is_removed(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.java", b"0" * 1_000_000)
    with pytest.raises(NotFetched, match="over 1000 bytes") as caught:
        filter_zip(bomb, lambda path: True, limit=1000)
    assert caught.value.final
    page = tmp_path / "page.zip"
    page.write_text("<html>Try again later</html>")
    with pytest.raises(NotFetched, match=r"page\.zip is damaged or no archive") as caught:
        filter_zip(page, lambda path: True)
    assert not caught.value.final
    assert list(tmp_path.iterdir()) == []
