"""Many clients against `ncs serve` for a long time, with trouble: errors, latencies, memory of all its processes.

Meanwhile the index is updated, search processes are killed at random, and slow clients send heads and bodies in drops.
A request that a killed process was answering fails with 503 "killed", one per kill at most, and its client asks again;
anything else but a hit list is an error, and so is memory that grows. Exits with 1 where there was one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode, urlsplit

import httpx
import psutil

from evaluation.benchmarks.common import NCS, Report, percentiles, run_command
from evaluation.reports import markdown_table
from ncs.errors import NcsError
from ncs.index import Index

PLACES = (50, 95, 99, 100)
THIRDS = ("start", "middle", "end")
QUERIES = 500
UPDATE_SECONDS, KILL_SECONDS, SAMPLE_SECONDS = 5.0, 10.0, 1.0
"""Between two updates, kills, looks at the memory."""
SLOW_CLIENTS = 40
MAX_GROWTH = 1.15
"""The memory of the last third may be so many times that of the one before."""
STOP_SECONDS = 15


@dataclass(slots=True)
class Trouble:
    """What was done to the server, and the memory of its processes, and of the first: seconds, MB (PSS on Linux)."""

    updates: int = 0
    kills: int = 0
    slow_requests: int = 0
    memory: list[tuple[float, float]] = field(default_factory=list)
    server_memory: list[tuple[float, float]] = field(default_factory=list)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, help="a folder of code, of which a copy is indexed and changed")
    parser.add_argument("--minutes", type=float, default=60.0, help="(default %(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="(default %(default)s)")
    parser.add_argument("--think", type=float, default=1.0, help="seconds (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """The figures."""
    seconds = 60 * options.minutes
    with TemporaryDirectory(prefix="ncs-soak-") as room, ExitStack() as stack:
        tree = Path(shutil.copytree(options.source, Path(room, "tree"), ignore=shutil.ignore_patterns(".*")))
        folder = tree / ".ncs"
        run_command(*NCS, "build", tree, "-i", folder, "-q")
        targets, documents = _targets(folder, options.seed)
        server = stack.enter_context(subprocess.Popen([*NCS, "serve", "-i", str(folder), "--port", "0", "-q"],
                                                      stderr=subprocess.PIPE, text=True))  # fmt: skip
        stack.callback(server.kill)
        url = _address(server)
        threading.Thread(target=lambda: server.stderr and server.stderr.read(), daemon=True).start()
        trouble, stop, rng = Trouble(), threading.Event(), random.Random(options.seed)  # noqa: S311
        process = psutil.Process(server.pid)
        work: list[Callable[[], None]] = [
            partial(_repeat, stop, UPDATE_SECONDS, partial(_update, tree, folder, trouble)),
            partial(_repeat, stop, KILL_SECONDS, partial(_kill, process, rng, trouble)),
            partial(_repeat, stop, SAMPLE_SECONDS, partial(_sample, process, time.monotonic(), trouble)),
            *[partial(_dribble, stop, url, number, trouble) for number in range(SLOW_CLIENTS)],
        ]
        threads = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in threads:
            thread.start()
        with get_context("spawn").Pool(1) as pool:
            load = (url, targets, options.clients, options.think, seconds, options.seed)
            answers, errors, killed = pool.apply(_load, load)
        stop.set()
        for thread in threads:
            thread.join()
        left, stop_seconds = _stop(server, process)
        snapshot = Index.load(folder).description.number
    memory = _by_third(trouble.memory, seconds)
    errors["503 killed, without a kill"] += max(0, killed - trouble.kills)
    errors["memory grows"] += memory["end"] > MAX_GROWTH * memory["middle"]
    errors["not stopped in time"] += stop_seconds > STOP_SECONDS
    errors["processes left"] += left
    times = [milliseconds for _, milliseconds in answers]
    return {
        "documents": documents, "minutes": options.minutes, "clients": options.clients, "think": options.think,
        "requests": len(times), "requests_per_second": round(len(times) / seconds, 1), "ms": percentiles(times, PLACES),
        "ms_by_third": {third: percentiles(_third(answers, seconds, number), PLACES)
                        for number, third in enumerate(THIRDS)},
        "memory_mb": memory, "server_memory_mb": _by_third(trouble.server_memory, seconds),
        "updates": trouble.updates, "snapshot": snapshot, "kills": trouble.kills,
        "killed_requests": killed, "slow_requests": trouble.slow_requests, "stop_seconds": round(stop_seconds, 1),
        "error_kinds": {kind: number for kind, number in errors.items() if number}, "errors": sum(errors.values()),
    }  # fmt: skip


def _targets(folder: Path, seed: int) -> tuple[list[str], int]:
    """Searches for words of the index, and the number of its documents."""
    rng = random.Random(seed)  # noqa: S311
    with Index.load(folder) as index:
        words = list(index.words().vocabulary)
        queries = [" ".join(rng.choices(words, k=3)) for _ in range(QUERIES)]
        return ["/api/search?" + urlencode({"query": query}) for query in queries], len(index)


def _address(server: subprocess.Popen[str]) -> str:
    for line in server.stderr or ():
        if "http://" in line:
            return line[line.index("http://") :].split()[0]
    raise NcsError("ncs serve did not start; run it by itself to see why")


def _repeat(stop: threading.Event, seconds: float, work: Callable[[], None]) -> None:
    while not stop.wait(seconds):
        work()


def _update(tree: Path, folder: Path, trouble: Trouble) -> None:
    """Change some files, remove one, and update the index."""
    number = trouble.updates
    for each in range(3):
        (tree / f"soak_{(number + each) % 20}.py").write_text(f"def soak_{number}(value):\n    return value + {each}\n")
    (tree / f"soak_{(number + 10) % 20}.py").unlink(missing_ok=True)
    run_command(*NCS, "update", "-i", folder, "-q")
    trouble.updates += 1


def _kill(process: psutil.Process, rng: random.Random, trouble: Trouble) -> None:
    searchers = [child for child in process.children() if "spawn_main" in " ".join(child.cmdline())]
    with suppress(psutil.Error, IndexError):
        rng.choice(searchers).kill()
        trouble.kills += 1


def _sample(process: psutil.Process, start: float, trouble: Trouble) -> None:
    sizes = []
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error):
            full = each.memory_full_info()
            sizes.append(getattr(full, "pss", full.rss) / 1e6)
    trouble.memory.append((time.monotonic() - start, sum(sizes)))
    trouble.server_memory.append((time.monotonic() - start, sizes[0]))


def _dribble(stop: threading.Event, url: str, number: int, trouble: Trouble) -> None:
    """Send heads, or bodies, a byte at a time, until the server has enough."""
    address = urlsplit(url)
    head = f"POST /api/search HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n".encode()
    at_once = head + b"Content-Length: 10000\r\n\r\n" if number % 2 else b""
    while not stop.is_set():
        with suppress(OSError), socket.create_connection((str(address.hostname), address.port or 80), 10) as client:
            trouble.slow_requests += 1
            client.sendall(at_once)
            client.settimeout(0.5)
            for byte in head * 1_000:
                client.sendall(bytes([byte]))
                with suppress(TimeoutError):
                    if client.recv(1_000) or stop.is_set():
                        break
        stop.wait(0.1)


def _load(
    url: str, targets: Sequence[str], clients: int, think: float, seconds: float, seed: int
) -> tuple[list[tuple[float, float]], Counter[str], int]:
    """(seconds, milliseconds) of every answer; errors: kind -> number; requests whose process was killed."""
    answers: list[tuple[float, float]] = []
    errors, start, killed = Counter[str](), time.perf_counter(), 0

    async def ask(number: int) -> None:
        nonlocal killed
        rng = random.Random(f"{seed}/{number}")  # noqa: S311
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, verify=False) as client:  # noqa: S501
            while (now := time.perf_counter() - start) < seconds:
                try:
                    response = await client.get(rng.choice(targets))
                    answer = response.json()
                except (httpx.HTTPError, ValueError) as error:
                    errors[type(error).__name__] += 1
                    continue
                answers.append((now, 1000 * (time.perf_counter() - start - now)))
                code = answer.get("error", {}).get("code")
                if code == "killed":
                    killed += 1
                    continue
                if response.status_code != 200 or "hits" not in answer:
                    errors[f"{response.status_code} {code}"] += 1
                await asyncio.sleep(rng.expovariate(1 / think))

    async def all_clients() -> None:
        await asyncio.gather(*map(ask, range(clients)))

    asyncio.run(all_clients())
    return answers, errors, killed


def _stop(server: subprocess.Popen[str], process: psutil.Process) -> tuple[int, float]:
    """Processes left after SIGTERM, and the seconds it took."""
    children, began = process.children(recursive=True), time.monotonic()
    server.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(60)
    seconds = time.monotonic() - began
    return len(psutil.wait_procs(children, timeout=5)[1]), seconds


def _third(values: Sequence[tuple[float, float]], seconds: float, number: int) -> list[float]:
    """The values of a third of the time, 0 to 2."""
    return [value for at, value in values if number <= 3 * at / seconds < number + 1]


def _by_third(values: Sequence[tuple[float, float]], seconds: float) -> dict[str, float]:
    """The mean of each third of the time."""
    thirds = (_third(values, seconds, number) for number in range(len(THIRDS)))
    return {name: round(sum(third) / max(1, len(third)), 1) for name, third in zip(THIRDS, thirds, strict=True)}


def table(report: Report) -> str:
    rows = []
    for third in THIRDS:
        times = [f"{value:.1f}" for value in report["ms_by_third"][third].values()]
        rows.append([third, f"{report['memory_mb'][third]:.0f}", *times])
    head = (
        f"{report['documents']:,} documents, {report['clients']} clients for {report['minutes']:g} minutes: "
        f"{report['requests']:,} requests, {report['errors']} errors {report['error_kinds'] or ''}\n"
        f"{report['updates']} updates; {report['kills']} kills, which ended {report['killed_requests']} requests; "
        f"{report['slow_requests']} slow requests; stopped in {report['stop_seconds']} s"
    )
    return f"{head}\n\n{markdown_table(['third', 'memory MB', 'p50 ms', 'p95', 'p99', 'max'], rows)}"
