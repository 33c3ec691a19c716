"""Many clients against `ncs serve`: milliseconds per answer and errors, beside an endpoint that does nothing.

Server and clients run on this machine, the clients in processes of their own. Each client sends requests over its own
connection, reads the answer, thinks for --think seconds on average (exponential) and asks again. First /health is
requested the same way, and by one more client beside the searches, which shows whether they starve it. Last the same
clients without thinking: the maximal throughput. Exits with 1 where a request failed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlencode

import httpx

from evaluation.benchmarks.common import Report, percentiles, read_queries, serving
from evaluation.reports import markdown_table
from ncs.index import Index

HEALTH = "/health"
PLACES = (50, 95, 99, 100)


@dataclass(frozen=True, slots=True)
class Load:
    """A closed loop of clients with pauses of `think` seconds on average, for some seconds."""

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

    def summary(self) -> Report:
        """Requests, their rate, errors and percentiles."""
        return {
            "requests": len(self.milliseconds),
            "requests_per_second": round(len(self.milliseconds) / max(self.seconds, 1e-9), 1),
            "errors": dict(self.errors),
            "ms": percentiles(self.milliseconds, PLACES) if self.milliseconds else {},
        }


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="a file with one per line, or a QUESTIONS.json")
    parser.add_argument("--clients", type=int, default=64, help="(default %(default)s)")
    parser.add_argument("--think", type=float, default=1.0, help="seconds (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the searches (default %(default)s)")
    parser.add_argument("--workers", type=int, help="searching processes (default: as ncs serve)")


def run(options: argparse.Namespace) -> Report:
    """The figures of every phase, and the number of errors of all."""
    texts = read_queries(options.queries)
    searches = ["/api/search?" + urlencode({"query": text}) for text in texts]
    load = Load(options.clients, options.think, options.seconds)
    short, full = replace(load, seconds=min(15.0, load.seconds)), replace(load, think=0.0, seed=2)
    with Index.load(options.index) as index:
        documents = len(index)
    phases: Report = {}
    workers = [] if options.workers is None else ["--workers", str(options.workers)]
    with serving("serve", "-i", str(options.index), "-q", *workers) as (_, url), get_context("spawn").Pool(2) as pool:
        pool.apply(ask, (url, searches, replace(short, think=0.2, seconds=min(5.0, load.seconds))))  # files are read
        phases["health, before"] = pool.apply(ask, (url, [HEALTH], short)).summary()
        beside = pool.apply_async(ask, (url, [HEALTH], Load(1, 0.1, load.seconds, 1)))
        phases["search"] = pool.apply(ask, (url, searches, load)).summary()
        phases["health, meanwhile"] = beside.get().summary()
        phases["search, no thinking"] = pool.apply(ask, (url, searches, replace(full, seconds=short.seconds))).summary()
    errors = sum(sum(phase["errors"].values()) for phase in phases.values())
    figures = {"documents": documents, "queries": len(texts), "clients": load.clients, "think": load.think}
    return {**figures, "phases": phases, "errors": errors}


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


def table(report: Report) -> str:
    rows = []
    for name, phase in report["phases"].items():
        times = [f"{phase['ms'][f'p{place:g}']:.1f}" if phase["ms"] else "-" for place in PLACES]
        errors = str(sum(phase["errors"].values()))
        rows.append([name, str(phase["requests"]), f"{phase['requests_per_second']:.1f}", errors, *times])
    head = f"{report['documents']:,} documents, {report['clients']} clients, {report['think']:g} s of thinking"
    columns = ["phase", "requests", "per second", "errors", "p50 ms", "p95", "p99", "max"]
    return f"{head}\n\n{markdown_table(columns, rows)}"
