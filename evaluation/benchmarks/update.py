"""`ncs update` after one changed file, ten, a hundred; with --edits also compared with a build from nothing.

    bin/benchmark update INDEX FOLDER... [--files 1 10 100] [--rounds 5] [--edits 1000] [--json FILE]

INDEX was built from these folders; a linked copy of it is updated. Source files drawn at random get one line more, and
their content and times back at the end. --edits: after so many random edits (lines, functions, renames, deletions ...)
the updated index must hold the same documents as an index built anew.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluation.benchmarks.common import Seconds, about, run_command, write_json
from evaluation.benchmarks.random_edits import edited
from evaluation.experiments import all_documents
from evaluation.reports import markdown_table
from ncs.errors import BadInput
from ncs.exit_status import main_program
from ncs.extract import language_of
from ncs.index import Index
from ncs.types import Location

HASH = (".py", ".rb", ".sh", ".yaml", ".toml")
"""Files in which a line that begins with # is a comment; // is in all others."""


@main_program("update")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row per measurement; --json also writes them."""
    parser = argparse.ArgumentParser(prog="benchmark update", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("folders", type=Path, nargs="+", help="what the index was built from")
    parser.add_argument("--files", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edits", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    with linked(args.index) as folder:
        report = {**about(), **measure(folder, args.folders, args.files, args.rounds, args.edits)}
    sys.stdout.write(table(report) + "\n")
    write_json(args.json, report)
    return 0


def measure(folder: Path, roots: Sequence[Path], sizes: Sequence[int], rounds: int, edits: int) -> dict[str, Any]:
    """Median seconds of each kind of update."""
    files = source_files(roots)
    with Index.load(folder) as index:
        documents = len(index)
    seconds: dict[str, Seconds] = {}
    sampled = random.Random(0).sample(files, min(max(sizes), len(files)))  # noqa: S311
    with restored(sampled):
        update(folder)  # whatever changed since the build
        for size in sizes:
            times = []
            for number in range(rounds):
                append_line(sampled[:size], str(number))
                times.append(update(folder))
            seconds[f"{size:,} changed"] = median(times)
    update(folder)
    seconds["nothing changed"] = median([update(folder) for _ in range(rounds)])
    report: dict[str, Any] = {"documents": documents, "files": len(files)}
    if edits:
        edited_files = random.Random(1).sample(files, min(edits, len(files)))  # noqa: S311
        with edited(edited_files) as kinds, tempfile.TemporaryDirectory(dir=folder.parent) as room:
            seconds[f"{len(edited_files):,} edits"] = update(folder)
            command = [sys.executable, "-m", "ncs.cli", "build", *map(str, roots), "-i", f"{room}/index", "-q"]
            seconds["build"] = run_command(command)
            with Index.load(folder) as updated, Index.load(f"{room}/index") as rebuilt:
                report |= {"edits": dict(kinds), "same_documents": places(updated) == places(rebuilt)}
    return {**report, "seconds": {name: each._asdict() for name, each in seconds.items()}}


def source_files(roots: Sequence[Path]) -> list[Path]:
    """Files in known languages below the folders, hidden ones left out; BadInput for none."""
    files = [
        path
        for root in roots
        for path in sorted(root.rglob("*"))
        if language_of(path.name)
        and path.is_file()
        and not any(part[0] == "." for part in path.relative_to(root).parts)
    ]
    if not files:
        raise BadInput(f"no source files in {', '.join(map(str, roots))}; name the folders of the index")
    return files


def places(index: Index) -> set[Location]:
    """Where all documents are; which of exact copies is the document and which the copy depends on the order."""
    return {place for document in all_documents(index) for place in (document.location, *document.copies)}


def update(folder: Path) -> Seconds:
    """Seconds of the command, process start included."""
    return run_command([sys.executable, "-m", "ncs.cli", "update", "-i", str(folder), "-q"])


def median(times: Sequence[Seconds]) -> Seconds:
    """Of wall and CPU seconds each."""
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
    with tempfile.TemporaryDirectory(dir=index.resolve().parent, prefix="bench-update-") as room:
        folder = Path(room) / "index"
        shutil.copytree(index, folder, copy_function=os.link)
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


def table(report: dict[str, Any]) -> str:
    """A row per measurement."""
    rows = [[name, f"{each['wall']:.2f}", f"{each['cpu']:.2f}"] for name, each in report["seconds"].items()]
    lines = [f"{report['documents']:,} documents of {report['files']:,} files, load {report['load']:.1f}", ""]
    lines.append(markdown_table(["ncs update", "s", "CPU s"], rows))
    if "edits" in report:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in report["edits"].items())
        same = "the same" if report["same_documents"] else "DIFFERENT"
        lines += ["", f"edits: {kinds}; documents after update and build: {same}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
