"""`ncs eval`: figures against hand counts, and what was missed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from evaluation.user_queries import Judged, Missed, judge, report
from ncs.cli.main import app
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.feedback import Feedback
from tests import corpus

LINES = """# the user's own
hide soft keyboard\tKeyboards.hideSoftKeyboard
is the network there\tread_text_file
read a text file\tread_text_file
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    Index.build(corpus.write(folder / "repos"), folder / ".ncs").close()
    (folder / "questions.tsv").write_text(LINES)
    return folder


def ncs_eval(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["eval", str(home / "questions.tsv"), "-i", str(home / ".ncs"), *arguments])


def rows_of(index: Index, name: str) -> tuple[int, ...]:
    return tuple(row for row, (_, qualified, _) in enumerate(index.documents.names()) if qualified == name)


def test_figures_are_those_of_a_hand_count(home: Path) -> None:
    with Index.load(home / ".ncs") as index:
        right = rows_of(index, "Keyboards.hideSoftKeyboard")
        order = [hit.document.qualified_name for hit in index.search("show keyboard", 100, ranker="bm25")]
        rank = order.index("Keyboards.hideSoftKeyboard") + 1
        feedback = [Feedback("hide soft keyboard", right), Feedback("show keyboard", right)]
        (judged,) = judge(index, feedback, ["bm25"])
    assert rank > 1
    assert judged.ranks == (1, rank)
    assert judged.answered == {1: 0.5, 5: 0.5 + 0.5 * (rank <= 5), 10: 1.0}
    assert judged.mrr == pytest.approx((1 + 1 / rank) / 2)
    assert judged.low == pytest.approx(1 / rank)  # of two questions, one is drawn twice
    assert judged.high == 1.0
    assert judged.missed == ()


def test_json_has_the_ranks_and_what_was_missed(home: Path) -> None:
    done = ncs_eval(home, "--json", "--ranker", "bm25", "--ranker", "hybrid")
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert answer["questions"] == 3
    assert [one["ranker"] for one in answer["rankers"]] == ["bm25", "hybrid"]
    first, second = answer["rankers"]
    assert first["ranks"] == [1, 0, 1]
    assert first["answered"] == {"1": pytest.approx(2 / 3), "5": pytest.approx(2 / 3), "10": pytest.approx(2 / 3)}
    assert first["difference"] is None
    assert second["difference"][0] == pytest.approx(second["mrr"] - first["mrr"])
    (missed,) = first["missed"]
    assert (missed["text"], missed["rank"]) == ("is the network there", 0)
    assert missed["relevant"].startswith("read_text_file  tools/files.py:")
    assert "Network" in missed["first"]


def test_a_function_that_is_named_as_a_near_copy_of_a_hit_is_found(tmp_path: Path) -> None:
    words = re.findall(r"\w+", "alpha beta gamma delta epsilon zeta eta theta iota kappa lambada mu nu omicron")
    body = "\n".join(f"        total += {word}_price * {word}_amount" for word in words)
    (tmp_path / "src").mkdir()
    for name, more in (("one", ""), ("two", "        log(total)\n")):
        code = f"class {name.title()}:\n    def sum_up_basket(self, total):\n{body}\n{more}        return total\n"
        (tmp_path / "src" / f"{name}.py").write_text(code)
    (tmp_path / "src" / "other.py").write_text("def wait():\n    return 1\n")
    with Index.build(tmp_path / "src", tmp_path / ".ncs") as index:
        hits = index.search("sum up basket", functions_only=True)
        near = [place.qualified_name for place in hits[0].near_copies]
        assert near, "the two are near duplicates"
        (judged,) = judge(index, [Feedback("sum up basket", rows_of(index, near[0]))], ["hybrid"])
    assert judged.ranks == (1,)


def test_what_people_read_has_a_table_and_where_the_right_functions_stood() -> None:
    missed = Missed("open a dock", 23, "Port.open  a/b.py:3", "Ship.moor  a/c.py:9")
    first = Judged("hybrid", {1: 0.5, 5: 0.5, 10: 0.5}, 0.522, 0.043, 1.0, None, (1, 23), (missed,))
    second = Judged("bm25", {1: 0.0, 5: 0.5, 10: 1.0}, 0.25, 0.2, 0.3, (-0.272, -0.7, 0.157), (5, 3), ())
    assert report([first, second]).split("\n") == [
        "2 queries with relevant functions",
        "",
        "ranker  Answered@1  Answered@5  Answered@10  MRR [95 %]            to the first",
        "hybrid  1 (50%)     1 (50%)     1 (50%)      0.522 [0.043, 1.000]",
        "bm25    0 (0%)      1 (50%)     2 (100%)     0.250 [0.200, 0.300]  -0.272 [-0.700, +0.157]",
        "",
        "missed by hybrid, no relevant function among the first 10 hits: 1",
        "  open a dock",
        "    relevant, at rank 23: Port.open  a/b.py:3",
        "    first: Ship.moor  a/c.py:9",
    ]
    assert report([second]).split("\n")[-1] == "none missed: each has a relevant function among its first 10 hits"


def test_no_question_and_an_unknown_function_are_errors(home: Path, tmp_path: Path) -> None:
    with Index.load(home / ".ncs") as index, pytest.raises(BadInput, match="no queries to judge by"):
        judge(index, [], ["bm25"])
    (tmp_path / "questions.tsv").write_text("x\tNoSuch.function\n")
    done = CliRunner().invoke(app, ["eval", str(tmp_path / "questions.tsv"), "-i", str(home / ".ncs")])
    assert isinstance(done.exception, BadInput)
    assert "line 1: this index has no function 'NoSuch.function'" in str(done.exception)
