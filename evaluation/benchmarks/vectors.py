"""Approximate search of document vectors against exact search: bytes, milliseconds, recall.

The vectors are those of `ncs_centred` in INDEX; with --rows N so many mixtures of two of them. Every kind is built and
searched in processes of its own, on one thread, its files dropped from the page cache before they are opened.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from evaluation.benchmarks.common import (
    Report,
    drop_cache,
    fastest_ms,
    in_process,
    percentiles,
    read_queries,
    resident_bytes,
)
from evaluation.experiments import folder_bytes
from evaluation.reports import markdown_table
from ncs.index import Index
from ncs.search.ncs import NcsRanker
from ncs.storage.vectors import VectorIndex, Vectors

KINDS = ("exact", "pq")
DEPTHS = (10, 1000)
"""Hits that people see, and that the default ranker requests."""
CHUNK = 1 << 16


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="a file with one per line, or a QUESTIONS.json")
    parser.add_argument("--rows", type=int, metavar="N", help="vectors to search (default: the index's own)")


def run(options: argparse.Namespace) -> Report:
    """All kinds over the same vectors; exact search, the first, has the true neighbors."""
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as name:
        work = Path(name)
        report: Report = in_process(prepare, options.index, options.queries, options.rows, work)
        report["kinds"] = {}
        for kind in KINDS:
            built = in_process(build, kind, work)
            drop_cache(work / kind)
            report["kinds"][kind] = {**built, **in_process(search, kind, work)}
    return report


def prepare(folder: Path, queries: Path, rows: int | None, work: Path) -> Report:
    """Write vectors.npy [rows, dim] and queries.npy [queries, dim]."""
    with Index.load(folder) as index:
        ranker = cast(NcsRanker, index.ranker("ncs_centred"))
        query_vectors = np.stack([ranker.encoder.query(text) for text in read_queries(queries)])
        query_vectors = query_vectors[query_vectors.any(axis=1)]
        real, count = ranker.vectors, rows or len(index.documents)
        vectors = np.lib.format.open_memmap(work / "vectors.npy", "w+", np.float32, (count, real.dim))
        rng = np.random.default_rng(0)
        for start in range(0, count, CHUNK):
            end = min(start + CHUNK, count)
            vectors[start:end] = real.vectors(np.arange(start, end)) if rows is None else mix(real, end - start, rng)
        vectors.flush()
    np.save(work / "queries.npy", query_vectors)
    return {"vectors": count, "dim": int(query_vectors.shape[1]), "queries": len(query_vectors)}


def mix(real: Vectors, count: int, rng: np.random.Generator) -> Any:
    """Unit vectors [count, dim] between two of the real ones: some near one of them, some halfway."""
    ends = [real.vectors(rng.integers(0, len(real), count)) for _ in range(2)]
    share = rng.random((count, 1), np.float32)
    mixtures = share * ends[0] + (1 - share) * ends[1]
    return mixtures / np.maximum(np.linalg.norm(mixtures, axis=1, keepdims=True), 1e-9)


def build(kind: str, work: Path) -> Report:
    """Build and save; CPU seconds, peak memory, bytes per vector."""
    vectors = np.load(work / "vectors.npy", mmap_mode="r")
    rows, dim = vectors.shape
    start = time.process_time()
    chunks = (np.asarray(vectors[at : at + CHUNK]) for at in range(0, rows, CHUNK))
    index = VectorIndex.build(chunks, dim, kind=cast(Any, kind))
    index.save(work / kind)
    cpu, size = time.process_time() - start, folder_bytes(work / kind)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"cpu_s": round(cpu, 1), "peak_bytes": peak, "bytes_per_vector": round(size / rows, 1)}


def search(kind: str, work: Path) -> Report:
    """Open cold, then each query for each of DEPTHS; recall counts any vector as near as the last true neighbor."""
    queries, exact = np.load(work / "queries.npy"), VectorIndex.load(work / "exact")
    start, before = time.perf_counter(), resident_bytes().get("own", 0)
    index = VectorIndex.load(work / kind)
    index.search(queries[0], DEPTHS[0])
    report: Report = {"first_ms": round(1000 * (time.perf_counter() - start), 1)}
    for depth in (min(depth, len(index)) for depth in DEPTHS):
        times, recalls = [], []
        for query in queries:
            times.append(fastest_ms(index.search, query, depth))
            rows = index.search(query, depth)[0]
            least = exact.search(query, depth)[1][-1]
            recalls.append(np.count_nonzero(exact.similarities(query, rows) >= least - 1e-6) / depth)
        report[f"at_{depth}"] = {"recall": round(float(np.mean(recalls)), 4), "ms": percentiles(times)}
    report["own_bytes"] = resident_bytes().get("own", 0) - before
    return report


def table(report: Report) -> str:
    head = ["kind", "bytes", "build CPU s", "first ms"]
    depths = [name for name in report["kinds"]["exact"] if name.startswith("at_")]
    for depth in depths:
        head += [f"recall@{depth.removeprefix('at_')}", "p50 ms", "p95 ms"]
    rows = []
    for kind, each in report["kinds"].items():
        row = [kind, f"{each['bytes_per_vector']:.0f}", f"{each['cpu_s']:.0f}", f"{each['first_ms']:.0f}"]
        for at in (each[depth] for depth in depths):
            row += [f"{at['recall']:.3f}", f"{at['ms']['p50']:.2f}", f"{at['ms']['p95']:.2f}"]
        rows.append(row)
    title = f"{report['vectors']:,} vectors x {report['dim']}, {report['queries']} queries, one thread"
    return f"{title}\n\n{markdown_table(head, rows)}"
