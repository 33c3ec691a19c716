"""A warm query: each ranker beside its floor, exact search of as many vectors by FAISS, and bm25s.

One core, in one process; all in turn, query by query, of five repetitions the fastest. `bin/benchmark cold`: cold ones.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.benchmarks.common import Report, fastest_ms, in_process, percentiles, read_queries
from evaluation.experiments import all_documents
from evaluation.reports import markdown_table
from ncs.index import Index

HITS, K = 10, 100
"""Hits of the default ranker; of the others, as their own benchmarks ask."""
FLOOR = "FAISS, exact"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="a file with one per line, or a QUESTIONS.json")


def run(options: argparse.Namespace) -> Report:
    """The milliseconds of every query."""
    texts = read_queries(options.queries)
    return {"queries": len(texts), **in_process(warm, options.index, texts)}


def warm(folder: Path, texts: Sequence[str]) -> Report:
    """Milliseconds of every query on one core: of the rankers, and of what they are compared with."""
    import bm25s
    import faiss

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    index = Index.load(folder)
    code = [document.code for document in all_documents(index)]
    engine = bm25s.BM25()
    engine.index(bm25s.tokenize(code, show_progress=False), show_progress=False)
    flat = faiss.IndexFlatIP(100)  # the time does not depend on the values of the vectors
    flat.add(np.random.default_rng(0).random((len(index), 100), np.float32))
    vector = np.random.default_rng(1).random((1, 100), np.float32)
    k = min(K, len(index))

    def faiss_search(text: str) -> object:
        return flat.search(vector, k)

    def bm25s_search(text: str) -> object:
        return engine.retrieve(bm25s.tokenize([text], show_progress=False), k=k, show_progress=False)

    systems: dict[str, Callable[[str], object]] = {
        FLOOR: faiss_search,
        "hybrid": partial(index.search, k=HITS),
        "bm25": partial(index.ranker("bm25").search, k=K),
        "ncs_centred": partial(index.ranker("ncs_centred").search, k=K),
        "bm25s": bm25s_search,
    }
    times = [{name: fastest_ms(search, text) for name, search in systems.items()} for text in texts]
    return {"documents": len(index), "milliseconds": {name: [each[name] for each in times] for name in systems}}


def table(report: Report) -> str:
    floor = report["milliseconds"][FLOOR]
    rows = []
    for name, values in report["milliseconds"].items():
        ratio = statistics.median(one / other for one, other in zip(values, floor, strict=True))
        rows.append([name, *(f"{p:.2f}" for p in percentiles(values).values()), f"{ratio:.2f}"])
    title = f"{report['documents']:,} documents, {report['queries']:,} queries, one core"
    return f"{title}\n\n{markdown_table(['ms', 'p50', 'p95', 'p50 / floor'], rows)}"
