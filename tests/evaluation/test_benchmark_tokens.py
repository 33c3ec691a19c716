"""The benchmark of tokens: what each side pays until the first right file, by hand."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import pytest

from evaluation.benchmarks import tokens as bench_tokens
from ncs.serve.mcp.pages import tokens
from ncs.types import Query

pytestmark = pytest.mark.skipif(which("rg") is None, reason="ripgrep is not installed")
FILES = {
    "often.py": "# keyboard keyboard\n# Keyboard\n",  # 3 matches
    "right.py": "def hide_keyboard():\n    pass\n",  # 1 match of keyboard, 1 of hide
    "never.py": "def other():\n    pass\n",
}
QUESTION = "how to hide the keyboard"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_files_are_read_in_order_of_their_matches(tree: Path) -> None:
    assert list(bench_tokens.by_matches(tree, QUESTION)) == ["often.py", "right.py"]


def test_reading_costs_the_files_before_the_right_one(tree: Path) -> None:
    assert bench_tokens.read_whole(tree, QUESTION, frozenset({"right.py"})) == tokens(FILES["often.py"])
    assert bench_tokens.read_whole(tree, QUESTION, frozenset({"often.py"})) == 0
    assert bench_tokens.read_whole(tree, QUESTION, frozenset({"never.py"})) == float("inf")


def test_lines_cost_those_of_the_files_before_and_one_of_the_right_file(tree: Path) -> None:
    lines = ["often.py:1:# keyboard keyboard\n", "often.py:2:# Keyboard\n", "right.py:1:def hide_keyboard():"]
    assert bench_tokens.read_lines(tree, QUESTION, frozenset({"right.py"})) == sum(map(tokens, lines))


def test_a_search_costs_its_text_to_the_end_of_the_first_right_hit(tree: Path) -> None:
    sides = bench_tokens.sides(tree)
    found, whole = sides["search"], sides["answers"]
    query = Query("q", QUESTION)
    shown = "1. right.py:1-2 hide_keyboard (function, 0.00)\ndef hide_keyboard():\n    pass"
    assert abs(found(query, frozenset({"right.py"})) - tokens(shown)) <= 1
    assert found(query, frozenset({"never.py"})) == float("inf")
    assert whole(query, frozenset({"right.py"})) >= found(query, frozenset({"right.py"}))
    assert whole(query, frozenset({"often.py"})) == found(query, frozenset({"often.py"}))  # it is the last hit
