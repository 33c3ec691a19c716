"""Judgments that people wrote down: right functions by id, place or name, and wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.feedback import Feedback, read_feedback


def test_feedback_names_functions_by_id_by_place_and_by_name(demo_index: Index, tmp_path: Path) -> None:
    row = next(
        row for row, (_, name, _) in enumerate(demo_index.documents.names()) if name == "Keyboards.hideSoftKeyboard"
    )
    document = demo_index.documents.document(row)
    file = tmp_path / "questions.tsv"
    file.write_text(
        f"# mine\nwrap text\t{document.id}\n\nbreak lines\tKeyboards.java:{document.start_line + 2}\n"
        "fold paragraph\tKeyboards.hideSoftKeyboard\nfold paragraph\tKeyboards::showSoftKeyboard\n"
    )
    feedback = read_feedback(file, demo_index.documents)
    assert [each.text for each in feedback] == ["wrap text", "break lines", "fold paragraph"]
    assert [each.rows[0] for each in feedback] == [row, row, row]
    assert demo_index.documents.document(feedback[2].rows[1]).qualified_name == "Keyboards.showSoftKeyboard"
    other = next(each for each in range(len(demo_index)) if each != row)
    (tmp_path / "qrels").write_text(f"q1 0 {document.id} 1\nq1 0 {demo_index.documents.ids([other])[0]} 0\n")
    file.write_text("q1\twrap text\nq2\tnot judged\n")
    judged = read_feedback(file, demo_index.documents, qrels=tmp_path / "qrels")
    assert judged == [Feedback("wrap text", (row,), (other,))]


def test_thumbs_down_are_wrong_rows_and_the_later_of_two_judgments_holds(demo_index: Index, tmp_path: Path) -> None:
    first, second, third = demo_index.documents.ids([3, 4, 5])
    file = tmp_path / "votes.tsv"
    file.write_text(
        f"# down\twrap text\t{first}\nwrap text\t{second}\n# down\topen\t{third}\n"
        f"# down\tgone\tno/such/file.py:1\n# down\tno target\n# down with {third}\nread\t{first}\n"
        f"# down\tread\t{first}\n# down\twrite\t{first}\nwrite\t{first}\n"
    )
    assert read_feedback(file, demo_index.documents) == [
        Feedback("wrap text", (4,), (3,)),
        Feedback("open", (), (5,)),
        Feedback("read", (), (3,)),
        Feedback("write", (3,), ()),
    ]


@pytest.mark.parametrize(
    "line",
    ["no tab here", "q\tno.such.function", "q\tKeyboards.java:999999", "q\tKeyboards.java:²", "q\ta.py:" + "9" * 5_000],
)
def test_a_bad_line_is_named_with_its_number_and_remedy(demo_index: Index, tmp_path: Path, line: str) -> None:
    file = tmp_path / "bad.tsv"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(BadInput, match=r"line 2: .*; (separate|write) ") as error:
        read_feedback(file, demo_index.documents)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("grade", ["²", "9" * 5_000, "--1", "x"])
def test_a_grade_that_is_no_number_is_named(demo_index: Index, tmp_path: Path, grade: str) -> None:
    (tmp_path / "queries").write_text("q1\twrap text\n")
    (tmp_path / "qrels").write_text(f"q1 0 {demo_index.documents.ids([0])[0]} {grade}\n")
    with pytest.raises(BadInput, match=r"qrels, line 1: not a line of TREC qrels"):
        read_feedback(tmp_path / "queries", demo_index.documents, qrels=tmp_path / "qrels")


def test_a_query_of_four_megabytes_is_refused(demo_index: Index, tmp_path: Path) -> None:
    (tmp_path / "queries").write_text("word " * 800_000 + "\tKeyboards.hideSoftKeyboard\n")
    with pytest.raises(BadInput, match="the query has 3,999,999 characters; shorten it to 32,768"):
        read_feedback(tmp_path / "queries", demo_index.documents)
