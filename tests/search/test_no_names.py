"""Ranking knows no benchmark: no data set, repository or question of one stands in its code, not even in a comment."""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora import CORPORA, data_folder
from ncs.errors import BadInput

ROOT = Path(__file__).parents[2] / "ncs"
RANKING = ("search", "learn", "storage", "build", "text", "index.py", "answer.py")
"""Rooms and modules that take part in ranking."""
BENCHMARKS = {*CORPORA, "ncs287", "codesearchnet", "conala", "staqc", "codenn", "tlcodesum", "deepcs", "semble", "beir"}
LEAST = 3  # words; shorter questions are words that anybody may write


def sources() -> dict[str, str]:
    """Path below ncs -> text, of all that takes part in ranking."""
    paths = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
    return {path.as_posix(): (ROOT / path).read_text("utf-8") for path in paths if path.parts[0] in RANKING}


def words(text: str) -> str:
    """Lower-case words between single blanks, so that marks and line ends do not hide a sentence."""
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


def literals(source: str) -> set[str]:
    """The words of all strings that are no documentation."""
    tree = ast.parse(source)
    documentation = {
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    strings = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    } - documentation
    return {word for string in strings for word in words(string).split()}


def named(
    source: str, *, benchmarks: set[str], repositories: set[str], projects: set[str], questions: set[str]
) -> set[str]:
    """What of these stands in a source; projects, whose names are words too, in its strings only."""
    text = words(source)
    found = {name for name in benchmarks if f" {words(name).strip()} " in text}
    found |= {name for name in repositories if name.lower() in source.lower()}
    found |= {name for name in projects if name.lower() in literals(source)}
    return found | {question for question in questions if words(question) in text}


def rows(path: Path) -> Iterator[dict[str, object]]:
    if path.suffix == ".json":
        yield from json.loads(path.read_text("utf-8"))
    else:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)


def test_scanner_finds_what_is_planted_and_nothing_else() -> None:
    wanted = {
        "benchmarks": {"repo_search", "cosqa"},
        "repositories": {"owner/project"},
        "projects": {"flask", "gson"},
        "questions": {"How to close the door?", "open a file"},
    }
    clean = '"""A flask of doors; repo-searching."""\nUP = {"flasks"}  # close a door\n'
    assert named(clean, **wanted) == set()
    planted = '"""Measured on Repo_Search."""\nX = {"gson"}  # owner/Project: how to\nclose = 1\n'
    assert named(planted, **wanted) == {"repo_search", "gson", "owner/project"}
    assert named("# how to\n# close  the door\n", **wanted) == {"How to close the door?"}


def test_no_benchmark_is_named_in_ranking_code() -> None:
    nothing: set[str] = set()
    known = {"repositories": nothing, "projects": nothing, "questions": nothing}
    found = {path: named(text, benchmarks=BENCHMARKS, **known) for path, text in sources().items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_repository_or_question_of_the_data_sets_is_named_in_ranking_code() -> None:
    try:
        data = data_folder()
    except BadInput:
        pytest.skip("the data sets are not here")
    repositories = {line for path in data.glob("*_repos.txt") for line in path.read_text("utf-8").split()}
    projects, questions = set(), set()
    for path in [*data.glob("eval_*.jsonl.gz"), *data.glob("ncs287*.json")]:
        for row in rows(path):
            if repository := str(row.get("repo", "")):
                repositories.add(repository)
                projects.add(repository.rpartition("/")[2])
            questions.add(str(row.get("query") or row.get("question") or ""))
    asked = {question for question in questions if len(words(question).split()) >= LEAST}
    assert len(asked) > 100
    wanted = {"repositories": repositories, "projects": projects, "questions": asked}
    found = {path: named(text, benchmarks=set(), **wanted) for path, text in sources().items()}
    assert {path: names for path, names in found.items() if names} == {}
