"""Asking an index from a fresh start, on its own or within a hard limit of memory: `python -m evaluation.synth_ask`."""

# ruff: noqa: E402
from __future__ import annotations

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[_threads] = "1"

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from evaluation.fresh import forget, mapped, memory
from evaluation.limited import run
from ncs.errors import NcsError
from ncs.index import Index
from ncs.storage.vectors import read_about

HITS, ASKED = 10, 100


def ask(folder: Path, queries: Path) -> dict[str, Any]:
    """`ask_once`, then ASKED questions again, the fastest of three, with milliseconds of each stage; bytes on disk."""
    from evaluation.bench_query import _fastest, _staged, read_texts, watched
    from ncs.search.hybrid import HybridRanker

    texts = read_texts(queries)[:ASKED]
    start = time.perf_counter()
    with Index.load(folder) as index:
        found = _first_time(index, texts, start)
        whole = [_seconds(lambda text=text: index.search(text, HITS)) for text in texts]  # type: ignore[misc]
        ranker = cast(HybridRanker, index.ranker("hybrid"))
        with watched() as clock:
            staged = [_fastest(lambda text=text: _staged(ranker, text, clock)) for text in texts]  # type: ignore[misc]
        about, sizes = read_about(index.data / "ncs_centred"), parts_of(index.data)
    return {
        "vectors": about.kind, "disk_bytes": sizes, **found,
        "query_ms": _percentiles([1000 * seconds for seconds in whole]),
        "stages_ms": {name: _percentiles([each.get(name, 0.0) for each in staged]) for name in staged[0]},
    }  # fmt: skip


def ask_once(folder: Path, queries: Path) -> dict[str, Any]:
    """Open, ask once, ask ASKED questions once each: seconds, milliseconds and resident bytes after each of these."""
    from evaluation.bench_query import read_texts

    texts = read_texts(queries)[:ASKED]
    start = time.perf_counter()
    with Index.load(folder) as index:
        return _first_time(index, texts, start)


def _first_time(index: Index, texts: Sequence[str], start: float) -> dict[str, Any]:
    resident = {}
    index.ranker("hybrid")
    opened, resident["opened"] = time.perf_counter() - start, memory()
    index.search(texts[0], HITS)
    first, resident["asked once"] = time.perf_counter() - start, memory()
    spent = [_seconds(lambda text=text: index.search(text, HITS), 1) for text in texts]  # type: ignore[misc]
    resident[f"asked {len(texts)}"] = memory()
    return {
        "cold_open_s": round(opened, 3), "cold_first_s": round(first, 3), "resident_bytes": resident,
        "mapped_bytes": mapped(index.data), "first_time_ms": _percentiles([1000 * seconds for seconds in spent]),
    }  # fmt: skip


def ask_within(folder: Path, queries: Path, limit: int) -> dict[str, Any]:
    """`ask_once` with so many bytes of memory, pages of files included; raises NcsError where it dies."""
    forget(folder)
    with tempfile.TemporaryDirectory() as room:
        command = [sys.executable, "-m", "evaluation.synth_ask", str(folder), str(queries), f"{room}/asked.json"]
        ran = run(command, limit, Path(room, "log"))
        if ran.status:
            raise NcsError(f"asking ended with {ran.status}, {ran.kills} kills: {ran.output[-500:]}")
        found = json.loads(Path(room, "asked.json").read_bytes())
    return {"limit": limit, "charged_bytes": ran.most, "own_bytes": ran.peak, **found}


def parts_of(data: Path) -> dict[str, int]:
    """Bytes of each part of a generation: folders, and files outside of them."""
    sizes: dict[str, int] = {}
    for path in sorted(data.rglob("*")):
        if path.is_file():
            name = re.sub(r"\.(ids|offsets|npy|txt|json)(\.npy)?$", "", path.relative_to(data).parts[0])
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes


def _seconds(call: Callable[[], object], rounds: int = 3) -> float:
    """Of the fastest of some calls."""
    spent = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    return {f"p{p}": round(float(np.percentile(values, p)), 3) for p in (50, 95)}


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(ask_once(Path(sys.argv[1]), Path(sys.argv[2]))), encoding="utf-8")
