"""A whole build beside its floors (bare parsing, fastText alone, one FAISS index) and beside bm25s and semble.

    bin/benchmark build FOLDER... [--workers 2] [--semble PYTHON] [--json FILE]

Every part runs in a process of its own, one after the other. fastText reads the words of the build, bm25s tokenizes and
indexes the code of its documents. PYTHON is an interpreter with semble installed; its model is replaced by zeros, which
needs no download. While the index is built it is opened repeatedly: how many documents are searchable when?
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from evaluation.benchmarks.common import Seconds, about, run_command, write_json
from evaluation.experiments import all_documents
from evaluation.reports import markdown_table
from ncs.config import BuildConfig
from ncs.errors import BadInput, NcsError
from ncs.exit_status import main_program
from ncs.index import Index

POLL = 0.5
"""Seconds between two attempts to open the index that is being built."""
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


@main_program("build")
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
        PARTS[args.part](args.folders, args.index)
        return 0
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as room:
        report = measure(args.folders, Path(room) / "index", args.workers, args.semble)
    sys.stdout.write(table(report) + "\n")
    write_json(args.json, {**about(), **report})
    return 0


def measure(folders: Sequence[Path], index: Path, workers: int, semble: Path | None) -> dict[str, Any]:
    """Seconds of every part, and what the build counted."""
    names = [str(folder) for folder in folders]
    command = [sys.executable, "-m", "ncs.cli", "build", *names, "-i", str(index), "-q", "--workers", str(workers)]
    with searchable(index) as states:
        seconds = {"ncs": _timed("ncs", command)}
    for part in PARTS:
        command = [sys.executable, "-m", "evaluation.benchmarks.build", *names, "--part", part, "--index", str(index)]
        seconds[part] = _timed(part, command)
    if semble:
        try:
            seconds["semble"] = _timed("semble", [str(semble), "-c", SEMBLE, *names])
        except BadInput as error:  # the other parts took an hour and are not lost for it
            sys.stderr.write(f"build: {error}\n")
    with Index.load(index) as index_opened:
        documents = len(index_opened)
    size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
    return {
        "workers": workers, "documents": documents, "index_bytes": size,
        "seconds": {name: each._asdict() for name, each in seconds.items()}, "searchable": states,
    }  # fmt: skip


def _timed(part: str, command: Sequence[str]) -> Seconds:
    seconds = run_command(command)
    sys.stderr.write(f"{part}: {seconds.wall:,.1f} s, {seconds.cpu:,.1f} CPU s\n")
    return seconds


@contextmanager
def searchable(folder: Path) -> Iterator[list[dict[str, float]]]:
    """Searchable documents while the index is built, with seconds since the start."""
    states: list[dict[str, float]] = []
    finished, start = Event(), time.perf_counter()

    def watch() -> None:
        while not finished.wait(POLL):
            try:
                with Index.load(folder) as index:
                    documents = len(index)
            except NcsError:  # nothing is committed yet
                continue
            if not states or states[-1]["documents"] != documents:
                states.append({"after_s": round(time.perf_counter() - start, 1), "documents": documents})

    with ThreadPoolExecutor(1) as thread:
        watcher = thread.submit(watch)
        try:
            yield states
        finally:
            finished.set()
            watcher.result()


def table(report: Mapping[str, Any]) -> str:
    """Every part, the sum of the floors, and the build's ratio to it."""
    seconds = report["seconds"]
    floors = {unit: sum(seconds[part][unit] for part in FLOORS) for unit in ("wall", "cpu")}
    rows = [
        [name, f"{each['wall']:,.1f}", f"{each['cpu']:,.1f}", f"{seconds['ncs']['cpu'] / max(each['cpu'], 1e-9):.2f}"]
        for name, each in {**seconds, "floors": floors}.items()
    ]
    lines = [f"{report['documents']:,} documents, index of {report['index_bytes'] / 2**20:,.0f} MiB"]
    lines += [f"after {each['after_s']:,.1f} s: {each['documents']:,} searchable" for each in report["searchable"]]
    return "\n".join([*lines, "", markdown_table(["part", "s", "CPU s", "ncs / part, CPU"], rows)])


def _parse(folders: Sequence[Path], index: Path) -> None:
    from evaluation.benchmarks.extract import parse, source_files

    parse(source_files(folders))


def _fasttext(folders: Sequence[Path], index: Path) -> None:
    from ncs.learn.fasttext import train

    with Index.load(index) as index_opened:
        train(index_opened.word_table(), BuildConfig().fasttext, folder=index.parent)


def _faiss(folders: Sequence[Path], index: Path) -> None:
    """An exact index of as many random vectors; what they hold does not change its time."""
    import faiss
    import numpy as np

    with Index.load(index) as index_opened:
        rows, dim = len(index_opened), BuildConfig().fasttext.dim
    flat, draw = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16), np.random.default_rng(0)
    for start in range(0, rows, 1 << 14):
        flat.add(draw.random((min(1 << 14, rows - start), dim), np.float32))
    faiss.write_index(flat, str(index.parent / "flat.faiss"))


def _bm25s(folders: Sequence[Path], index: Path) -> None:
    with Index.load(index) as index_opened:
        bm25s_of(index_opened).save(str(index.parent / "bm25s"))


def bm25s_of(index: Index) -> Any:
    """bm25s over the code of an index's documents, tokenized by bm25s."""
    import bm25s

    code = [document.code for document in all_documents(index)]
    engine = bm25s.BM25()
    engine.index(bm25s.tokenize(code, show_progress=False), show_progress=False)
    return engine


PARTS: Mapping[str, Callable[[Sequence[Path], Path], None]] = {
    "parse": _parse, "fasttext": _fasttext, "faiss": _faiss, "bm25s": _bm25s,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
