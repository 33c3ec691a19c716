"""Many clients against `ncs serve` and `ncs mcp --http` for a long time, with trouble: errors, latencies, memory.

Both serve one index, which is updated meanwhile; processes that search and parse are killed (-9) at random, and slow
clients send heads and bodies in drops. A kill may end one request, which is answered as such (503 "killed", MCP "its
process died"), and its client goes on. Everything else but hits is an error, as are a memory that grows from 10 % of
the time to its end, a server that does not stop and a process that it leaves. Exits with 1 where there was one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import socket
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
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import psutil

import ncs
from evaluation.benchmarks.common import NCS, Report, percentiles, run_command, serving
from evaluation.reports import markdown_table
from ncs.errors import BadInput
from ncs.index import Index

PLACES = (50, 95, 99, 100)
SIMILAR = 0.1
"""The share of requests with code, which is parsed."""
UPDATE_SECONDS, KILL_SECONDS, SAMPLE_SECONDS = 5.0, 10.0, 2.0
"""Between two updates, kills, looks at the memory."""
SLOW_CLIENTS = 40
MAX_GROWTH, NOISE_MB = 1.15, 30
"""The memory at the end may be so many times that at 10 % of the time, and so much more."""
STOP_SECONDS = 15
TIME_LIMIT = 60
"""Seconds of a request to `ncs serve`: what is measured is whether it answers; ms says how fast."""
CODE = "def soak(path):\n    with open(path) as file:\n        return file.read()\n"
HEADERS = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-06-18"}


class Answer(NamedTuple):
    """second: of the run. outcome: "" for hits, KILLED, else what went wrong."""

    second: float
    milliseconds: float
    outcome: str


KILLED = "killed"


@dataclass(slots=True)
class Trouble:
    """What was done to the servers; memory: name -> seconds and MB (PSS on Linux): its own, and the mean of the
    processes that it started."""

    updates: int = 0
    kills: int = 0
    slow_requests: int = 0
    memory: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


def add_options(parser: argparse.ArgumentParser) -> None:
    source = Path(ncs.__file__).parent
    parser.add_argument("source", type=Path, nargs="?", default=source, help="code, of which a copy is indexed")
    parser.add_argument("--minutes", type=float, default=60.0, help="(default %(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="every fourth is MCP's (default %(default)s)")
    parser.add_argument("--think", type=float, default=1.0, help="seconds (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """The figures."""
    seconds = 60 * options.minutes
    with TemporaryDirectory(prefix="ncs-soak-") as room, ExitStack() as stack:
        tree = Path(shutil.copytree(options.source, Path(room, "tree"), ignore=shutil.ignore_patterns(".*")))
        folder = tree / ".ncs"
        run_command(*NCS, "build", tree, "-i", folder, "-q")
        with Index.load(folder) as index:
            words, documents = list(index.words().vocabulary), len(index)
        limit = ("--time-limit", str(TIME_LIMIT), "-q")
        servers = {
            "serve": stack.enter_context(serving("serve", "-i", str(folder), *limit)),
            "mcp": stack.enter_context(serving("mcp", "--http", "-i", str(folder))),
        }
        processes = {name: psutil.Process(pid) for name, (pid, _) in servers.items()}
        urls = {name: url.removesuffix("/mcp") for name, (_, url) in servers.items()}
        trouble, stop, rng = Trouble(), threading.Event(), random.Random(options.seed)  # noqa: S311
        work: list[Callable[[], None]] = [
            partial(_repeat, stop, UPDATE_SECONDS, partial(_update, tree, folder, trouble)),
            partial(_repeat, stop, KILL_SECONDS, partial(_kill, list(processes.values()), rng, trouble)),
            partial(_repeat, stop, SAMPLE_SECONDS, partial(_sample, processes, time.monotonic(), trouble)),
            *[partial(_dribble, stop, urls[_server_of(number)], number, trouble) for number in range(SLOW_CLIENTS)],
        ]
        threads = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in threads:
            thread.start()
        with get_context("spawn").Pool(1) as pool:
            load = (urls, words, options.clients, options.think, seconds, options.seed)
            answers = pool.apply(_load, load)
        stop.set()
        for thread in threads:
            thread.join()
        stops = {name: _stop(process) for name, process in processes.items()}
        with Index.load(folder, verify=True) as index:
            snapshot = index.description.number
    errors = Counter(
        f"{name}: {each.outcome}" for name in answers for each in answers[name] if each.outcome not in ("", KILLED)
    )
    killed = sum(each.outcome == KILLED for every in answers.values() for each in every)
    memory = {name: {"10 %": _mean(samples, seconds, 0.05, 0.15), "100 %": _mean(samples, seconds, 0.9, 1.1)}
              for name, samples in trouble.memory.items()}  # fmt: skip
    errors["killed without a kill"] = max(0, killed - trouble.kills)
    errors["memory grows"] = sum(each["100 %"] > MAX_GROWTH * each["10 %"] + NOISE_MB for each in memory.values())
    errors["not stopped in time"] = sum(took > STOP_SECONDS for took, _ in stops.values())
    errors["processes left"] = sum(left for _, left in stops.values())
    return {
        "documents": documents, "minutes": options.minutes, "clients": options.clients, "think": options.think,
        "requests": {name: len(every) for name, every in answers.items()},
        "ms": {name: percentiles([each.milliseconds for each in every], PLACES) for name, every in answers.items()},
        "ms_last_tenth": {
            name: percentiles([each.milliseconds for each in every if each.second > 0.9 * seconds], PLACES)
            for name, every in answers.items()
        },
        "memory_mb": memory, "updates": trouble.updates, "snapshot": snapshot, "kills": trouble.kills,
        "killed_requests": killed, "slow_requests": trouble.slow_requests,
        "stop_seconds": {name: round(took, 1) for name, (took, _) in stops.items()},
        "error_kinds": {kind: number for kind, number in errors.items() if number}, "errors": sum(errors.values()),
    }  # fmt: skip


def _server_of(number: int) -> str:
    """The server that a client asks."""
    return "serve" if number % 4 else "mcp"


def _stop(server: psutil.Process) -> tuple[float, int]:
    """The seconds from SIGTERM to its end, and the processes left."""
    children, began = server.children(recursive=True), time.monotonic()
    server.terminate()
    with suppress(psutil.TimeoutExpired):
        server.wait(60)
    return time.monotonic() - began, len(psutil.wait_procs(children, timeout=5)[1])


def _repeat(stop: threading.Event, seconds: float, work: Callable[[], None]) -> None:
    while not stop.wait(seconds):
        work()


def _update(tree: Path, folder: Path, trouble: Trouble) -> None:
    """Change some files, remove one, and update the index, unless `ncs mcp` is doing it."""
    number = trouble.updates
    for each in range(3):
        (tree / f"soak_{(number + each) % 20}.py").write_text(f"def soak_{number}(value):\n    return value + {each}\n")
    (tree / f"soak_{(number + 10) % 20}.py").unlink(missing_ok=True)
    try:
        run_command(*NCS, "update", "-i", folder, "-q")
    except BadInput as error:
        if "is writing" not in str(error):
            raise
    trouble.updates += 1


def _kill(servers: Sequence[psutil.Process], rng: random.Random, trouble: Trouble) -> None:
    """Kill one of the processes that search or parse, once the one killed last was replaced and had time to start."""
    children = [child for server in servers for child in server.children() if "spawn_main" in " ".join(_command(child))]
    with suppress(psutil.Error, IndexError):
        if min(time.time() - child.create_time() for child in children) > KILL_SECONDS:
            rng.choice(children).kill()
            trouble.kills += 1


def _sample(servers: dict[str, psutil.Process], start: float, trouble: Trouble) -> None:
    now = time.monotonic() - start
    for name, server in servers.items():
        children = [child for child in server.children() if "spawn_main" in " ".join(_command(child))]
        for kind, processes in ((name, [server]), (f"{name}, a process", children)):
            if sizes := [size for size in map(_megabytes, processes) if size]:
                trouble.memory.setdefault(kind, []).append((now, sum(sizes) / len(sizes)))


def _command(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return list(process.cmdline())
    return []


def _megabytes(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        full = process.memory_full_info()
        return float(getattr(full, "pss", full.rss)) / 1e6
    return 0.0


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
    urls: dict[str, str], words: Sequence[str], clients: int, think: float, seconds: float, seed: int
) -> dict[str, list[Answer]]:
    """The answers of each server."""
    answers: dict[str, list[Answer]] = {name: [] for name in urls}
    start = time.perf_counter()

    async def ask(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")  # noqa: S311
        name = _server_of(number)
        async with httpx.AsyncClient(
            base_url=urls[name], timeout=2 * TIME_LIMIT, headers=HEADERS, trust_env=False, verify=False  # noqa: S501
        ) as client:  # fmt: skip
            while (now := time.perf_counter() - start) < seconds:
                path, body = _question(name, rng, words)
                try:
                    response = await client.post(path, json=body)
                    outcome = _outcome(response)
                except (httpx.HTTPError, ValueError) as error:
                    outcome = type(error).__name__
                answers[name].append(Answer(now, 1000 * (time.perf_counter() - start - now), outcome))
                await asyncio.sleep(rng.expovariate(1 / think))

    async def all_clients() -> None:
        await asyncio.gather(*map(ask, range(clients)))

    asyncio.run(all_clients())
    return answers


def _question(name: str, rng: random.Random, words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """A request: path and body."""
    query, similar = " ".join(rng.choices(words, k=3)), rng.random() < SIMILAR
    if name == "serve":
        body = {"source": CODE, "source_language": "python"} if similar else {"query": query}
        return "/api/similar" if similar else "/api/search", body
    call = {"name": "find_similar", "arguments": {"code": CODE, "code_language": "python"}}
    params = call if similar else {"name": "search_code", "arguments": {"query": query}}
    return "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def _outcome(response: httpx.Response) -> str:
    """As of Answer."""
    answer = response.json()
    content = answer.get("result", answer)
    if response.status_code == 200 and "hits" in (content.get("structuredContent") or content):
        return ""
    if content.get("error", {}).get("code") == "killed" or "its process died" in str(content.get("content")):
        return KILLED
    return f"{response.status_code} {content.get('error') or content.get('content')}"[:200]


def _mean(samples: Sequence[tuple[float, float]], seconds: float, first: float, last: float) -> float:
    """The mean from a share of the time to another."""
    values = [value for second, value in samples if first <= second / seconds < last]
    return round(sum(values) / max(1, len(values)), 1)


def table(report: Report) -> str:
    rows = []
    for name, times in report["ms"].items():
        rows.append([name, f"{report['requests'][name]:,}", *(f"{value:.1f}" for value in times.values())])
    memory = [[name, *(f"{value:.0f}" for value in parts.values())] for name, parts in report["memory_mb"].items()]
    head = (
        f"{report['documents']:,} documents, {report['clients']} clients for {report['minutes']:g} minutes: "
        f"{report['errors']} errors {report['error_kinds'] or ''}\n"
        f"{report['updates']} updates; {report['kills']} kills, which ended {report['killed_requests']} requests; "
        f"{report['slow_requests']} slow requests; stopped in {max(report['stop_seconds'].values())} s"
    )
    times_table = markdown_table(["server", "requests", "p50 ms", "p95", "p99", "max"], rows)
    return f"{head}\n\n{times_table}\n\n{markdown_table(['memory MB', 'at 10 %', 'at 100 %'], memory)}"
