"""`ncs update` after no changed file, one, ten, a hundred.

INDEX was built from the folders; a linked copy of it is updated. Source files drawn at random get one line more, and
their content and times back at the end.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from evaluation.benchmarks.common import NCS, Report, Seconds, files_by_language, run_command, timed
from evaluation.reports import markdown_table
from ncs.files import replace_file
from ncs.index import Index
from ncs.storage.snapshot import SNAPSHOT, read_description
from ncs.storage.trust import check_trust, sign

HASH = (".py", ".rb", ".sh", ".yaml", ".toml")
"""Files in which a line that begins with # is a comment; // is in all others."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", type=Path)
    parser.add_argument("folders", type=Path, nargs="+", help="the sources of the index")
    parser.add_argument("--files", type=int, nargs="+", default=[1, 10, 100], metavar="N")
    parser.add_argument("--rounds", type=int, default=5, help="(default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Median seconds of each kind of update."""
    files = source_files(options.folders)
    with linked(options.index) as folder:
        with Index.load(folder) as index:
            report: Report = {"documents": len(index), "files": len(files)}
        seconds = measure(folder, files, options.files, options.rounds)
    return {**report, "seconds": {name: each._asdict() for name, each in seconds.items()}}


def measure(folder: Path, files: Sequence[Path], sizes: Sequence[int], rounds: int) -> dict[str, Seconds]:
    """Seconds after so many changed files, and after none."""
    sample = random.Random(0).sample(files, min(max(sizes), len(files)))  # noqa: S311
    seconds = {}
    with restored(sample):
        update(folder)  # whatever changed since the build
        for size in sizes:
            times = []
            for number in range(rounds):
                append_line(sample[:size], str(number))
                times.append(update(folder))
            seconds[f"{size:,} changed"] = median(times)
    update(folder)
    seconds["nothing changed"] = median([update(folder) for _ in range(rounds)])
    return seconds


def source_files(roots: Sequence[Path]) -> list[Path]:
    """The files below the folders that an update reads and that lie on disk; BadInput for none."""
    files = (file for each in files_by_language(roots).values() for file in each)
    return [path for file in files if file.origin and (path := Path(file.origin.place)).is_file()]


def update(folder: Path) -> Seconds:
    """Seconds of the command, process start included."""
    return timed(partial(run_command, *NCS, "update", "-i", folder, "-q"))


def median(times: Sequence[Seconds]) -> Seconds:
    """Medians of the wall and of the CPU seconds."""
    return Seconds(*(round(statistics.median(each), 3) for each in zip(*times, strict=True)))


def append_line(files: Sequence[Path], mark: str) -> None:
    """Add a comment at the end of each file."""
    for path in files:
        comment = "#" if path.suffix in HASH else "//"
        with path.open("ab") as file:
            file.write(f"\n{comment} {mark} {time.time_ns()}\n".encode())


@contextmanager
def linked(index: Path) -> Iterator[Path]:
    """A copy of the index beside it, its files hard-linked: an update writes new files and never into old ones."""
    with tempfile.TemporaryDirectory(dir=index.resolve().parent, prefix="bench-update-") as name:
        folder = Path(shutil.copytree(index, name, copy_function=os.link, dirs_exist_ok=True))
        description = read_description(folder)
        check_trust(index, description)
        replace_file(folder / SNAPSHOT, sign(replace(description, folder=str(folder))).to_json())
        yield folder


@contextmanager
def restored(files: Sequence[Path]) -> Iterator[None]:
    """Files that get their content and times back."""
    before = [(path, path.read_bytes(), path.stat()) for path in files]
    try:
        yield
    finally:
        for path, content, status in before:
            path.write_bytes(content)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def table(report: Report) -> str:
    rows = [[name, f"{each['wall']:.2f}", f"{each['cpu']:.2f}"] for name, each in report["seconds"].items()]
    title = f"{report['documents']:,} documents of {report['files']:,} files"
    return f"{title}\n\n{markdown_table(['ncs update', 's', 'CPU s'], rows)}"
