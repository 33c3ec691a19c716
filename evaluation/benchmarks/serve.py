"""64 clients against `ncs serve`: milliseconds per answer and errors, beside an endpoint that does nothing.

    bin/benchmark serve INDEX --queries FILE [--clients 64] [--think 1] [--seconds 60] [--workers N] [--json FILE]

Server and clients run on this machine, the clients in a process of their own. Each asks over its own connection, reads
the answer, thinks for --think seconds on average (exponential) and asks again. Before and after the searches /health is
asked the same way, and by one more client meanwhile, which shows whether searches starve it. Last the same clients
without thinking: the maximal throughput.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from evaluation.benchmarks.common import about, percentiles, read_queries, write_json
from evaluation.reports import markdown_table
from ncs.errors import NcsError
from ncs.exit_status import main_program
from ncs.index import Index

HEALTH = "/health"
PLACES = (50, 95, 99, 100)


@dataclass(frozen=True, slots=True)
class Load:
    """A closed loop of clients, who think between an answer and the next request, for some seconds."""

    clients: int
    think: float
    seconds: float
    seed: int = 0


@dataclass(slots=True)
class Answers:
    """Milliseconds of every answered request, and errors: kind -> count."""

    milliseconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def summary(self) -> dict[str, Any]:
        """Requests, their rate, errors and percentiles."""
        return {
            "requests": len(self.milliseconds),
            "requests_per_second": round(len(self.milliseconds) / max(self.seconds, 1e-9), 1),
            "errors": dict(self.errors),
            "ms": percentiles(self.milliseconds, PLACES) if self.milliseconds else {},
        }


@main_program("serve")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row per phase; --json also writes them; 1 where a request failed."""
    parser = argparse.ArgumentParser(prog="benchmark serve", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, help="searching processes (default: as ncs serve)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    load = Load(args.clients, args.think, args.seconds)
    report = {**about(), **measure(args.index, read_queries(args.queries), load, args.workers)}
    sys.stdout.write(table(report) + "\n")
    write_json(args.json, report)
    return int(any(phase["errors"] for phase in report["phases"].values()))


def measure(index: Path, texts: Sequence[str], load: Load, workers: int | None) -> dict[str, Any]:
    """Every phase, on a server of its own."""
    searches = ["/api/search?" + urlencode({"query": text}) for text in texts]
    short = Load(load.clients, load.think, min(15.0, load.seconds))
    with Index.load(index) as index_opened:
        documents = len(index_opened)
    phases: dict[str, Any] = {}
    with running(index, workers) as url, get_context("spawn").Pool(2) as pool:
        pool.apply(ask, (url, searches, Load(load.clients, 0.2, min(5.0, load.seconds))))  # files are read
        phases["health, before"] = pool.apply(ask, (url, [HEALTH], short)).summary()
        beside = pool.apply_async(ask, (url, [HEALTH], Load(1, 0.1, load.seconds, 1)))
        phases["search"] = pool.apply(ask, (url, searches, load)).summary()
        phases["health, meanwhile"] = beside.get().summary()
        phases["health, after"] = pool.apply(ask, (url, [HEALTH], short)).summary()
        full = Load(load.clients, 0.0, min(15.0, load.seconds), 2)
        phases["search, no thinking"] = pool.apply(ask, (url, searches, full)).summary()
    return {
        "documents": documents,
        "queries": len(texts),
        "clients": load.clients,
        "think": load.think,
        "phases": phases,
    }


@contextmanager
def running(index: Path, workers: int | None) -> Iterator[str]:
    """The address of a server on a free port."""
    command = [sys.executable, "-m", "ncs.cli", "serve", "-i", str(index), "--port", "0", "-q"]
    command += [] if workers is None else ["--workers", str(workers)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next((line[line.index("http://") :].split()[0] for line in process.stderr if "http://" in line), "")
            if not url:
                raise NcsError("ncs serve did not start; run it by itself to see why")
            _wait(url)
            yield url
        finally:
            process.terminate()


def _wait(url: str) -> None:
    for _ in range(300):
        try:
            httpx.get(url + HEALTH).raise_for_status()
        except httpx.HTTPError:  # noqa: PERF203
            time.sleep(0.1)
        else:
            return
    raise NcsError("ncs serve does not answer; run it by itself to see why")


def ask(url: str, targets: Sequence[str], load: Load) -> Answers:
    """Put the load on a server: every client goes through the targets from a place of its own."""
    return asyncio.run(_ask(url, targets, load))


async def _ask(url: str, targets: Sequence[str], load: Load) -> Answers:
    answers, start = Answers(), time.perf_counter()
    clients = (_client(url, targets, load, number, start + load.seconds, answers) for number in range(load.clients))
    await asyncio.gather(*clients)
    answers.seconds = time.perf_counter() - start
    return answers


async def _client(url: str, targets: Sequence[str], load: Load, number: int, end: float, answers: Answers) -> None:
    rng = random.Random(f"{load.seed}/{number}")  # noqa: S311
    at = number * len(targets) // load.clients
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, verify=False) as client:  # noqa: S501
        while True:
            pause = rng.expovariate(1 / load.think) if load.think else 0.0
            if time.perf_counter() + pause >= end:
                return
            await asyncio.sleep(pause)
            begin = time.perf_counter()
            try:
                response = await client.get(targets[at % len(targets)])
            except httpx.HTTPError as error:
                answers.errors[type(error).__name__] += 1
            else:
                answers.milliseconds.append(1000 * (time.perf_counter() - begin))
                if response.status_code != 200:
                    answers.errors[str(response.status_code)] += 1
            at += 1


def table(report: dict[str, Any]) -> str:
    """A row per phase."""
    rows = []
    for name, phase in report["phases"].items():
        times = [f"{phase['ms'][f'p{place:g}']:.1f}" if phase["ms"] else "-" for place in PLACES]
        errors = str(sum(phase["errors"].values()))
        rows.append([name, str(phase["requests"]), f"{phase['requests_per_second']:.1f}", errors, *times])
    head = f"{report['documents']:,} documents, {report['clients']} clients, {report['think']:g} s of thinking"
    columns = ["phase", "requests", "per second", "errors", "p50 ms", "p95", "p99", "max"]
    return f"{head}, load {report['load']:.1f}\n\n{markdown_table(columns, rows)}"


if __name__ == "__main__":
    sys.exit(main())
