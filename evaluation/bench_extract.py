"""Extraction to finished documents against bare tree-sitter parsing of the same files, and against javalang.

    bin/benchmark extract PATH... [--language java] [--workers N] [--rounds R] [--no-javalang] [--json FILE]
    bin/benchmark extract PATH... --by-language [--rounds R] [--json FILE]
    bin/benchmark extract PATH... --stream

The files are read into memory first, so disk and git do not count. Every round measures everything, every other
one backwards; figures are medians over rounds, ratios medians of each round's ratio. Figures of several
processes include starting them, on both sides; "less start-up" takes the start-up of the bare side off both.
CPU is user and system time of this process and its children. javalang, ten times slower, reads a sample.
With --by-language the table of evaluation/extract_languages.py is shown, and added to the JSON file that is there.
With --stream nothing is kept in memory and only the peak memory is shown: after a quarter of the bytes, at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from evaluation.extract_languages import speeds, table
from evaluation.machine import commit, machine
from evaluation.parse_floor import parse_files, start_processes
from ncs.exit_status import ending
from ncs.extract import LANGUAGES, extract_files, language_of
from ncs.sources import SourceFile, count, walk

SAMPLE_BYTES = 5_000_000
"""Bytes of Java that javalang reads."""
LANGUAGE_BYTES = 1_000_000
"""Bytes of each language in the table by language."""
Counts = tuple[int, int, int]
"""Documents, broken files, failed files."""
Round = Mapping[str, "Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement: seconds, and what came of the files."""

    wall: float
    cpu: float
    documents: int
    broken: int
    failed: int


@dataclass(frozen=True, slots=True)
class Task:
    """What is measured, and over which files."""

    name: str
    files: Sequence[SourceFile]
    work: Callable[[], Counts]


@ending("extract")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and the ratios; --json also writes every round."""
    parser, args = _arguments(argv)
    wanted = (lambda path: language_of(path) == args.language) if args.language else _is_source
    if args.stream:
        print(_memory(args.paths, wanted, args.workers))  # noqa: T201
        return 0
    files = list(walk(args.paths, wanted=wanted))
    if not files:
        parser.error(f"no source files in {', '.join(map(str, args.paths))}")
    if args.by_language:
        _by_language(files, args.rounds, args.json)
        return 0
    tasks = _tasks(files, args.workers, args.javalang)
    extraction(files[:50], 1)  # imports and compiles the queries; javalang is imported by its first file
    rounds = [_round(tasks[:: -1 if number % 2 else 1]) for number in range(args.rounds)]
    ratios = {f"{n} process{'es' * (n > 1)}": _ratios(rounds, n) for n in sorted({1, args.workers})}
    print(_report(files, tasks, rounds, ratios))  # noqa: T201
    if args.json:
        plain = [{name: asdict(run) for name, run in one.items()} for one in rounds]
        about = {"commit": commit(), "machine": machine(), "files": len(files), "bytes": _size(files)}
        kept = json.loads(args.json.read_text()) if args.json.exists() else {}
        languages = {"languages": kept["languages"]} if "languages" in kept else {}
        args.json.write_text(json.dumps({**about, "ratios": ratios, "rounds": plain, **languages}, indent=1) + "\n")
    return 0


def _arguments(argv: Sequence[str] | None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="benchmark extract", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--language", choices=sorted(LANGUAGES))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-javalang", dest="javalang", action="store_false")
    parser.add_argument("--by-language", action="store_true", help="one process, a row a language")
    parser.add_argument("--stream", action="store_true", help="show peak memory only")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if min(args.workers, args.rounds) < 1:
        parser.error("--workers and --rounds are at least 1")
    return parser, args


def _by_language(files: Sequence[SourceFile], rounds: int, path: Path | None) -> None:
    found = speeds(files, rounds, LANGUAGE_BYTES)
    print(table(found))  # noqa: T201
    if path:
        record = json.loads(path.read_text()) if path.exists() else {}
        rows = {name: {**asdict(one), "ratio": one.ratio} for name, one in found.items()}
        record["languages"] = {"commit": commit(), "machine": machine(), "speeds": rows}
        path.write_text(json.dumps(record, indent=1) + "\n")


def _is_source(path: str) -> bool:
    return language_of(path) is not None


def _tasks(files: Sequence[SourceFile], workers: int, javalang: bool) -> list[Task]:
    tasks = []
    for n in sorted({1, workers}):
        tasks.append(Task(f"bare parsing, {n}", files, lambda n=n: (0, parse_files(files, n), 0)))  # type: ignore[misc]
        tasks.append(Task(f"documents, {n}", files, lambda n=n: extraction(files, n)))  # type: ignore[misc]
    if workers > 1:
        tasks.append(Task(f"start-up, {workers}", [], lambda: start_up(workers)))
    some = sample(files, SAMPLE_BYTES) if javalang else []
    if some:
        tasks.append(Task("tree-sitter, sample", some, lambda: extraction(some, 1)))
        tasks.append(Task("javalang, sample", some, lambda: extraction(some, 1, "javalang")))
    return tasks


def extraction(files: Sequence[SourceFile], workers: int, frontend: str = "tree-sitter") -> Counts:
    """Extract all files; of the documents only their number comes back from a process."""
    chunks = list(extract_files(files, workers=workers, frontend=frontend, finish=len))
    broken, failed = sum(len(chunk.broken) for chunk in chunks), sum(len(chunk.failed) for chunk in chunks)
    return sum(chunk.result for chunk in chunks), broken, failed


def start_up(workers: int) -> Counts:
    """Start the processes for nothing."""
    start_processes(workers)
    return 0, 0, 0


def sample(files: Iterable[SourceFile], limit: int, seed: int = 0) -> list[SourceFile]:
    """Java files drawn at random up to `limit` bytes (one at least, where there is one), in their order."""
    java = [(number, file) for number, file in enumerate(files) if language_of(file.path) == "java"]
    random.Random(seed).shuffle(java)  # noqa: S311
    drawn: list[tuple[int, SourceFile]] = []
    for number, file in java:
        limit -= len(file.data)
        if drawn and limit < 0:
            break
        drawn.append((number, file))
    return [file for _, file in sorted(drawn, key=lambda pair: pair[0])]


def _round(tasks: Iterable[Task]) -> dict[str, Run]:
    runs = {}
    for task in tasks:
        before, start = os.times(), time.perf_counter()
        counts = task.work()
        wall, after = time.perf_counter() - start, os.times()
        runs[task.name] = Run(wall, sum(after[:4]) - sum(before[:4]), *counts)
    return runs


def _ratios(rounds: Sequence[Round], workers: int) -> dict[str, float]:
    """Extraction over bare parsing, in as many processes."""
    pairs = [(one[f"documents, {workers}"], one[f"bare parsing, {workers}"]) for one in rounds]
    ratios = {
        "wall": median(ours.wall / bare.wall for ours, bare in pairs),
        "CPU": median(ours.cpu / max(bare.cpu, 0.01) for ours, bare in pairs),  # a tick of the clock is 10 ms
    }
    if workers > 1:
        starts = [one[f"start-up, {workers}"] for one in rounds]
        for name in ("wall", "cpu"):
            triples = [
                (getattr(ours, name), getattr(bare, name), getattr(start, name))
                for (ours, bare), start in zip(pairs, starts, strict=True)
            ]
            if all(bare > 2 * start for _, bare, start in triples):  # else the difference is noise
                label = "CPU" if name == "cpu" else name
                ratios[f"{label} less start-up"] = median((ours - s) / (bare - s) for ours, bare, s in triples)
    return ratios


def _report(
    files: Sequence[SourceFile],
    tasks: Sequence[Task],
    rounds: Sequence[Round],
    ratios: Mapping[str, Mapping[str, float]],
) -> str:
    documents = rounds[0]["documents, 1"].documents
    about = machine()
    lines = [
        f"{len(files):,} files, {_size(files) / 1e6:.1f} MB, {documents:,} methods; median of {len(rounds)} rounds; "
        f"{about.get('processor', about['system'])}, {about['cores']} cores",
        "",
        f"| {'what, processes':20} | files | methods | wall s |  CPU s | methods/s |  MB/s | broken % | failed % |",
        "|" + "-" * 22 + "|" + "|".join("-" * (width + 1) + ":" for width in (5, 7, 6, 6, 9, 5, 8, 8)) + "|",
    ]
    lines += [_line(task, [one[task.name] for one in rounds], documents) for task in tasks]
    lines.append("")
    for processes, some in ratios.items():
        figures = ", ".join(f"{name} {ratio:.2f}" for name, ratio in some.items())
        lines.append(f"documents / bare parsing, {processes}: {figures}")
    return "\n".join(lines)


def _line(task: Task, runs: Sequence[Run], documents: int) -> str:
    """A row; bare parsing makes no documents, so the methods are those of the same files."""
    wall, cpu = median(run.wall for run in runs), median(run.cpu for run in runs)
    head = f"| {task.name:20} | {len(task.files) or '':>5} |"
    if not task.files:
        return f"{head} {'':7} | {wall:6.2f} | {cpu:6.2f} | {'':9} | {'':5} | {'':8} | {'':8} |"
    methods = documents if task.name.startswith("bare") else runs[0].documents
    broken, failed = (100 * some / len(task.files) for some in (runs[0].broken, runs[0].failed))
    speed = f"{methods / wall:9,.0f} | {_size(task.files) / 1e6 / wall:5.1f}"
    return f"{head} {methods:7} | {wall:6.2f} | {cpu:6.2f} | {speed} | {broken:8.2f} | {failed:8.2f} |"


def _size(files: Iterable[SourceFile]) -> int:
    return sum(len(file.data) for file in files)


def _memory(paths: Sequence[Path], wanted: Callable[[str], bool], workers: int) -> str:
    """Peak memory of this process while files stream through: the same early and late where it is flat."""
    _, total = count(paths, wanted=wanted)
    done = documents = quarter = 0
    for chunk in extract_files(walk(paths, wanted=wanted), workers=workers, finish=len):
        done += chunk.bytes
        documents += chunk.result
        if not quarter and 4 * done >= total:
            quarter = _peak(resource.RUSAGE_SELF)
    parent, child = _peak(resource.RUSAGE_SELF), _peak(resource.RUSAGE_CHILDREN)
    return (
        f"{documents:,} methods of {done / 1e6:.1f} MB; peak memory: {quarter} MB after a quarter, "
        f"{parent} MB at the end; largest child {child} MB"
    )


def _peak(whose: int) -> int:
    return resource.getrusage(whose).ru_maxrss * (1 if platform.system() == "Darwin" else 1024) // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
