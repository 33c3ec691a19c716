"""Helpers of the benchmarks: timing, processes of their own, queries, result files."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from corpora.ncs287 import read_questions
from evaluation.machine import commit, machine
from evaluation.reports import markdown_table
from ncs.errors import BadInput, NcsError
from ncs.extract import LANGUAGES, language_of
from ncs.extract.languages import is_installed
from ncs.sources import SourceFile, walk

T = TypeVar("T")
Report = dict[str, Any]
"""The figures of a benchmark, as its JSON has them."""
NCS = (sys.executable, "-m", "ncs.cli")


class Seconds(NamedTuple):
    """Wall-clock and CPU seconds (user and system); CPU says more on a busy machine."""

    wall: float
    cpu: float


def timed(work: Callable[[], object]) -> Seconds:
    """Time work; its CPU seconds are those of the processes that it starts and waits for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(round(wall, 3), round(cpu, 3))


def interleaved(rounds: Iterable[Mapping[str, Callable[[], object]]]) -> Report:
    """Median seconds of each part, and its ratio to the first one, the floor; all parts in turn, round by round."""
    times = [{name: timed(work) for name, work in parts.items()} for parts in rounds]
    report: Report = {name: {} for name in times[0]}
    for kind in Seconds._fields:
        floor = [max(getattr(next(iter(each.values())), kind), 1e-3) for each in times]
        for name, figures in report.items():
            seconds = [getattr(each[name], kind) for each in times]
            ratio = statistics.median(one / other for one, other in zip(seconds, floor, strict=True))
            figures |= {kind: round(statistics.median(seconds), 3), f"{kind} / floor": round(ratio, 3)}
    return report


def ratio_table(title: str, figures: Report) -> str:
    """What `interleaved` gives as a table; the first row is the floor."""
    columns = ("wall", "cpu", "wall / floor", "cpu / floor")
    rows = [[name, *(f"{each[column]:.2f}" for column in columns)] for name, each in figures.items()]
    return markdown_table([title, "wall s", "CPU s", *columns[2:]], rows)


def run_command(*command: object, found: Collection[int] = (0,), env: Mapping[str, str] | None = None) -> None:
    """Run a command; raises BadInput where it ends with another status than these. env: instead of the own one."""
    words = [str(each) for each in command]
    result = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, env=env)
    if result.returncode not in found:
        raise BadInput(f"{' '.join(words[:4])} ended with {result.returncode}: {result.stderr.strip()[-300:]}")


def in_process(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a process of its own, which starts with nothing imported."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[int, str]]:
    """A command of ncs that serves, on a free port: its process id and address. It is killed at the end."""
    process = subprocess.Popen([*NCS, *arguments, "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next((line.rpartition(" at ")[2].strip() for line in process.stderr if " at http://" in line), "")
        if not url:
            raise NcsError(f"ncs {arguments[0]} did not start; run it by itself to see why")
        Thread(target=_drain, args=(process.stderr,), daemon=True).start()
        yield process.pid, url
    finally:
        process.kill()
        process.wait()


def _drain(stream: IO[str]) -> None:
    with stream:
        stream.read()


def fastest_ms(work: Callable[..., object], *arguments: object, rounds: int = 5) -> float:
    """Milliseconds of the fastest of several rounds, to exclude other load."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work(*arguments)
        times.append(time.perf_counter() - start)
    return round(1000 * min(times), 4)


def percentiles(values: Sequence[float], places: Sequence[float] = (50, 95)) -> dict[str, float]:
    """
    >>> percentiles([1.0, 2.0, 3.0])
    {'p50': 2.0, 'p95': 2.9}
    """
    return {f"p{place:g}": round(float(np.percentile(values, place)), 3) for place in places}


def drop_cache(folder: Path) -> None:
    """Ask the system to drop a folder's files from its page cache."""
    for path in folder.rglob("*"):
        if path.is_file() and hasattr(os, "posix_fadvise"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident_bytes() -> dict[str, int]:
    """Memory of this process: its own (anonymous) and mapped files; empty where there is no /proc."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return {}
    kilobytes = dict(re.findall(r"(\w+):\s*(\d+) kB", status))
    return {name: int(kilobytes[key]) * 1024 for name, key in (("own", "RssAnon"), ("mapped", "RssFile"))}


def source_files(paths: Sequence[Path], language: str | None = None) -> Iterator[SourceFile]:
    """Files in languages with an installed grammar, or in one of them."""

    def is_source(path: str) -> bool:
        name = language_of(path)
        return name is not None and is_installed(name) and language in (None, name)

    return walk(paths, readable=is_source, force=True)


def files_by_language(paths: Sequence[Path], language: str | None = None) -> dict[str, list[SourceFile]]:
    """language -> its files, sorted; BadInput for none."""
    files: dict[str, list[SourceFile]] = {}
    for file in source_files(paths, language):
        files.setdefault(language_of(file.path) or "", []).append(file)
    if not files:
        raise BadInput(f"no source files in {', '.join(map(str, paths))}; name another folder")
    return {name: files[name] for name in sorted(LANGUAGES) if name in files}


def read_queries(path: Path) -> list[str]:
    """Queries of a file: .json as `bin/evaluate-stackoverflow` reads it, else one per line; BadInput for none."""
    if path.suffix == ".json":
        return [question.query.text for question in read_questions(path)]
    try:
        texts = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror}); name a file with one query per line") from None
    if not texts:
        raise BadInput(f"{path} holds no queries; write one per line")
    return texts


def about() -> Report:
    """Commit, machine and load: what every result file begins with."""
    return {"commit": commit(), "machine": machine(), "load": round(os.getloadavg()[0], 2)}
