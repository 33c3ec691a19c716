"""A query: cold, as `ncs query` beside `import numpy, faiss`; warm, each ranker beside brute-force FAISS and bm25s.

    bin/benchmark query INDEX --queries FILE [--rounds 10] [--json FILE]

FILE: queries as `bin/evaluate-stackoverflow` takes them (.json), or one per line. Cold: both commands in turn, medians
of --rounds. Warm: one core, one query after the other in one process; of five repetitions the fastest counts.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[_variable] = "1"

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.benchmarks.build import bm25s_of
from evaluation.benchmarks.common import about, fastest_ms, one_core, percentiles, read_queries, run_command, write_json
from evaluation.reports import markdown_table
from ncs.exit_status import main_program
from ncs.index import Index

HITS, K = 10, 100
"""Hits of the default ranker; of the others, as their own benchmarks ask."""
RANKERS = ("bm25", "ncs_centred")
IMPORTS = [sys.executable, "-c", "import numpy, faiss"]


@main_program("query")
def main(argv: Sequence[str] | None = None) -> int:
    """Print cold and warm times; --json also writes the milliseconds of every query."""
    parser = argparse.ArgumentParser(prog="benchmark query", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=10, help="cold starts (default %(default)s; 0: none)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    texts = read_queries(args.queries)
    report = {**about(), "cold": cold(args.index, texts[0], args.rounds) if args.rounds else {}}
    with Index.load(args.index) as index, one_core():
        report |= {"documents": len(index), "queries": len(texts), "milliseconds": warm(index, texts)}
    sys.stdout.write(table(report) + "\n")
    write_json(args.json, report)
    return 0


def cold(index: Path, text: str, rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds of the command and of its imports alone."""
    commands = {"ncs query": [sys.executable, "-m", "ncs.cli", "query", text, "-i", str(index)], "imports": IMPORTS}
    times = [{name: run_command(command) for name, command in commands.items()} for _ in range(rounds + 1)][1:]
    return {
        name: {
            unit: round(statistics.median(getattr(each[name], unit) for each in times), 3) for unit in ("wall", "cpu")
        }
        for name in commands
    }


def warm(index: Index, texts: Sequence[str]) -> dict[str, list[float]]:
    """Milliseconds of every query: of the rankers, and of what they are compared with."""
    import bm25s
    import faiss

    engine = bm25s_of(index)
    flat = faiss.IndexFlatIP(100)  # the time does not depend on what the vectors hold
    flat.add(np.random.default_rng(0).random((len(index), 100), np.float32))
    vector = np.random.default_rng(1).random((1, 100), np.float32)
    k = min(K, len(index))

    def bm25s_search(text: str) -> object:
        tokens = bm25s.tokenize([text], show_progress=False)
        return engine.retrieve(tokens, k=k, show_progress=False)

    systems: dict[str, Callable[[str], object]] = {"hybrid": lambda text: index.search(text, HITS)}
    systems |= {name: partial(index.ranker(name).search, k=K) for name in RANKERS}
    systems |= {"FAISS, brute force": lambda text: flat.search(vector, k), "bm25s": bm25s_search}
    return {
        name: [fastest_ms(lambda search=search, text=text: search(text)) for text in texts]  # type: ignore[misc]
        for name, search in systems.items()
    }


def table(report: dict[str, Any]) -> str:
    """Cold medians with their ratio, then p50 and p95 of every system."""
    lines = [f"{report['documents']:,} documents, {report['queries']:,} queries, one core, load {report['load']:.1f}"]
    if report["cold"]:
        ours, imports = report["cold"]["ncs query"], report["cold"]["imports"]
        lines.append(f"cold: {ours['wall']:.2f} s, {ours['wall'] / imports['wall']:.2f} times its imports "
                     f"(CPU {ours['cpu']:.2f} s, {ours['cpu'] / imports['cpu']:.2f} times)")  # fmt: skip
    rows = [
        [name, *(f"{p:.2f}" for p in percentiles(values).values())] for name, values in report["milliseconds"].items()
    ]
    return "\n".join([*lines, "", markdown_table(["ms", "p50", "p95"], rows)])


if __name__ == "__main__":
    sys.exit(main())
