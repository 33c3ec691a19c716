"""Ranking knows no benchmark: no data set, repository or query of one is in its code, not even in a comment."""

from __future__ import annotations

import ast
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from corpora import CORPORA, data_folder
from ncs.errors import BadInput

ROOT = Path(__file__).parents[2] / "ncs"
RANKING = ("search", "learn", "storage", "build", "text", "index.py", "answer.py")
"""Rooms and modules that take part in ranking."""
BENCHMARKS = {*CORPORA, "ncs287", "codesearchnet", "conala", "staqc", "codenn", "tlcodesum", "deepcs", "semble", "beir"}
MIN_WORDS = 3
"""Shorter queries are words that anybody may write."""


def words(text: str) -> str:
    """Lower-case words between single blanks, so that punctuation and line ends do not hide a sentence."""
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


def literals(source: str) -> set[str]:
    """The words of all strings that are no documentation."""
    tree = ast.walk(ast.parse(source))
    strings = [node for node in tree if isinstance(node, (ast.Expr, ast.Constant))]
    docs = {id(node.value) for node in strings if isinstance(node, ast.Expr)}
    constants = [node.value for node in strings if isinstance(node, ast.Constant) and id(node) not in docs]
    return {word for value in constants if isinstance(value, str) for word in words(value).split()}


def named(source: str, phrases: set[str], repositories: set[str], projects: set[str]) -> set[str]:
    """Which of these are in a source; projects, whose names are words too, in its strings only."""
    text, strings = words(source), literals(source)
    names = {phrase for phrase in phrases if words(phrase) in text}
    names |= {name for name in repositories if name.lower() in source.lower()}
    return names | {name for name in projects if name.lower() in strings}


def named_in_ranking(phrases: set[str], repositories: set[str], projects: set[str]) -> dict[str, set[str]]:
    """Path -> which of these are named there, of all that takes part in ranking."""
    paths = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] in RANKING]
    names = {str(path): named(path.read_text("utf-8"), phrases, repositories, projects) for path in paths}
    return {path: found for path, found in names.items() if found}


def test_the_scanner_finds_what_is_planted_and_nothing_else() -> None:
    planted = ({"repo_search", "cosqa", "How to close the door?", "open a file"}, {"owner/project"}, {"flask", "gson"})
    clean = '"""A flask of doors; repo-searching."""\nUP = {"flasks"}  # close a door\n'
    assert named(clean, *planted) == set()
    dirty = '"""Measured on Repo_Search."""\nX = {"gson"}  # owner/Project: how to\nclose = 1\n'
    assert named(dirty, *planted) == {"repo_search", "gson", "owner/project"}
    assert named("# how to\n# close  the door\n", *planted) == {"How to close the door?"}


def test_no_benchmark_is_named_in_ranking_code() -> None:
    assert named_in_ranking(BENCHMARKS, set(), set()) == {}


def test_no_repository_or_query_of_the_data_sets_is_named_in_ranking_code() -> None:
    try:
        data = data_folder()
    except BadInput:
        pytest.skip("the data sets are not here")
    rows: list[dict[str, Any]] = []
    for path in data.glob("eval_*.jsonl.gz"):
        rows += map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    for path in data.glob("ncs287*.json"):
        rows += json.loads(path.read_text("utf-8"))
    repositories = {str(row["repo"]) for row in rows if row.get("repo")}
    projects = {repository.rpartition("/")[2] for repository in repositories}
    repositories |= {line for path in data.glob("*_repos.txt") for line in path.read_text("utf-8").split()}
    queries = {words(str(row.get("query") or row.get("question") or "")) for row in rows}
    queries = {query for query in queries if len(query.split()) >= MIN_WORDS}
    assert len(queries) > 100
    assert named_in_ranking(queries, repositories, projects) == {}
