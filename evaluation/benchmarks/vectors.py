"""Approximate search of document vectors against exact search: bytes, milliseconds, recall.

    bin/benchmark vectors INDEX --queries FILE [--rows N] [--kind pq]... [--json FILE]

The vectors are those of `ncs_centred` in INDEX; with --rows N so many mixtures of two of them. Every kind is built and
asked in processes of its own, on one core, its files dropped from the page cache before they are opened.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[_variable] = "1"

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from evaluation.benchmarks.common import (
    about,
    drop_cache,
    fastest_ms,
    in_process,
    percentiles,
    read_queries,
    resident_bytes,
    write_json,
)
from evaluation.machine import peak_memory
from evaluation.reports import markdown_table
from ncs.exit_status import main_program
from ncs.index import Index
from ncs.search.ncs import NcsRanker
from ncs.storage.vectors import VectorIndex, Vectors

KINDS = ("exact", "pq")
DEPTHS = (10, 1000)
"""Hits asked for: what people see, and what the default ranker asks for."""
CHUNK = 1 << 16


@main_program("vectors")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row per kind; --json also writes them."""
    parser = argparse.ArgumentParser(prog="benchmark vectors", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="as bin/benchmark query takes them")
    parser.add_argument("--rows", type=int, help="vectors to search (default: the index's own)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="repeatable (default: all)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as name:
        report = {**about(), **measure(args.index, args.queries, args.rows, args.kind or KINDS, Path(name))}
    sys.stdout.write(table(report) + "\n")
    write_json(args.json, report)
    return 0


def measure(index: Path, queries: Path, rows: int | None, kinds: Sequence[str], work: Path) -> dict[str, Any]:
    """All kinds over the same vectors; exact search, always the first, tells what should be found."""
    prepared = in_process(prepare, index, queries, rows, work)
    results = {}
    for kind in dict.fromkeys(["exact", *kinds]):
        build_figures = in_process(build, kind, work)
        drop_cache(work / kind)
        results[kind] = {**build_figures, **in_process(ask, kind, work)}
    return {**prepared, "kinds": results}


def prepare(index: Path, queries: Path, rows: int | None, work: Path) -> dict[str, Any]:
    """Write vectors.npy [rows, dim] and queries.npy [queries, dim]."""
    with Index.load(index) as index_opened:
        ranker = cast(NcsRanker, index_opened.ranker("ncs_centred"))
        query_vectors = np.stack([ranker.encoder.query(text) for text in read_queries(queries)])
        query_vectors = query_vectors[query_vectors.any(axis=1)]
        real, count = ranker.vectors, rows or len(index_opened.documents)
        vectors = np.lib.format.open_memmap(work / "vectors.npy", "w+", np.float32, (count, real.dim))
        draw = np.random.default_rng(0)
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            if rows is None:
                vectors[start : start + size] = real.vectors(np.arange(start, start + size))
            else:
                vectors[start : start + size] = mixed(real, size, draw)
        vectors.flush()
    np.save(work / "queries.npy", query_vectors)
    return {"vectors": count, "dim": int(query_vectors.shape[1]), "queries": len(query_vectors)}


def mixed(real: Vectors, count: int, draw: np.random.Generator) -> Any:
    """Unit vectors between two that are there, [count, dim]: some near one of them, some halfway."""
    ends = [real.vectors(draw.integers(0, len(real), count)) for _ in range(2)]
    share = draw.random((count, 1), np.float32)
    mixtures = share * ends[0] + (1 - share) * ends[1]
    return mixtures / np.maximum(np.linalg.norm(mixtures, axis=1, keepdims=True), 1e-9)


def build(kind: str, work: Path) -> dict[str, Any]:
    """Build and save; CPU seconds, peak memory, bytes per vector."""
    vectors = np.load(work / "vectors.npy", mmap_mode="r")
    rows, dim = vectors.shape
    start = time.process_time()
    chunks: Iterator[Any] = (np.asarray(vectors[at : at + CHUNK]) for at in range(0, rows, CHUNK))
    vector_index = VectorIndex.build(chunks, dim, kind=cast(Any, kind))
    (work / kind).mkdir()
    vector_index.save(work / kind)
    size = sum(path.stat().st_size for path in (work / kind).iterdir())
    cpu = time.process_time() - start
    return {"cpu_s": round(cpu, 1), "peak_bytes": peak_memory(), "bytes_per_vector": round(size / rows, 1)}


def ask(kind: str, work: Path) -> dict[str, Any]:
    """Open cold, then ask every query for each of DEPTHS; recall allows any vector as near as the last wanted one."""
    queries, exact = np.load(work / "queries.npy"), VectorIndex.load(work / "exact")
    start, before = time.perf_counter(), resident_bytes().get("own", 0)
    index = VectorIndex.load(work / kind)
    index.search(queries[:1], DEPTHS[0])
    report: dict[str, Any] = {"first_ms": round(1000 * (time.perf_counter() - start), 1)}
    for depth in (min(depth, len(index)) for depth in DEPTHS):
        times, recalls = [], []
        for query in queries[:, None]:
            times.append(fastest_ms(lambda query=query: index.search(query, depth)))  # type: ignore[misc]  # noqa: B023
            rows = index.search(query, depth)[0][0]
            least = exact.search(query, depth)[1][0, -1]
            recalls.append(np.count_nonzero(exact.similarities(query[0], rows[rows >= 0]) >= least - 1e-6) / depth)
        report[f"at_{depth}"] = {"recall": round(float(np.mean(recalls)), 4), "ms": percentiles(times)}
    report["own_bytes"] = resident_bytes().get("own", 0) - before
    return report


def table(report: dict[str, Any]) -> str:
    """A row per kind."""
    rows = []
    for kind, each in report["kinds"].items():
        row = [kind, f"{each['bytes_per_vector']:.0f}", f"{each['cpu_s']:.0f}", f"{each['first_ms']:.0f}"]
        for at in (each[name] for name in each if name.startswith("at_")):
            row += [f"{at['recall']:.3f}", f"{at['ms']['p50']:.2f}", f"{at['ms']['p95']:.2f}"]
        rows.append(row)
    depths = [name.removeprefix("at_") for name in report["kinds"]["exact"] if name.startswith("at_")]
    head = [
        "kind",
        "bytes",
        "build CPU s",
        "first ms",
        *(c for d in depths for c in (f"recall@{d}", "p50 ms", "p95 ms")),
    ]
    title = f"{report['vectors']:,} vectors x {report['dim']}, {report['queries']} queries, one core"
    return f"{title}, load {report['load']:.1f}\n\n{markdown_table(head, rows)}"


if __name__ == "__main__":
    sys.exit(main())
