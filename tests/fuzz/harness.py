"""The harness of all fuzzers: it makes cases, checks each in a process with limits and saves those that fail.

A target is a module of this folder with the name that `bin/fuzz` takes:

    SECONDS = 20.0          wall-clock limit of one case; what runs longer is killed and is a finding
    MEMORY = 1 << 30        bytes that the process of a case (and each that it starts) may allocate
    CASES = 20              cases in bin/check, some 4 seconds of one core
    PROGRAM = "strace"      what must be installed, if anything

    def generate(random: Random) -> bytes
        One case. It depends on `random` only (no time, hash seed or order of a set).

    def check(case: bytes, room: Path) -> None
        Raise AssertionError with one line where something is wrong; every other exception is a finding as well.
        room: an empty folder for this case; its parent is this case's, too (for canaries beside the room), is $HOME,
        and is removed afterwards.

A process checks many cases, so a target may build what it needs once (functools.cache). It may start processes, but
must not leave them behind. Case `number` of a run is `generate(Random(f"{seed}:{number}"))`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from evaluation.machine import commit, machine
from ncs.workers import Workers

TARGETS = ("archive", "crash", "extract", "git", "index", "question", "server")
FINDINGS = Path(__file__).with_name("findings")
MOST_FINDINGS = 10
"""A run ends when it has so many."""


@dataclass
class Summary:
    """What a run came to. findings: file of a case -> what was wrong; slowest: number of a case."""

    target: str
    seed: int
    cases: int = 0
    minutes: float = 0
    slowest_seconds: float = 0
    slowest: int = 0
    peak_mib: int = 0
    findings: dict[str, str] = field(default_factory=dict)


def check_case(name: str, case: bytes, folder: Path) -> tuple[float, int]:
    """Check a case in this process; the seconds it took and the peak memory in MiB."""
    target = import_module(f"tests.fuzz.{name}")
    (folder / "room").mkdir(parents=True)
    os.environ["HOME"] = str(folder)
    began = time.perf_counter()
    target.check(case, folder / "room")
    seconds = time.perf_counter() - began
    if sys.platform == "win32":
        return seconds, 0
    import resource

    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return seconds, peak >> (10 if sys.platform == "linux" else 20)


def run(
    name: str, seed: int = 0, *, cases: int | None = None, minutes: float | None = None, jobs: int = 1,
    findings: Path = FINDINGS,
) -> Summary:  # fmt: skip
    """Check cases until there were so many, or for so long; findings are saved as files below `findings`/NAME."""
    target = import_module(f"tests.fuzz.{name}")
    summary, began, numbers = Summary(name, seed), time.monotonic(), count()
    running: dict[Future[tuple[float, int]], tuple[int, bytes]] = {}

    def more() -> bool:
        time_left = minutes is None or time.monotonic() - began < minutes * 60
        return len(summary.findings) < MOST_FINDINGS and time_left and (cases is None or summary.cases < cases)

    with TemporaryDirectory(prefix="ncs-fuzz-") as base, _workers(name, jobs) as workers:
        while running or more():
            while len(running) < jobs and more():
                number = next(numbers)
                summary.cases += 1
                case = target.generate(Random(f"{seed}:{number}"))
                future = workers.submit(check_case, name, case, Path(base, str(number)), seconds=target.SECONDS)
                running[future] = number, case
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number, case = running.pop(future)
                shutil.rmtree(Path(base, str(number)), ignore_errors=True)
                if error := future.exception():
                    path = _save(case, findings / name)
                    summary.findings[path.name] = _line(error)
                    print(f"case {number}: {_line(error)}; repeat: bin/fuzz {name} --case {path}", file=sys.stderr)
                else:
                    seconds, peak = future.result()
                    summary.peak_mib = max(summary.peak_mib, peak)
                    if seconds > summary.slowest_seconds:
                        summary.slowest_seconds, summary.slowest = round(seconds, 3), number
    summary.minutes = round((time.monotonic() - began) / 60, 2)
    return summary


def failure(name: str, case: bytes) -> str | None:
    """What is wrong with a case, in one line; None if nothing is."""
    target = import_module(f"tests.fuzz.{name}")
    with TemporaryDirectory(prefix="ncs-fuzz-") as base, _workers(name, 1) as workers:
        error = workers.submit(check_case, name, case, Path(base, "case"), seconds=target.SECONDS).exception()
    return _line(error) if error else None


def _workers(name: str, jobs: int) -> Workers:
    return Workers(jobs, memory=import_module(f"tests.fuzz.{name}").MEMORY, initialize=_prepare, arguments=(name,))


def _prepare(name: str) -> None:
    """Import the target, whose checks may start processes themselves, without this user's settings."""
    multiprocessing.current_process().daemon = False
    for variable in [each for each in os.environ if each.startswith(("NCS_", "XDG_", "GIT_"))]:
        del os.environ[variable]
    import_module(f"tests.fuzz.{name}")


def _save(case: bytes, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(case).hexdigest()[:12]
    path.write_bytes(case)
    return path


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:300]


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit status is 1 if there was a finding."""
    parser = argparse.ArgumentParser(prog="bin/fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    parser.add_argument("--cases", type=int, help="end after so many (default: no limit)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases (default: 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--case", type=Path, metavar="FILE", help="check this saved case only")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the summary to this file as well")
    options = parser.parse_args(arguments)
    if options.case:
        error = failure(options.target, options.case.read_bytes())
        print(error or "nothing wrong")
        return int(error is not None)
    summary = run(options.target, options.seed, cases=options.cases, minutes=options.minutes, jobs=options.jobs)
    values: dict[str, Any] = {**asdict(summary), "jobs": options.jobs, "commit": commit(), "machine": machine()}
    print(json.dumps(values))
    if options.out:
        options.out.write_text(json.dumps(values, indent=2) + "\n", "utf-8")
    return int(bool(summary.findings))
