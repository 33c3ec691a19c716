"""How document vectors are searched, exactly and by IVF-PQ: bytes, milliseconds, what is found.

    bin/benchmark vectors INDEX --queries FILE [--rows N] [--kind K]... [--work FOLDER] [--json FILE]

The vectors are those of `ncs_centred`: of the index itself, or with --rows of so many documents mixed from its words
(evaluation/mixed_words.py). Every kind is built in a process of its own and asked in another one, one core, files
dropped from the system's cache before it is opened; of ROUNDS the fastest counts. What should be found is counted with
floats over all vectors; any that scores as much as the last wanted one will do.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[_threads] = "1"

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np

from evaluation.bench_query import read_texts
from evaluation.fresh import apart, forget, memory
from evaluation.machine import commit, forget_peak_memory, machine, peak_memory
from evaluation.mixed_words import mixed
from evaluation.report import aligned
from ncs.errors import NcsError
from ncs.index import Index
from ncs.learn.embeddings import Embeddings
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import create_ranker
from ncs.storage.file_roles import Places
from ncs.storage.vectors import VectorIndex
from ncs.storage.words import WordTable

KINDS = ("exact", "pq")
DEPTHS = (10, 1000)
"""Hits asked for: what people see, and what the default ranker asks for."""
ROUNDS, CHUNK = 5, 1 << 17


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row a kind; 2 for an error, told in one line."""
    parser = argparse.ArgumentParser(prog="benchmark vectors", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="questions, as bin/benchmark query takes them")
    parser.add_argument("--rows", type=int, help="documents mixed from the index's words (default: its own)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="repeatable (default: all)")
    parser.add_argument("--work", type=Path, help="folder for what is built (default: a temporary one)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    work = args.work or Path(tempfile.mkdtemp(prefix="ncs-bench-"))
    try:
        report = measure(args.index, args.queries, args.rows, args.kind or KINDS, work)
    except NcsError as error:
        sys.stderr.write(f"vectors: {error}\n")
        return 2
    finally:
        if not args.work:
            shutil.rmtree(work)
    sys.stdout.write(table(report) + "\n")
    if args.json:
        keep(args.json, report)
    return 0


def measure(index: Path, queries: Path, rows: int | None, kinds: Sequence[str], work: Path) -> dict[str, Any]:
    """All kinds over the same vectors."""
    work.mkdir(parents=True, exist_ok=True)
    prepared = apart(prepare, index, queries, rows, work)
    found = {}
    for kind in dict.fromkeys(["exact", *kinds]):  # by exact search the others are judged
        built = apart(build, kind, work)
        forget(work / kind)
        found[kind] = {**built, **apart(ask, kind, work)}
    return {
        "commit": commit(), "machine": machine(), "load": os.getloadavg()[0], "rounds": ROUNDS, **prepared,
        "kinds": found,
    }  # fmt: skip


def prepare(index: Path, queries: Path, rows: int | None, work: Path) -> dict[str, Any]:
    """The words, the questions' vectors and what they should find, into `work`."""
    with Index.load(index) as opened:
        words, places = opened.words(), Places.load(opened.data)
        ranker = cast(NcsRanker, opened.ranker("ncs_centred"))
        asked = np.stack([ranker.encoder.query(text) for text in read_texts(queries)])
        Embeddings.load(opened.data).save(work)
        if rows is None:
            words.save(work)
        else:
            words = mixed(words, places.repository[places.file], rows, work)
            np.save(work / "words.ids.npy", words.ids)
            (work / "words.ids.raw").unlink()
    np.save(work / "questions.npy", asked[asked.any(axis=1)])
    return {"documents": len(words), "dim": asked.shape[1], "questions": int(asked.any(axis=1).sum())}


def build(kind: str, work: Path) -> dict[str, Any]:
    """Fit and save; seconds, CPU seconds and peak bytes. Exact search also notes what should be found."""
    words, embeddings = WordTable.load(work), Embeddings.load(work)
    ranker = cast(NcsRanker, create_ranker("ncs_centred", vectors=kind))
    forget_peak_memory()
    start, cpu = time.perf_counter(), time.process_time()
    ranker.fit(words, embeddings)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    (work / kind).mkdir(exist_ok=True)
    ranker.index.save(work / kind)
    peak, size = peak_memory(), sum(path.stat().st_size for path in (work / kind).iterdir())
    if not (work / "wanted.npy").exists():
        np.save(work / "wanted.npy", wanted(ranker, words, np.load(work / "questions.npy")))
    return {
        "build_s": round(seconds, 1), "cpu_s": round(cpu, 1), "peak_bytes": peak, "bytes": round(size / len(words), 1),
        "about": asdict(ranker.index.about),
    }  # fmt: skip


def wanted(ranker: NcsRanker, words: WordTable, asked: Any) -> Any:
    """For every question the similarity of the last document of each of DEPTHS."""
    best = np.full((len(asked), max(DEPTHS)), -np.inf, np.float32)
    for start in range(0, len(words), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(words)))
        scores = np.concatenate([best, asked @ ranker.index.vectors(rows).T], axis=1)
        best = -np.partition(-scores, max(DEPTHS) - 1, axis=1)[:, : max(DEPTHS)]
    best = -np.sort(-best, axis=1)
    return best[:, [depth - 1 for depth in DEPTHS]]


def ask(kind: str, work: Path) -> dict[str, Any]:
    """Open cold, ask every question for both depths."""
    asked, least = np.load(work / "questions.npy"), np.load(work / "wanted.npy")
    exact = VectorIndex.load(work / "exact")
    before, start = memory(), time.perf_counter()
    index = VectorIndex.load(work / kind)
    opened = time.perf_counter() - start
    index.search(asked[:1], DEPTHS[0])
    first = time.perf_counter() - start
    report: dict[str, Any] = {"open_ms": round(1000 * opened, 1), "first_ms": round(1000 * first, 1)}
    for number, depth in enumerate(DEPTHS):
        times, found = [], []
        for query, tenth in zip(asked, least[:, number], strict=True):
            spent, rows = _fastest(index, query, depth)
            times.append(spent)
            found.append(np.count_nonzero(exact.similarities(query, rows) >= tenth - 1e-6) / depth)
        report[f"at_{depth}"] = {
            "recall": round(float(np.mean(found)), 4),
            "p50_ms": round(float(np.percentile(times, 50)), 3), "p95_ms": round(float(np.percentile(times, 95)), 3),
        }  # fmt: skip
    report["own_bytes"] = memory()["own"] - before["own"]
    return report


def _fastest(index: VectorIndex, query: Any, depth: int) -> tuple[float, Any]:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        rows, _ = index.search(query[None], depth)
        best = min(best, time.perf_counter() - start)
    return 1000 * best, rows[0][rows[0] >= 0]


def keep(path: Path, report: dict[str, Any]) -> None:
    """Add the kinds to the run of this many documents in a results file."""
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    earlier = [run["kinds"] for run in runs if run["documents"] == report["documents"]]
    report = {**report, "kinds": {**(earlier[0] if earlier else {}), **report["kinds"]}}
    runs = [run for run in runs if run["documents"] != report["documents"]] + [report]
    path.write_text(json.dumps({"runs": sorted(runs, key=lambda run: run["documents"])}, indent=1) + "\n")


def table(report: dict[str, Any]) -> str:
    """A row a kind."""
    rows = []
    for kind, each in report["kinds"].items():
        shallow, deep = (each[f"at_{depth}"] for depth in DEPTHS)
        rows.append([
            kind, f"{each['bytes']:.0f}", f"{each['cpu_s']:.0f}", f"{each['peak_bytes'] / 2**30:.1f}",
            f"{each['open_ms']:.0f}", f"{each['first_ms']:.0f}", f"{shallow['recall']:.3f}",
            f"{shallow['p50_ms']:.2f}", f"{shallow['p95_ms']:.2f}", f"{deep['recall']:.3f}", f"{deep['p50_ms']:.2f}",
        ])  # fmt: skip
    head = ["kind", "bytes", "build CPU s", "GiB", "open ms", "first ms", "recall@10", "p50", "p95", "@1000", "p50"]
    asked = f"{report['documents']:,} vectors x {report['dim']}, {report['questions']} questions"
    return f"{asked}, one core, load {report['load']:.1f}\n\n{aligned(head, rows)}"


if __name__ == "__main__":
    sys.exit(main())
