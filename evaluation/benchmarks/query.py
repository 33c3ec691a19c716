"""A query: cold, as of `bin/benchmark cold`; warm, each ranker beside brute-force FAISS and bm25s.

Warm: one core, one query after the other in one process; of five
repetitions the fastest counts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.benchmarks.cold import cold, cold_table
from evaluation.benchmarks.common import Report, bm25s_of, fastest_ms, in_process, percentiles, read_queries
from evaluation.reports import markdown_table
from ncs.index import Index

HITS, K = 10, 100
"""Hits of the default ranker; of the others, as their own benchmarks ask."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="a file with one per line, or a QUESTIONS.json")
    parser.add_argument("--rounds", type=int, default=15, help="cold starts (default %(default)s; 0: none)")


def run(options: argparse.Namespace) -> Report:
    """Cold medians, and the warm milliseconds of every query."""
    texts = read_queries(options.queries)
    cold_seconds = cold(options.index, texts, options.rounds) if options.rounds else {}
    return {"queries": len(texts), "cold": cold_seconds, **in_process(warm, options.index, texts)}


def warm(folder: Path, texts: Sequence[str]) -> Report:
    """Milliseconds of every query on one core: of the rankers, and of what they are compared with."""
    import bm25s
    import faiss

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    index = Index.load(folder)
    engine = bm25s_of(index)
    flat = faiss.IndexFlatIP(100)  # the time does not depend on the values of the vectors
    flat.add(np.random.default_rng(0).random((len(index), 100), np.float32))
    vector = np.random.default_rng(1).random((1, 100), np.float32)
    k = min(K, len(index))

    def faiss_search(text: str) -> object:
        return flat.search(vector, k)

    def bm25s_search(text: str) -> object:
        return engine.retrieve(bm25s.tokenize([text], show_progress=False), k=k, show_progress=False)

    systems: dict[str, Callable[[str], object]] = {
        "hybrid": partial(index.search, k=HITS),
        "bm25": partial(index.ranker("bm25").search, k=K),
        "ncs_centred": partial(index.ranker("ncs_centred").search, k=K),
        "FAISS, brute force": faiss_search,
        "bm25s": bm25s_search,
    }
    milliseconds = {name: [fastest_ms(search, text) for text in texts] for name, search in systems.items()}
    return {"documents": len(index), "milliseconds": milliseconds}


def table(report: Report) -> str:
    lines = [f"{report['documents']:,} documents, {report['queries']:,} queries, one core"]
    if report["cold"]:
        lines += ["", cold_table(report["cold"])]
    rows = [
        [name, *(f"{p:.2f}" for p in percentiles(values).values())] for name, values in report["milliseconds"].items()
    ]
    return "\n".join([*lines, "", markdown_table(["ms", "p50", "p95"], rows)])
