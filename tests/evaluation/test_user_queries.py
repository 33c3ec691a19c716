"""`ncs eval`: figures against hand counts, and what was missed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from evaluation import user_queries
from evaluation.user_queries import Missed, RankerReport, judge, report
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.feedback import Feedback
from tests.command import invoke
from tests.gitrepo import write

LINES = """# the user's own
hide soft keyboard\tKeyboards.hideSoftKeyboard
is the network there\tread_text_file
read a text file\tread_text_file
"""


def ncs_eval(demo: Path, queries: Path, lines: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    queries.write_text(lines)
    return invoke("eval", str(queries), *arguments, cwd=demo)


def rows_of(index: Index, name: str) -> tuple[int, ...]:
    return tuple(row for row, (_, qualified, _) in enumerate(index.documents.names()) if qualified == name)


def test_figures_are_those_of_a_hand_count(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.load(demo / ".ncs") as index:
        right = rows_of(index, "Keyboards.hideSoftKeyboard")
        order = [hit.document.qualified_name for hit in index.search("show keyboard", 100, ranker="bm25")]
        rank = order.index("Keyboards.hideSoftKeyboard") + 1
        feedback = [Feedback("hide soft keyboard", right), Feedback("show keyboard", right)]
        (judged,) = judge(index, feedback, ["bm25"])
        monkeypatch.setattr(user_queries, "SHOWN", 1)
        (strict,) = judge(index, feedback, ["bm25"])
    assert (judged.ranks, rank > 1, judged.missed) == ((1, rank), True, ())
    assert judged.answered == {1: 0.5, 5: 0.5 + 0.5 * (rank <= 5), 10: 1.0}
    low, mrr = 1 / rank, (1 + 1 / rank) / 2  # of two queries, one is drawn twice
    assert (judged.low, judged.mrr, judged.high) == pytest.approx((low, mrr, 1.0))
    assert [(missed.text, missed.rank) for missed in strict.missed] == [("show keyboard", rank)]


def test_json_has_the_ranks_and_the_missed_queries(demo: Path, tmp_path: Path) -> None:
    options = ["--json", "--ranker", "bm25", "--ranker", "hybrid"]
    answer = json.loads(ncs_eval(demo, tmp_path / "q.tsv", LINES, *options).stdout)
    first, second = answer["rankers"]
    assert (answer["questions"], first["ranker"], second["ranker"]) == (3, "bm25", "hybrid")
    assert (first["ranks"], first["difference"]) == ([1, 0, 1], None)
    assert first["answered"] == {depth: pytest.approx(2 / 3) for depth in ("1", "5", "10")}
    assert second["difference"][0] == pytest.approx(second["mrr"] - first["mrr"])
    (missed,) = first["missed"]
    assert (missed["text"], missed["rank"]) == ("is the network there", 0)
    assert missed["relevant"].startswith("read_text_file  tools/files.py:")
    assert "Network" in missed["first"]


def test_a_function_that_is_named_as_a_near_copy_of_a_hit_is_found(tmp_path: Path) -> None:
    words = ("alpha", "beta", "gamma", "delta", "zeta", "eta", "mu")
    body = "".join(f"        total += {word}_price * {word}_amount\n" for word in words)
    code = {"one": body, "two": f"{body}        log(total)\n"}
    files = {
        f"{name}.py": f"class {name.title()}:\n    def sum_up_basket(self, total):\n{lines}        return total\n"
        for name, lines in code.items()
    }
    write(tmp_path / "src", {**files, "other.py": "def wait():\n    return 1\n"})
    with Index.build(tmp_path / "src", tmp_path / ".ncs") as index:
        (near,) = index.search("sum up basket", functions_only=True)[0].near_copies
        (judged,) = judge(index, [Feedback("sum up basket", rows_of(index, near.qualified_name))], ["hybrid"])
    assert judged.ranks == (1,)


def test_the_report_has_a_table_and_the_places_of_missed_functions() -> None:
    missed = Missed("open a dock", 23, "Port.open  a/b.py:3", "Ship.moor  a/c.py:9")
    first = RankerReport("hybrid", {1: 0.5, 5: 0.5, 10: 0.5}, 0.522, 0.043, 1.0, None, (1, 23), (missed,))
    second = RankerReport("bm25", {1: 0.0, 5: 0.5, 10: 1.0}, 0.25, 0.2, 0.3, (-0.272, -0.7, 0.157), (5, 3), ())
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


def test_no_query_and_an_unknown_function_are_errors(demo: Path, tmp_path: Path) -> None:
    with Index.load(demo / ".ncs") as index, pytest.raises(BadInput, match=r"no queries to judge by.*with --qrels: of"):
        judge(index, [], ["bm25"])
    error = ncs_eval(demo, tmp_path / "q.tsv", "x\tNoSuch.function\n").stderr
    assert "line 1: this index has no function 'NoSuch.function'" in error
