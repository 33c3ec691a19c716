"""Reading repositories on a Dask cluster against the pool of one machine: CPU time, and what survives which loss.

    bin/benchmark cluster FOLDER... [--workers 2] [--rounds 3] [--json FILE]

Both read the same files in turn, into the same documents (compared by digest). CPU is that of all processes: for the
cluster client, scheduler, workers and their reading processes, all started before. Then a worker is killed in the
middle, and, where this is root on Linux, one of two network namespaces is cut off.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluation.machine import commit, machine
from ncs.exit_status import ending

SETTINGS = {
    "DASK_LOGGING__DISTRIBUTED": "critical",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "15s",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "30s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
"""How soon a silent worker is given up (Dask's own are 30 s and 5 minutes), and how rarely Dask watches itself."""
POOL = "pool"
NET = "10.77.0."


@ending("cluster")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the ratios and what each loss came to; --json also writes them."""
    parser = argparse.ArgumentParser(prog="benchmark cluster", description=__doc__.split("\n")[0])
    parser.add_argument("roots", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.read:
        print(json.dumps(_read(args.roots, args.read, args.workers)))  # noqa: T201
        return 0
    result: dict[str, Any] = {"commit": commit(), "machine": machine(), "workers": args.workers, "settings": SETTINGS}
    result["rounds"] = [_round(args.roots, args.workers) for _ in range(args.rounds)]
    first = result["rounds"][0]["pool"]
    result["documents"], result["source_bytes"] = first["documents"], first["source_bytes"]
    for name in ("cpu", "wall"):
        result[f"{name}_ratio"] = statistics.median(r["cluster"][name] / r["pool"][name] for r in result["rounds"])
    after = first["wall"] / 3
    result["killed"] = _with_loss(args.roots, args.workers, after, _killed)
    if os.geteuid() == 0 and sys.platform == "linux":
        result["cut_off"] = _with_loss(args.roots, args.workers, after, _cut_off)
    for name in ("killed", "cut_off"):
        if name in result:
            result[name]["same_documents"] = result[name].pop("digest") == first["digest"]
    _tell(result)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def _tell(result: dict[str, Any]) -> None:
    lines = [
        f"{result['documents']:,} documents of {result['source_bytes']:,} bytes, {result['workers']} workers",
        f"cluster to pool: {result['cpu_ratio']:.2f} times the CPU time, {result['wall_ratio']:.2f} times the clock's",
        f"same documents: {all(r['cluster']['digest'] == r['pool']['digest'] for r in result['rounds'])}",
    ]
    for name, words in (("killed", "a worker killed"), ("cut_off", "a worker's network cut")):
        if name in result:
            lost = result[name]
            lines.append(f"{words} after {lost['after']:.0f} s: {lost['wall']:.0f} s, same: {lost['same_documents']}")
    print("\n".join(lines))  # noqa: T201


def _read(roots: list[Path], how: str, workers: int) -> dict[str, Any]:
    """One reading in this process and its children, by the pool or at a scheduler's address."""
    from ncs.build.ingest import read
    from ncs.build.request import Recipe
    from ncs.config import BuildConfig
    from ncs.extract.readers import why_unread
    from ncs.scale.dask.build import read as read_on_cluster
    from ncs.sources import Skipped
    from ncs.storage.documents import open_store

    recipe, skipped = Recipe(tuple(roots), BuildConfig(), workers), Skipped(unwanted=why_unread)
    before, start = _own_cpu(), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        if how == POOL:
            found = read(recipe.files(skipped, None), Path(name), recipe.config, workers)
        else:
            found = read_on_cluster(recipe, skipped, Path(name), how)
        wall, cpu = time.perf_counter() - start, _own_cpu() - before
        digest = hashlib.sha256()
        with open_store(Path(name)) as store:
            for packed in store.packed(0, len(store)):
                digest.update(repr(packed).encode("utf-8", "backslashreplace"))
            digest.update(repr(store.copies(0, found.copies)).encode("utf-8", "backslashreplace"))
        for array in (found.words.ids, found.words.offsets, found.references.ids, found.references.offsets):
            digest.update(array.tobytes())
    about = {"documents": found.documents, "source_bytes": found.bytes, "notes": skipped.notes}
    return {"wall": wall, "cpu": cpu, "digest": digest.hexdigest(), **about}


def _own_cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _start_reading(roots: list[Path], how: str, workers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evaluation.bench_cluster", *map(str, roots), "--read", how]
    command += ["--workers", str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **SETTINGS})


def _ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"a reading ended with status {process.returncode}")
    found: dict[str, Any] = json.loads(out)
    return found


def _round(roots: list[Path], workers: int) -> dict[str, Any]:
    pool = _ended(_start_reading(roots, POOL, workers))
    with _cluster(workers) as (address, processes):
        before = _cpu_of(processes)
        cluster = _ended(_start_reading(roots, address, workers))
        cluster["client_cpu"] = cluster["cpu"]
        cluster["cpu"] += _cpu_of(processes) - before
    return {"pool": pool, "cluster": cluster}


def _cpu_of(processes: Sequence[subprocess.Popen[bytes]]) -> float:
    """Of these and all below them; ended children of theirs included."""
    import psutil

    total = 0.0
    for process in processes:
        top = psutil.Process(process.pid)
        for each in (top, *top.children(recursive=True)):
            total += sum(each.cpu_times()[:4])
    return total


@contextmanager
def _cluster(
    workers: int, host: str = "127.0.0.1", inside: Callable[[int], list[str]] = lambda number: []
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers that have come, each a process of its own. inside: what is put before their command."""
    from ncs.scale.dask.tasks import connected

    with tempfile.TemporaryDirectory() as room:
        told = Path(room, "scheduler.json")
        options = ["--host", host, "--port", "0", "--no-dashboard", "--scheduler-file", str(told)]
        processes = [_dask("distributed.cli.dask_scheduler", *options)]
        try:
            while not (told.exists() and told.read_text()):
                time.sleep(0.1)
            address = json.loads(told.read_text())["address"]
            for number in range(workers):
                options = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
                options += ["--local-directory", room]
                processes.append(_dask("distributed.cli.dask_worker", address, *options, before=inside(number)))
            with connected(address) as client:
                client.wait_for_workers(workers)
            yield address, processes
        finally:
            for process in processes:
                process.send_signal(signal.SIGKILL)
                process.wait()


def _dask(module: str, *arguments: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    command = [*before, sys.executable, "-W", "ignore", "-m", module, *arguments]
    return subprocess.Popen(
        command, env={**os.environ, **SETTINGS}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


Loss = Callable[[list[Path], int, float], dict[str, Any]]


def _with_loss(roots: list[Path], workers: int, after: float, how: Loss) -> dict[str, Any]:
    return {**how(roots, workers, after), "after": after}


def _killed(roots: list[Path], workers: int, after: float) -> dict[str, Any]:
    with _cluster(workers) as (address, processes):
        reading = _start_reading(roots, address, workers)
        time.sleep(after)
        processes[-1].kill()
        return _ended(reading)


def _cut_off(roots: list[Path], workers: int, after: float) -> dict[str, Any]:
    """Every worker in a network namespace of its own, all on one bridge; the last one's cable is pulled."""
    with _namespaces(workers) as names, _cluster(workers, f"{NET}1", lambda n: ["ip", "netns", "exec", names[n]]) as up:
        reading = _start_reading(roots, up[0], workers)
        time.sleep(after)
        _ip("link", "set", f"v{names[-1]}", "down")
        return _ended(reading)


@contextmanager
def _namespaces(number: int) -> Iterator[list[str]]:
    names = [f"ncs{at}" for at in range(number)]
    try:
        _ip("link", "add", "ncsbridge", "type", "bridge")
        _ip("addr", "add", f"{NET}1/24", "dev", "ncsbridge")
        _ip("link", "set", "ncsbridge", "up")
        for at, name in enumerate(names):
            _ip("netns", "add", name)
            _ip("link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"v{name}", "master", "ncsbridge", "up")
            _ip("-n", name, "addr", "add", f"{NET}{at + 2}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", "ncsbridge"], check=False, capture_output=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
