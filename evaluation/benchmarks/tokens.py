"""Counts the tokens that an agent reads until the first right file is shown: search_code of `ncs mcp`, grep and read.

The questions of eval_repo_search_dev, each inside the folder of its repository at the pinned revision; a token is
TOKEN_BYTES bytes on every side, and neither the agent's own words nor descriptions of tools count.

search     search_code with the question and default arguments; then the same with next_cursor, page by page. All text
           counts that stands before the end of the first hit that lies in a right file, the hit's code included.
answers    the same, but the answer with this hit counts whole, as for an agent that reads it to its end.
read       `rg --count-matches` with the question's content words (ncs.text.tokens), as fixed strings, any case, any
           of them. The files in order of matches (ties by path) are read whole. The list of files costs nothing, and a
           right file counts as shown as soon as its turn comes: only the files before it cost.
lines      the same order, but of each file only the matching lines are shown, as `rg -n` prints them (path:line:text);
           a right file counts as shown with its first line. Cheaper, but it is lines without their functions.

recall at N: the share of the questions with a right file shown within N tokens.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from corpora import data_folder
from corpora.repo_search import RepoTask, read
from evaluation.benchmarks.common import Report
from evaluation.reports import markdown_table
from ncs.errors import BadInput, MissingExtra
from ncs.index import Index
from ncs.serve.mcp.pages import TOKEN_BYTES, tokens
from ncs.serve.mcp.projects import Projects, Settings
from ncs.serve.mcp.server import tools
from ncs.serve.mcp.tools import DEFAULT_TOKENS, answer
from ncs.sources import walk
from ncs.text.tokens import content_words, tokenize

BUDGETS = (2_000, 8_000, 32_000)
MAX_TOKENS = max(BUDGETS)
Side = Callable[[str, frozenset[str]], float]
"""(question, relevant files) -> tokens, infinite where none of the files is shown."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder of the data sets; else $NCS_DATA, else ../shared/data")
    parser.add_argument("--mirror", type=Path, help="folder of the repositories; else ../../.mirror of the data")


def run(options: argparse.Namespace) -> Report:
    """Tokens of every question on every side; null where no right file was shown within the largest budget."""
    if which("rg") is None:
        raise MissingExtra("bin/benchmark tokens compares with ripgrep; apt-get install ripgrep")
    data = data_folder(options.data)
    mirror = options.mirror or data.resolve().parents[1] / ".mirror"
    tasks = read(data, options.mirror)
    values: dict[str, dict[str, float | None]] = {}
    for task in tasks:
        with tempfile.TemporaryDirectory(prefix="ncs-tokens-") as folder:
            tree = Path(folder) / task.repository.rpartition("/")[2]
            check_out(task, mirror, tree)
            for name, side in sides(tree).items():
                for query in task.corpus.queries:
                    spent = side(query.text, frozenset(task.corpus.qrels[query.id]))
                    values.setdefault(name, {})[query.id] = None if spent > MAX_TOKENS else spent
    recall = {name: {str(budget): share(column, budget) for budget in BUDGETS} for name, column in values.items()}
    descriptions = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in tools()])
    return {
        "questions": len(next(iter(values.values()))), "token_bytes": TOKEN_BYTES, "max_tokens": DEFAULT_TOKENS,
        "tokens_of_tool_descriptions": tokens(descriptions), "notes": [task.note for task in tasks if task.note],
        "recall": recall, "tokens": values,
    }  # fmt: skip


def share(tokens_by_question: Mapping[str, float | None], budget: int) -> float:
    """The share of questions with a right file shown within a budget.

    >>> share({"a": 10, "b": 2001, "c": None, "d": 2000}, 2000)
    0.5
    """
    within = sum(spent is not None and spent <= budget for spent in tokens_by_question.values())
    return round(within / len(tokens_by_question), 4)


def check_out(task: RepoTask, mirror: Path, tree: Path) -> None:
    """The text files below the task's folder at its revision, on disk."""
    name = task.repository.replace("/", "+")
    place = mirror / name / "repo" if (mirror / name / "repo").is_dir() else mirror / name
    prefix = "" if task.root in (".", "") else f"{task.root}/"
    for file in walk([place], readable=lambda path: path.startswith(prefix), revision=task.revision):
        target = tree / file.path.removeprefix(prefix)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)


def sides(tree: Path) -> dict[str, Side]:
    """The compared methods."""
    Index.build(tree, tree / ".ncs").close()
    projects = Projects(Settings(roots=(tree,)))
    return {
        "search": lambda text, relevant: search(projects, text, relevant),
        "answers": lambda text, relevant: search(projects, text, relevant, whole=True),
        "read": lambda text, relevant: read_files(tree, text, relevant),
        "lines": lambda text, relevant: read_lines(tree, text, relevant),
    }


def search(projects: Projects, text: str, relevant: frozenset[str], *, whole: bool = False) -> float:
    """Tokens of search_code's pages to the end of the first hit in a relevant file, or (whole) of its page."""
    spent, cursor = 0, None
    while spent <= MAX_TOKENS:
        arguments: dict[str, object] = {"query": text, **({"cursor": cursor} if cursor else {})}
        page = answer(projects, None, "search_code", arguments)
        hits = page.structured["hits"]
        for number, hit in enumerate(hits, 1):
            if str(hit["place"]).rpartition(":")[0] in relevant:
                following = hits[number] if number < len(hits) and not whole else None
                return spent + tokens(text_before(page.text, following))
        spent, cursor = spent + tokens(page.text), page.structured["next_cursor"]
        if cursor is None:
            break
    return inf


def text_before(text: str, hit: Mapping[str, Any] | None) -> str:
    """A page's text before a hit; all of it for None.

    >>> text_before("1. a.py:1-2 f (function)\\ncode\\n\\n2. b.py:1-9 g (function)", {"rank": 2, "place": "b.py:1"})
    '1. a.py:1-2 f (function)\\ncode'
    """
    at = text.find(f"\n\n{hit['rank']}. {hit['place']}-") if hit else -1
    return text if at < 0 else text[:at]


def read_files(tree: Path, text: str, relevant: frozenset[str]) -> float:
    """Tokens of the files that are read before the first relevant one."""
    spent = 0
    for path in by_matches(tree, text):
        if path in relevant:
            return spent
        spent += tokens((tree / path).read_bytes().decode("utf-8", "replace"))
    return inf


def read_lines(tree: Path, text: str, relevant: frozenset[str]) -> float:
    """Tokens of the matching lines up to the first one of a relevant file."""
    spent = 0
    for path in by_matches(tree, text):
        lines = ripgrep(tree, ["-n", "--no-heading", "--with-filename", *patterns(text), "--", path])
        if path in relevant:
            return spent + tokens(lines[0])
        spent += sum(tokens(line + "\n") for line in lines)
    return inf


def by_matches(tree: Path, text: str) -> Iterator[str]:
    """The files with any of a question's words, those with the most matches first."""
    if not patterns(text):
        return
    counts = [line.rpartition(":") for line in ripgrep(tree, ["--count-matches", *patterns(text)])]
    yield from (path for _, path in sorted((-int(count), path) for path, _, count in counts))


def patterns(text: str) -> list[str]:
    """The options that make ripgrep look for the words of a question."""
    words = dict.fromkeys(content_words(tokenize(text)))
    return ["-i", "-F", *(option for word in words for option in ("-e", word))] if words else []


def ripgrep(tree: Path, options: Sequence[str]) -> list[str]:
    """Lines that ripgrep prints; it ends with 1 where there are none."""
    result = subprocess.run(["rg", "--sort", "path", *options], cwd=tree, capture_output=True, check=False)
    if result.returncode > 1:
        raise BadInput(f"ripgrep failed: {result.stderr.decode('utf-8', 'replace').strip()}")
    return result.stdout.decode("utf-8", "replace").splitlines()


def table(report: Report) -> str:
    rows = []
    for name, recall in report["recall"].items():
        spent = [MAX_TOKENS * 10 if value is None else value for value in report["tokens"][name].values()]
        rows.append([name, *(f"{recall[str(budget)]:.3f}" for budget in BUDGETS), f"{np.median(spent):,.0f}"])
    return markdown_table(["", *(f"at {budget:,}" for budget in BUDGETS), "median"], rows)
