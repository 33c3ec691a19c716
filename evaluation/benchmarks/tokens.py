"""Counts the tokens that an agent reads until a right function is shown: search_code of `ncs mcp`, grep and read.

The questions of evaluation/functions (or `--data`), each inside its repository at the pinned revision. A token is
TOKEN_BYTES bytes on every side, and neither the agent's own words nor descriptions of tools count. A function is shown
once its place and name, or a line of it, was read; exact copies of a right function are right, too.

search     search_code with the question and default arguments; then the same with next_cursor, page by page. All text
           counts that stands before the end of the first right hit, the hit's code included.
answers    one call of search_code with max_tokens = the budget, read to its end: the smallest budget whose answer
           shows a right function.
lines      `rg -n` with the question's content words (ncs.text.tokens), as fixed strings, any case, any of them; the
           files in order of matches (ties by path), of each the matching lines as rg prints them (path:line:text), up
           to the first that lies in a right function. The order costs nothing.
read       the same order, but the files are read whole, up to the first line of a right function.

recall at N: the share of the questions with a right function shown within N tokens; of all, and of those whose function
is among the ranker's first ten. with code: of the default answers that show a right function, the share that shows its
lines, not only its place; and the mean tokens of a default answer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import inf
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import numpy as np

from corpora.repo_search import OF_FILE, RepoTask, find_repository, mirror_of, read
from evaluation.benchmarks.common import Report
from evaluation.reports import markdown_table
from ncs.errors import BadInput, MissingExtra
from ncs.index import Index
from ncs.search.question import MAX_QUERY
from ncs.serve.mcp.pages import TOKEN_BYTES, tokens
from ncs.serve.mcp.projects import Projects, Settings
from ncs.serve.mcp.server import tools
from ncs.serve.mcp.tools import DEFAULT_TOKENS, MAX_TOKENS, answer
from ncs.sources import walk
from ncs.text.tokens import content_words, tokenize

FUNCTIONS = Path(__file__).parents[1] / "functions"
SETS = ("report", "develop")
BUDGETS = (1_000, 2_000, 8_000)
FOUND = 10
"""Hits of the ranker among which a function counts as found."""


class Span(NamedTuple):
    """Where a function lies; lines are 1-based and inclusive."""

    path: str
    start: int
    end: int


Right = frozenset[Span]
Side = Callable[[str, Right], float]
"""(question, right functions) -> tokens, infinite where none of them is shown."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="folder with questions.jsonl and repositories; else both sets")
    parser.add_argument("--mirror", type=Path, help="folder of the repositories; else `repositories` in the data")


def run(options: argparse.Namespace) -> Report:
    """Tokens of every question on every side; null where no right function was shown within the largest budget."""
    if which("rg") is None:
        raise MissingExtra("bin/benchmark tokens compares with ripgrep; apt-get install ripgrep")
    folders = [options.data] if options.data else [FUNCTIONS / name for name in SETS]
    descriptions = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in tools()])
    return {
        "token_bytes": TOKEN_BYTES, "max_tokens": DEFAULT_TOKENS, "tokens_of_tool_descriptions": tokens(descriptions),
        "sets": {folder.name: measure(folder, options.mirror or mirror_of(folder)) for folder in folders},
    }  # fmt: skip


def measure(data: Path, mirror: Path) -> Report:
    """The figures of one set of questions."""
    values: dict[str, dict[str, float | None]] = defaultdict(dict)
    ranks: dict[str, int | None] = {}
    sizes, code = list[int](), list[bool]()
    tasks = read(data, mirror)
    for task in tasks:
        right = right_functions(task)
        with checked_out(task, mirror) as tree:
            Index.build(tree, tree / ".ncs").close()
            projects = Projects(Settings(roots=(tree,)))
            for query in task.corpus.queries:
                for name, side in sides(tree, projects).items():
                    spent = side(query.text, right[query.id])
                    values[name][query.id] = None if spent > max(BUDGETS) else spent
                ranks[query.id] = rank(projects, query.text, right[query.id])
                page, hits, _ = ask(projects, query.text, DEFAULT_TOKENS, None)
                sizes.append(tokens(page))
                if (number := first_right(hits, right[query.id])) is not None:
                    code.append(hits[number]["code"] is not None)
    found = [id for id, place in ranks.items() if place]
    return {
        "questions": len(ranks), "found": len(found), "notes": [task.note for task in tasks if task.note],
        "recall": recall(values, list(ranks)), "recall_of_found": recall(values, found),
        "with_code": round(sum(code) / max(len(code), 1), 4), "tokens_of_an_answer": round(float(np.mean(sizes))),
        "ranks": ranks, "tokens": values,
    }  # fmt: skip


def recall(values: Mapping[str, Mapping[str, float | None]], ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """Of each side the share of some questions within each budget.

    >>> recall({"search": {"a": 10, "b": 2001, "c": None, "d": 2000}}, ["a", "b", "c", "d"])
    {'search': {'1000': 0.25, '2000': 0.5, '8000': 0.75}}
    """
    shares: dict[str, dict[str, float]] = {}
    for name, column in values.items():
        spent = [inf if (value := column[id]) is None else value for id in ids]
        within = {str(budget): sum(each <= budget for each in spent) for budget in BUDGETS}
        shares[name] = {budget: round(n / max(len(ids), 1), 4) for budget, n in within.items()}
    return shares


def right_functions(task: RepoTask) -> dict[str, Right]:
    """query id -> where its functions, and exact copies of them, lie."""
    copies: dict[bytes, list[Span]] = defaultdict(list)
    digests: dict[str, set[bytes]] = defaultdict(set)
    for document in task.corpus.source():
        copies[document.digest].append(Span(document.path, document.start_line, document.end_line))
        digests[f"{document.path}{OF_FILE}{document.qualified_name}"].add(document.digest)
    return {
        id: frozenset(span for name in qrels for digest in digests[name] for span in copies[digest])
        for id, qrels in task.corpus.qrels.items()
    }


@contextmanager
def checked_out(task: RepoTask, mirror: Path) -> Iterator[Path]:
    """A folder with the text files below the task's folder at its revision, removed afterwards."""
    place = find_repository(task.repository, mirror)
    prefix = "" if task.root in (".", "") else f"{task.root}/"
    revision = task.revision if place.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as folder:
        tree = Path(folder) / task.repository.rpartition("/")[2]
        for file in walk([place], readable=lambda path: path.startswith(prefix), revision=revision):
            target = tree / file.path.removeprefix(prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
        yield tree


def sides(tree: Path, projects: Projects) -> dict[str, Side]:
    """The compared methods."""
    return {
        "search": lambda text, right: search(projects, text, right),
        "answers": lambda text, right: read_answer(projects, text, right),
        "lines": lambda text, right: read_lines(tree, text, right),
        "read": lambda text, right: read_files(tree, text, right),
    }


@lru_cache(maxsize=8)
def ask(
    projects: Projects, text: str, max_tokens: int, cursor: str | None
) -> tuple[str, list[dict[str, Any]], str | None]:
    """An answer of search_code: its text, its hits, the cursor of the next page."""
    arguments = {"query": text[:MAX_QUERY], "max_tokens": max_tokens, "cursor": cursor}
    page = answer(projects, None, "search_code", arguments)
    return page.text, page.structured["hits"], page.structured["next_cursor"]


def first_right(hits: Sequence[Mapping[str, Any]], right: Right) -> int | None:
    """The number of the first hit at the place of a right function, None for none."""
    places = {f"{span.path}:{span.start}" for span in right}
    return next((number for number, hit in enumerate(hits) if hit["place"] in places), None)


def search(projects: Projects, text: str, right: Right) -> float:
    """Tokens of search_code's pages to the end of the first right hit."""
    spent, cursor = 0, None
    while spent <= max(BUDGETS):
        page, hits, cursor = ask(projects, text, DEFAULT_TOKENS, cursor)
        if (number := first_right(hits, right)) is not None:
            return spent + tokens(text_before(page, hits[number + 1] if number + 1 < len(hits) else None))
        spent += tokens(page)
        if cursor is None:
            break
    return inf


def text_before(text: str, hit: Mapping[str, Any] | None) -> str:
    """A page's text before a hit; all of it for None.

    >>> text_before("1. a.py:1-2 f (function)\\ncode\\n\\n2. b.py:1-9 g (function)", {"rank": 2, "place": "b.py:1"})
    '1. a.py:1-2 f (function)\\ncode'
    """
    at = text.find(f"\n{hit['rank']}. {hit['place']}-") if hit else -1
    return text if at < 0 else text[:at].rstrip("\n")


def read_answer(projects: Projects, text: str, right: Right) -> float:
    """The smallest budget for which one answer of search_code shows a right function."""
    shown = (first_right(ask(projects, text, budget, None)[1], right) is not None for budget in BUDGETS)
    return next((budget for budget, found in zip(BUDGETS, shown, strict=True) if found), inf)


def rank(projects: Projects, text: str, right: Right) -> int | None:
    """The rank of the first right hit, None past FOUND."""
    number = first_right(ask(projects, text, MAX_TOKENS, None)[1][:FOUND], right)
    return None if number is None else number + 1


def read_lines(tree: Path, text: str, right: Right) -> float:
    """Tokens of the matching lines up to the first one in a right function."""
    if not (words := patterns(text)):
        return inf
    spent, matches = 0, defaultdict[str, list[str]](list)
    for line in ripgrep(tree, ["-n", "--no-heading", "--with-filename", "--null", *words]):
        path, _, match = line.partition("\0")
        matches[path].append(match)
    for path in by_matches(tree, text):
        spans = [span for span in right if span.path == path]
        for match in matches[path]:
            spent += tokens(f"{path}:{match}\n")
            if any(span.start <= int(match.partition(":")[0]) <= span.end for span in spans):
                return spent
    return inf


def read_files(tree: Path, text: str, right: Right) -> float:
    """Tokens of the files that are read, up to the first line of a right function."""
    spent = 0
    for path in by_matches(tree, text):
        content = (tree / path).read_bytes().decode("utf-8", "replace")
        if starts := [span.start for span in right if span.path == path]:
            return spent + tokens("\n".join(content.split("\n")[: min(starts)]))
        if (spent := spent + tokens(content)) > max(BUDGETS):
            break
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
    return result.stdout.decode("utf-8", "replace").split("\n")[:-1]


def table(report: Report) -> str:
    rows = []
    for name, figures in report["sets"].items():
        for side, shares in figures["recall"].items():
            spent = [max(BUDGETS) * 10 if value is None else value for value in figures["tokens"][side].values()]
            of_found = figures["recall_of_found"][side]
            cells = [f"{shares[str(budget)]:.3f} ({of_found[str(budget)]:.3f})" for budget in BUDGETS]
            rows.append([name, side, *cells, f"{np.median(spent):,.0f}"])
        rows.append([name, "with code", f"{figures['with_code']:.3f}", "", "", f"{figures['tokens_of_an_answer']}"])
    heading = ["", "of all (of found)", *(f"at {budget:,}" for budget in BUDGETS), "median"]
    return markdown_table(heading, rows)
