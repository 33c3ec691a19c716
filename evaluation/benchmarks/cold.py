"""A cold query: `ncs query`, its floor `import numpy, faiss`, and ripgrep on the same sources.

All commands in turn, medians of --rounds, each also as a multiple of the floor: seconds depend on the machine's load.
ripgrep looks for the longest word of a query in the index's sources, where both are here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from evaluation.benchmarks.common import NCS, Report, interleaved, ratio_table, read_queries, run_command
from ncs.index import Index

FLOOR = "import numpy, faiss"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="a file with one per line, or a QUESTIONS.json")
    parser.add_argument("--rounds", type=int, default=15, help="(default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """The medians, of the queries in turn; a first round warms the page cache and compiles modules."""
    texts = read_queries(options.queries)
    with Index.load(options.index) as index:
        documents, roots = len(index), [root for root in index.snapshot.roots if root.exists()]
    rounds = [_commands(texts[n % len(texts)], options.index, roots) for n in range(options.rounds + 1)]
    for command in rounds[0].values():
        command()
    return {"documents": documents, "cold": interleaved(rounds[1:])}


def _commands(text: str, index: Path, roots: Sequence[Path]) -> Mapping[str, Callable[[], object]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    commands: dict[str, Sequence[object]] = {FLOOR: (sys.executable, "-c", FLOOR)}
    commands["ncs query"] = (*NCS, "query", text, "-i", index)
    if roots and shutil.which("rg"):
        commands["rg --count"] = ("rg", "--count", "--ignore-case", max(text.split(), key=len), *roots)
    return {name: partial(run_command, *words, found=(0, 1), env=environment) for name, words in commands.items()}


def table(report: Report) -> str:
    return f"{report['documents']:,} documents\n\n{ratio_table('cold', report['cold'])}"
