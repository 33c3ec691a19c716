"""A cold query: `ncs query`, its floor `import numpy, faiss`, and ripgrep on the same sources.

All commands in turn, medians of --rounds, each also as a multiple of the floor: seconds depend on the machine's load.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from evaluation.benchmarks.common import NCS, Report, read_queries, run_command, timed
from evaluation.reports import markdown_table
from ncs.index import Index

FLOOR = "import numpy, faiss"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="a file with one per line, or a QUESTIONS.json")
    parser.add_argument("--rounds", type=int, default=15, help="(default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """The medians, of the queries in turn."""
    with Index.load(options.index) as index:
        documents = len(index)
    return {"documents": documents, "cold": cold(options.index, read_queries(options.queries), options.rounds)}


def cold(index: Path, texts: Sequence[str], rounds: int) -> Report:
    """Median seconds of each command, and its ratio to the floor; a first round warms the page cache.

    ripgrep looks for the longest word of a query in the index's sources, where both are here. Modules are compiled
    once, as of an installed program.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with Index.load(index) as opened:
        roots = [root for root in opened.snapshot.roots if root.exists()]
    times: list[Report] = []
    for number in range(rounds + 1):
        text = texts[number % len(texts)]
        commands = {FLOOR: (sys.executable, "-c", FLOOR), "ncs query": (*NCS, "query", text, "-i", index)}
        if roots and shutil.which("rg"):
            commands["rg --count"] = ("rg", "--count", "--ignore-case", max(text.split(), key=len), *roots)
        runs = {name: partial(run_command, *words, found=(0, 1), env=environment) for name, words in commands.items()}
        times.append({name: timed(each) for name, each in runs.items()})
    report: Report = {}
    for name in times[0]:
        for kind in ("wall", "cpu"):
            seconds = [getattr(each[name], kind) for each in times[1:]]
            floor = [max(getattr(each[FLOOR], kind), 1e-9) for each in times[1:]]
            ratio = statistics.median(one / other for one, other in zip(seconds, floor, strict=True))
            report.setdefault(name, {}).update({kind: statistics.median(seconds), f"{kind} / floor": round(ratio, 3)})
    return report


def table(report: Report) -> str:
    return f"{report['documents']:,} documents\n\n{cold_table(report['cold'])}"


def cold_table(figures: Report) -> str:
    """The medians as a table."""
    columns = ("wall", "cpu", "wall / floor", "cpu / floor")
    rows = [[name, *(f"{each[column]:.2f}" for column in columns)] for name, each in figures.items()]
    return markdown_table(["cold", "wall s", "CPU s", *columns[2:]], rows)
