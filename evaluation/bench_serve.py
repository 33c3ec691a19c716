"""What 64 people at a time get from `ncs serve`: milliseconds an answer, errors, beside an endpoint that does nothing.

    bin/benchmark serve INDEX --queries FILE [--from BIG --functions 100000] [--workers N] [--json FILE]

FILE: questions as `bin/evaluate-stackoverflow` takes them (.json), or a question a line. With --from, INDEX is made
first where it is not there: functions drawn (seeded) from another index. Server and clients run on this machine, the
clients in a process of their own: --clients of them, each asks over its own connection, reads the answer, thinks for
--think seconds on average (exponential), asks the next question. Before and after the searches /health is asked the
same way; while they run, one more client asks it, which shows whether searches starve it. At last the same clients
without thinking: how much the server can do at all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from evaluation.bench_query import read_texts
from evaluation.http_load import Load, Seen, ask
from evaluation.machine import commit, machine
from evaluation.report import aligned
from ncs.errors import NcsError
from ncs.exit_status import ending
from ncs.index import BuildConfig, Index
from ncs.serve.http.settings import default_workers

HEALTH = "/health"
STARTED = "ncs: serving"


@ending("serve")
def main(argv: Sequence[str] | None = None) -> int:
    """Print what every phase came to; --json also writes it."""
    parser = argparse.ArgumentParser(prog="benchmark serve", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--from", dest="big", type=Path)
    parser.add_argument("--functions", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=default_workers())
    parser.add_argument("--note", default="", help="what else there is to know of this run")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if args.big and not args.index.is_dir():
        draw(args.big, args.index, args.functions)
    load = Load(args.clients, args.think, args.seconds)
    report = measure(args.index, read_texts(args.queries), load, workers=args.workers)
    report["note"] = args.note
    sys.stdout.write(table(report) + "\n")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(any(phase["errors"] for phase in report["phases"].values()))


def draw(big: Path, folder: Path, functions: int) -> None:
    """An index of functions drawn from another one, seeded, in their order; copies of copies are kept apart."""
    with Index.load(big) as index:
        rows = np.flatnonzero(index.functions())
        chosen = np.sort(np.random.default_rng(0).choice(rows, min(functions, len(rows)), replace=False)).tolist()
        pieces = (index.store.documents(chosen[start : start + 1000]) for start in range(0, len(chosen), 1000))
        documents = (document for piece in pieces for document in piece)
        Index.of(documents, folder, config=BuildConfig(deduplicate=False)).close()


def measure(index: Path, texts: Sequence[str], load: Load, *, workers: int) -> dict[str, Any]:
    """Every phase, on a server of its own."""
    targets = ["/api/search?" + urlencode({"query": text}) for text in texts]
    short = Load(load.clients, load.think, min(15.0, load.seconds), load.seed)
    phases: dict[str, Any] = {}
    with running(index, workers) as (url, pid), Index.load(index) as opened:
        documents = len(opened)
        _asked(url, targets[: 10 * load.clients], Load(load.clients, 0.2, min(5.0, load.seconds), 1))  # files are read
        phases["nothing, before"] = _asked(url, [HEALTH], short).summary()
        began, spent = os.getloadavg()[0], _cpu(pid)
        with _beside(url, load.seconds) as beside:
            phases["search"] = _asked(url, targets, load).summary()
        phases["search"] |= {"server_cpu_seconds": round(_cpu(pid) - spent, 1), "load": [began, os.getloadavg()[0]]}
        phases["nothing, meanwhile"] = beside[0].summary()
        phases["nothing, after"] = _asked(url, [HEALTH], short).summary()
        full = Load(load.clients, 0.0, min(15.0, load.seconds), 2)
        phases["search, nobody thinks"] = _asked(url, targets, full).summary()
    return {
        "commit": commit(), "machine": machine(), "documents": documents, "questions": len(texts),
        "clients": load.clients, "think_seconds": load.think, "workers": workers,
        "phases": phases,
    }  # fmt: skip


@contextmanager
def running(index: Path, workers: int) -> Iterator[tuple[str, int]]:
    """A server on a free port: its address and process id."""
    command = [sys.executable, "-m", "ncs.cli", "serve", "-i", str(index), "--port", "0", "-q"]
    command += ["--workers", str(workers)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next((line for line in process.stderr if line.startswith(STARTED)), "")
            if not line:
                raise NcsError("ncs serve did not start; try it by hand")
            url = line.rpartition(" at ")[2].strip()
            _wait(url)
            yield url, process.pid
        finally:
            process.terminate()


def _wait(url: str) -> None:
    for _ in range(300):
        if not ask(url, [HEALTH], Load(1, 0.01, 0.1)).errors:
            return
        time.sleep(0.1)
    raise NcsError("ncs serve does not answer; try it by hand")


def _asked(url: str, targets: Sequence[str], load: Load) -> Seen:
    """The load from a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(ask, (url, targets, load))


@contextmanager
def _beside(url: str, seconds: float) -> Iterator[list[Seen]]:
    """One client that asks for nothing, ten times a second, until the others are done."""
    seen: list[Seen] = []
    with get_context("spawn").Pool(1) as pool:
        waiting = pool.apply_async(ask, (url, [HEALTH], Load(1, 0.1, seconds, 3)))
        yield seen
        seen.append(waiting.get())


def _cpu(pid: int) -> float:
    """CPU seconds of a process and its children so far; 0 where the system does not tell (not Linux)."""
    total, ticks = 0.0, os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended
            continue
        if int(stat.parent.name) == pid or int(fields[1]) == pid:
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def table(report: dict[str, Any]) -> str:
    """A row a phase."""
    rows = []
    for name, phase in report["phases"].items():
        ms = phase.get("ms", {})
        figures = [f"{ms[key]:.1f}" if key in ms else "-" for key in ("p50", "p95", "p99", "max")]
        errors = str(sum(phase["errors"].values()))
        rows.append([name, str(phase["requests"]), f"{phase['requests_per_second']:.1f}", errors, *figures])
    head = (
        f"{report['documents']:,} documents, {report['clients']} clients, {report['think_seconds']:g} s of thinking,"
        f" {report['workers']} searching processes,"
        f" load {' to '.join(f'{load:.1f}' for load in report['phases']['search']['load'])}"
    )
    return f"{head}\n\n{aligned(['phase', 'requests', 'a second', 'errors', 'p50 ms', 'p95', 'p99', 'max'], rows)}"


if __name__ == "__main__":
    sys.exit(main())
