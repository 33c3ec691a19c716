"""A whole build beside its floors (imports, bare parsing, fastText alone, one FAISS index) and beside bm25s.

Every part runs in a process of its own, one after the other. fastText reads the words of the build, bm25s tokenizes and
indexes the code of its documents.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from evaluation.benchmarks.common import (
    NCS,
    Report,
    Seconds,
    bm25s_of,
    in_process,
    run_command,
    source_files,
    timed,
)
from evaluation.experiments import folder_bytes
from evaluation.reports import markdown_table
from ncs.config import BuildConfig
from ncs.index import Index

FLOORS = ("imports", "parse", "fasttext", "faiss")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)


def run(options: argparse.Namespace) -> Report:
    """Seconds of every part, and the counts of the build."""
    folders: Sequence[Path] = options.folders
    seconds: dict[str, Seconds] = {}

    def measure(part: str, work: Callable[[], object]) -> None:
        seconds[part] = timed(work)
        sys.stderr.write(f"{part}: {seconds[part].wall:,.1f} s, {seconds[part].cpu:,.1f} CPU s\n")

    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as room:
        index = Path(room) / "index"
        command = (*NCS, "build", *folders, "-i", index, "-q", "--workers", options.workers)
        measure("ncs", partial(run_command, *command))
        measure("imports", partial(run_command, sys.executable, "-c", "import numpy, scipy"))
        for name, part in PARTS.items():
            measure(name, partial(in_process, part, folders, index))
        with Index.load(index) as opened:
            documents = len(opened)
        figures = {"workers": options.workers, "documents": documents, "index_bytes": folder_bytes(index)}
    return {**figures, "seconds": {name: each._asdict() for name, each in seconds.items()}}


def table(report: Report) -> str:
    seconds = report["seconds"]
    floors = {unit: sum(seconds[part][unit] for part in FLOORS) for unit in ("wall", "cpu")}
    rows = [
        [name, f"{each['wall']:,.1f}", f"{each['cpu']:,.1f}", f"{seconds['ncs']['cpu'] / max(each['cpu'], 1e-9):.2f}"]
        for name, each in {**seconds, "floors": floors}.items()
    ]
    title = f"{report['documents']:,} documents, index of {report['index_bytes'] / 2**20:,.0f} MiB"
    return f"{title}\n\n{markdown_table(['part', 's', 'CPU s', 'ncs / part, CPU'], rows)}"


def _parse(folders: Sequence[Path], index: Path) -> None:
    from evaluation.benchmarks.extract import parse

    parse(source_files(folders))


def _fasttext(folders: Sequence[Path], index: Path) -> None:
    from ncs.learn.fasttext import train

    with Index.load(index) as opened:
        train(opened.word_table(), BuildConfig().fasttext, folder=index.parent)


def _faiss(folders: Sequence[Path], index: Path) -> None:
    """An exact index of as many random vectors; the time does not depend on their values."""
    import faiss
    import numpy as np

    with Index.load(index) as opened:
        rows, dim = len(opened), BuildConfig().fasttext.dim
    flat, rng = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16), np.random.default_rng(0)
    for start in range(0, rows, 1 << 14):
        flat.add(rng.random((min(1 << 14, rows - start), dim), np.float32))
    faiss.write_index(flat, str(index.parent / "flat.faiss"))


def _bm25s(folders: Sequence[Path], index: Path) -> None:
    with Index.load(index) as opened:
        bm25s_of(opened).save(str(index.parent / "bm25s"))


PARTS: Mapping[str, Callable[[Sequence[Path], Path], None]] = {
    "parse": _parse,
    "fasttext": _fasttext,
    "faiss": _faiss,
    "bm25s": _bm25s,
}
