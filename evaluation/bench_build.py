"""A whole build beside its floors (bare parsing, fastText alone, one FAISS build), bm25s and semble, in one run.

    bin/benchmark build FOLDER... [--workers 2] [--semble PYTHON] [--json FILE]

Every part runs in processes of its own, one after the other; CPU seconds are user and system time of the part's
processes: on a busy machine they say more than the clock. fastText reads the very tokens of the build, bm25s the
words of its documents. PYTHON is an interpreter with semble (python -m venv .cache/semble, pip install semble); its
chunks and postings are timed, its model is replaced by one that gives zeros, as a download would be needed. While the
index is built its folder is looked at: when which documents could be asked for, and whether by their words only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from evaluation.machine import commit, machine
from ncs.errors import BadInput
from ncs.exit_status import ending
from ncs.index import Index
from ncs.storage.manifest import current_generation

LOOK = 0.2
"""Seconds between two looks at an index that is being built."""
FLOORS = ("parse", "fasttext", "faiss")
SEMBLE = """
import sys, numpy, semble.index.create as create
class Zeros:
    dim = 1
    def encode(self, texts, **options): return numpy.zeros((len(texts), 1), numpy.float32)
from pathlib import Path
for folder in sys.argv[1:]:
    try:
        print(len(create.create_index_from_path(Path(folder).resolve(), Zeros())[2]))
    except ValueError as error:  # nothing in it that semble reads
        print(error)
"""


@ending("build")
def main(argv: Sequence[str] | None = None) -> int:
    """Print seconds and ratios of all parts; --json also writes them."""
    parser = argparse.ArgumentParser(prog="benchmark build", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--semble", type=Path, help="an interpreter with semble")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--index", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.part:
        PARTS[args.part](args.folders, args.index, args.workers)
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-build-") as name:
        seconds, counts = _measured(args, Path(name) / "index")
    for line in (*table(seconds), *answers(counts["answering"], seconds["ncs"]["wall"])):
        print(line)  # noqa: T201
    if args.json:
        found = {"commit": commit(), "machine": machine(), "workers": args.workers, "seconds": seconds, **counts}
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _measured(args: argparse.Namespace, index: Path) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    folders = [str(folder) for folder in args.folders]
    build = ["-m", "ncs.cli", "build", *folders, "-i", str(index), "-q", "--embeddings", "fasttext"]
    with generations_of(index) as answering:
        seconds = {"ncs": _told("ncs", [sys.executable, *build, "--workers", str(args.workers)])}
    more = ["--index", str(index), "--workers", str(args.workers)]
    for part in PARTS:
        seconds[part] = _told(part, [sys.executable, "-m", "evaluation.bench_build", *folders, "--part", part, *more])
    if args.semble:
        try:
            seconds["semble"] = _told("semble", [str(args.semble), "-c", SEMBLE, *folders])
        except BadInput as error:  # the hour before is not lost for it
            sys.stderr.write(f"build: {error}\n")
    counts = json.loads((index / "manifest.json").read_bytes())["counts"]
    kept = ("documents", "files", "source_bytes", "peak_memory_bytes")
    return seconds, {**{name: counts[name] for name in kept}, "stages": counts["seconds"], "answering": answering}


def _told(part: str, command: Sequence[str]) -> dict[str, float]:
    """`timed`, said at once: an hour's parts are not lost with the last."""
    seconds = timed(command)
    sys.stderr.write(f"{part}: {seconds['wall']:,.1f} s, {seconds['cpu']:,.1f} CPU s\n")
    return seconds


@contextmanager
def generations_of(index: Path) -> Iterator[list[dict[str, Any]]]:
    """What an index answers from while it is built: seconds since the start, documents, and what is still to come."""
    found: list[dict[str, Any]] = []
    ended, start = Event(), time.perf_counter()

    def look() -> None:
        seen = None
        while not ended.wait(LOOK):
            if current_generation(index) in (seen, None):
                continue
            with Index.load(index) as standing:
                standing.search("hide soft keyboard", 1, ranker="bm25")
                seen, pending = standing.manifest.generation, standing.manifest.counts.get("pending")
                after = round(time.perf_counter() - start, 1)
                found.append({"after_s": after, "documents": len(standing), "pending": pending})

    with ThreadPoolExecutor(1) as thread:
        looking = thread.submit(look)
        try:
            yield found
        finally:
            ended.set()
            looking.result()


def answers(answering: Sequence[Mapping[str, Any]], whole: float) -> list[str]:
    """Lines to print: after which share of the build how many documents could be asked for."""
    return [
        f"{each['documents']:,} documents answered after {each['after_s']:,.1f} s, {each['after_s'] / whole:.0%}: "
        f"{each['pending'] or 'complete'}"
        for each in answering
    ]


def timed(command: Sequence[str]) -> dict[str, float]:
    """Wall and CPU seconds of a command and all that it starts; raises BadInput where it fails."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise BadInput(f"{command[1]} {command[2]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": round(wall, 2), "cpu": round(cpu, 2)}


def table(seconds: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Lines to print: every part, the floors' sum, and the build's ratio to it."""
    floors = {unit: sum(seconds[part][unit] for part in FLOORS) for unit in ("wall", "cpu")}
    rows = {**seconds, "floors": floors}
    lines = [f"{name:10} {row['wall']:10,.1f} s {row['cpu']:10,.1f} CPU s" for name, row in rows.items()]
    ratio = {unit: seconds["ncs"][unit] / floors[unit] for unit in floors}
    return [*lines, f"build / floors: {ratio['wall']:.2f} by the clock, {ratio['cpu']:.2f} by CPU time"]


def _parse(folders: Sequence[Path], index: Path, workers: int) -> None:
    """Read and parse all files, nothing else."""
    from evaluation.parse_floor import parse_files
    from ncs.extract import language_of
    from ncs.sources import walk

    parse_files(list(walk(folders, wanted=lambda path: language_of(path) is not None)), workers)


def _fasttext(folders: Sequence[Path], index: Path, workers: int) -> None:
    """fastText on the tokens of the index. Its input is written too: a share of a percent of its time."""
    from ncs.config import BuildConfig
    from ncs.learn.fasttext import train
    from ncs.storage.manifest import read_manifest
    from ncs.storage.words import WordTable

    manifest = read_manifest(index)
    train(WordTable.load(index / manifest.generation), BuildConfig.of(manifest).fasttext, folder=index.parent)


def _faiss(folders: Sequence[Path], index: Path, workers: int) -> None:
    """One exact index of the vectors, written: the least; above 300,000 a build makes two that look at fewer."""
    import numpy as np

    from ncs.storage.manifest import read_manifest
    from ncs.storage.vectors import VectorIndex

    vectors = VectorIndex.load(index / read_manifest(index).generation / "ncs_centred")
    step = 1 << 14
    chunks = (vectors.vectors(np.arange(at, min(at + step, len(vectors)))) for at in range(0, len(vectors), step))
    (index.parent / "faiss").mkdir()
    VectorIndex.build(chunks, vectors.dim).save(index.parent / "faiss")


def _bm25s(folders: Sequence[Path], index: Path, workers: int) -> None:
    """The words of the documents into bm25s's index, stemmed and weighted by field as ours are."""
    from evaluation.lexical_engines import Bm25s
    from ncs.storage.manifest import read_manifest
    from ncs.storage.words import WordTable

    Bm25s.index(WordTable.load(index / read_manifest(index).generation), index.parent / "bm25s")


PARTS: Mapping[str, Callable[[Sequence[Path], Path, int], None]] = {
    "parse": _parse, "fasttext": _fasttext, "faiss": _faiss, "bm25s": _bm25s,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
