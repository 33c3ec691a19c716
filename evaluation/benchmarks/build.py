"""A build beside its floor, reading and parsing the same files, and peers: ctags, ripgrep and semble.

All in turn, medians of --rounds, each also as a multiple of the floor. One process each, but --workers of ncs and the
threads of ripgrep, which reads every file for a word that is in none. semble: where it is installed, with its model.
Of ncs's progress: how long, after a fifth of the time, its estimate of the whole was off by more than a third.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from evaluation.benchmarks.common import (
    NCS,
    Report,
    in_process,
    interleaved,
    ratio_table,
    run_command,
    source_files,
)
from evaluation.benchmarks.extract import parse
from evaluation.experiments import folder_bytes
from ncs.errors import BadInput
from ncs.index import Index
from ncs.progress import Part

T = TypeVar("T")
FLOOR, NOWHERE = "read and parse", "nowhere-in-any-source"
SEMBLE = "import sys; from semble import SembleIndex; [SembleIndex.from_path(each) for each in sys.argv[1:]]"
OFF, AFTER = 1 / 3, 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3, help="(default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Seconds of every part, what the build gave, and how true its progress was."""
    folders: Sequence[Path] = options.folders
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as room:
        peers, missing = _peers(folders, Path(room))
        build = partial(_build, folders, Path(room) / "index", options.workers)
        parts: dict[str, Callable[[], object]] = {FLOOR: partial(in_process, _floor, folders), "ncs build": build}
        seconds = interleaved([parts | peers] * options.rounds)
        progress = in_process(estimates, folders, Path(room) / "progress", options.workers)
        with Index.load(Path(room) / "progress") as opened:
            documents, stages = len(opened), opened.description.counts["seconds"]
        size = folder_bytes(Path(room) / "progress")
    return {
        "workers": options.workers, "documents": documents, "index_bytes": size, "stages": stages, "missing": missing,
        "seconds": seconds, "estimates": progress, "share_off": round(share_off(progress), 3),
    }  # fmt: skip


def _floor(folders: Sequence[Path]) -> None:
    parse(source_files(folders))


def _build(folders: Sequence[Path], index: Path, workers: int) -> None:
    shutil.rmtree(index, ignore_errors=True)
    run_command(*NCS, "build", *folders, "-i", index, "-q", "--workers", workers)


def _peers(folders: Sequence[Path], room: Path) -> tuple[dict[str, Callable[[], object]], Mapping[str, str]]:
    """Commands of the peers that are here, and why others are missing."""
    peers: dict[str, Callable[[], object]] = {}
    missing: dict[str, str] = {}
    if shutil.which("ctags"):
        peers["ctags"] = partial(run_command, "ctags", "--quiet", "-R", "-f", room / "tags", *folders)
    else:
        missing["ctags"] = "not on the PATH"
    if shutil.which("rg"):
        peers["rg"] = partial(run_command, "rg", "--count", NOWHERE, *folders, found=(0, 1))
    else:
        missing["rg"] = "not on the PATH"
    semble = partial(run_command, sys.executable, "-c", SEMBLE, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    try:
        if find_spec("semble") is None:
            raise BadInput("not installed: pip install semble")
        semble(Path(__file__).parent)
        peers["semble"] = partial(semble, *folders)
    except BadInput as error:
        missing["semble"] = str(error).rpartition("\n")[2]
    return peers, missing


def estimates(folders: Sequence[Path], index: Path, workers: int) -> list[tuple[float, float]]:
    """Of a build: (seconds so far, its estimate of the whole) as it goes on, at last the whole twice."""
    start, found = time.perf_counter(), list[tuple[float, float]]()

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        for item in items:
            yield item
            now = time.perf_counter() - start
            seconds = items.whole.seconds() if isinstance(items, Part) else None
            if seconds and (not found or now > found[-1][0] + 0.1):
                found.append((round(now, 2), round(seconds, 2)))

    Index.build(folders, index, workers=workers, track=track).close()
    whole = round(time.perf_counter() - start, 2)
    return [*found, (whole, whole)]


def share_off(found: Sequence[tuple[float, float]]) -> float:
    """The share of the time after AFTER in which the estimate that stood was off by more than OFF.

    >>> share_off([(1, 20), (2, 10), (5, 20), (6, 9), (10, 10)])
    0.125
    """
    whole = found[-1][0]
    pairs = [(max(t, AFTER * whole), later, estimate) for (t, estimate), (later, _) in pairwise(found)]
    off = sum(later - t for t, later, estimate in pairs if later > t and abs(estimate / whole - 1) > OFF)
    return off / (whole * (1 - AFTER))


def table(report: Report) -> str:
    lines = [f"{report['documents']:,} documents, index of {report['index_bytes'] / 2**20:,.0f} MiB", ""]
    lines += [ratio_table("build", report["seconds"]), ""]
    lines += [f"{name} is missing: {why}" for name, why in report["missing"].items()]
    off = f"{report['share_off']:.0%} of the time after the first {AFTER:.0%}"
    return "\n".join([*lines, f"progress: the estimate was off by more than a third in {off}"])
