"""An update after one changed file, ten, a hundred, beside a walk over all files and making all anew.

    bin/benchmark update INDEX [--files 1 10 100] [--rounds 5] [--whole] [--edits 1000] [--json FILE]

INDEX was made of folders (with this ncs); it is linked, not changed. Source files drawn at random get a line more, and
get their content and times back at the end. Seconds are medians: wall, and CPU, which says more on a busy machine.
--whole: all but word vectors is made anew too, which takes minutes; else a build's own seconds stand for it.
--edits: after so many random edits (lines, functions, renames, copies, deletions) one update is compared with an index
built from nothing with the same word vectors: documents, and what the default ranker finds for 200 of their names.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.bench_cold import run
from evaluation.machine import commit, machine
from evaluation.random_edits import edited
from ncs.build.building import make
from ncs.build.request import recipe_of
from ncs.errors import BadInput
from ncs.exit_status import ending
from ncs.index import Index
from ncs.learn.embeddings import retraining_advice
from ncs.sources import Skipped
from ncs.storage.files import FileTable
from ncs.text.tokens import tokenize

ASKED = 200
LEARNING = ("embeddings", "calibration")
HASH = (".py", ".rb", ".sh", ".yaml", ".toml")
"""Files in which a line that begins with # is a comment; // is in all others."""


@ending("update")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a line a measurement; --json writes them."""
    parser = argparse.ArgumentParser(prog="benchmark update", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--files", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--edits", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    with linked(args.index) as folder, Index.load(folder) as index:
        sources = files_of(index)
        with kept(sources):
            found = measured(folder, sources, args.files, args.rounds, whole=args.whole)
        if args.edits:
            found["edits"] = after_edits(folder, files_of(index, args.edits))
        found = {**about(index), **found, "machine": machine(), "commit": commit()}
    for line in told(found):
        print(line)  # noqa: T201
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def files_of(index: Index, most: int = 500) -> list[Path]:
    """Files of an index that lie in folders, a hundred and more than are edited, drawn at random."""
    table = FileTable.load(index.data)
    places = [Path(entry.place) for entry in table.entries if entry.stamp.count(":") == 2] if table else []
    if not places:
        raise BadInput(f"{index.folder} was made of no files in folders; name another index")
    return random.Random(0).sample(places, min(most, len(places)))  # noqa: S311


def about(index: Index) -> dict[str, Any]:
    """What is updated, and what its build took but for learning."""
    counts: Any = index.manifest.counts
    seconds = sum(took for stage, took in counts["seconds"].items() if stage not in LEARNING)
    return {"documents": counts["documents"], "files": counts["files"], "built_seconds": round(seconds, 2)}


def measured(
    folder: Path, sources: Sequence[Path], sizes: Sequence[int], rounds: int, *, whole: bool
) -> dict[str, Any]:
    """Seconds, [wall, CPU], of every measurement."""
    found: dict[str, Any] = {"updates": {}}
    edit(sources[:1], "first")
    update(folder)()  # imports, and the first look at every file
    walks = [timed(walk(folder)) for _ in range(min(3, rounds))]
    found["walk"] = middle(walks)
    for size in sizes:
        took = []
        for number in range(rounds):
            edit(random.Random(number).sample(sources, min(size, len(sources))), str(number))  # noqa: S311
            took.append(timed(update(folder)))
        found["updates"][size] = middle(took)
    edit(sources[:1], "command")
    command = run([sys.executable, "-m", "ncs.cli", "update", "-i", str(folder)])
    nothing = run([sys.executable, "-m", "ncs.cli", "update", "-i", str(folder)])
    found |= {"command": list(map(rounded, command)), "command_nothing": list(map(rounded, nothing))}
    with Index.load(folder) as index:
        found["delta"] = index.manifest.counts.get("delta")
        found["advice"] = retraining_advice(index.manifest)
    found["bytes"] = sum(path.stat().st_size for path in index.data.rglob("*") if path.is_file())
    if whole:
        found["whole"] = middle([timed(lambda: Index.update(folder, whole=True)[0].close())])
        with Index.load(folder) as fresh:
            found["fresh_bytes"] = sum(path.stat().st_size for path in fresh.data.rglob("*") if path.is_file())
    return found


def after_edits(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """What an update after random edits of these files takes, and how far it equals a build from nothing."""
    update(folder)()
    with edited(files) as kinds, tempfile.TemporaryDirectory(dir=folder.parent, prefix="fresh-") as room:
        updated = timed(update(folder))
        with Index.load(folder) as index:
            beside = index.manifest.counts.get("delta")
            recipe = recipe_of(index.manifest, folder)
        fresh = timed(lambda: make(recipe, Path(room), folder, reuse=False, kept=beside is not None))
        with Index.load(folder) as index, Index.load(room) as anew:
            same = answers(index) == answers(anew)
    return {
        "files": len(files), "kinds": kinds, "update": list(map(rounded, updated)), "delta": beside,
        "from_nothing": list(map(rounded, fresh)), "equal": same,
    }  # fmt: skip


def answers(index: Index) -> list[Any]:
    """All documents' ids, and ids and scores of what is found for the names, in words, of ASKED documents."""
    ids = [document.id for document in index.store.documents(range(len(index)))]
    rows = np.linspace(0, len(index) - 1, min(ASKED, len(index))).astype(int).tolist()
    names = [" ".join(tokenize(document.name)) for document in index.store.documents(rows)]
    return [ids, [[(hit.document.id, hit.score) for hit in index.search(name)] for name in names if name]]


def update(folder: Path) -> Callable[[], None]:
    return lambda: Index.update(folder)[0].close()


def walk(folder: Path) -> Callable[[], None]:
    """Over all files, none of them read."""

    class Everything:
        def unchanged(self, origin: object) -> bool:
            return True

    def work() -> None:
        with Index.load(folder) as index:
            recipe = replace(recipe_of(index.manifest, folder))
        for _ in recipe.files(Skipped(), Everything()):
            pass

    return work


def edit(files: Sequence[Path], mark: str) -> None:
    """A line more at the end of each."""
    for path in files:
        comment = "#" if path.suffix in HASH else "//"
        with path.open("ab") as file:
            file.write(f"\n{comment} {mark} {time.time_ns()}\n".encode())


def timed(work: Callable[[], None]) -> tuple[float, float]:
    wall, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    return time.perf_counter() - wall, cpu


def middle(took: Sequence[tuple[float, float]]) -> list[float]:
    return [rounded(statistics.median(each[unit] for each in took)) for unit in (0, 1)]


def rounded(seconds: float) -> float:
    return round(seconds, 3)


@contextmanager
def linked(index: Path) -> Iterator[Path]:
    """The index beside itself, its files linked: an update writes new ones."""
    with tempfile.TemporaryDirectory(dir=index.resolve().parent, prefix="bench-update-") as room:
        folder = Path(room) / "index"
        shutil.copytree(index, folder, copy_function=os.link)
        manifest = folder / "manifest.json"
        content = manifest.read_bytes()
        manifest.unlink()
        manifest.write_bytes(content)
        yield folder


@contextmanager
def kept(files: Sequence[Path]) -> Iterator[None]:
    """Files that get their content and times back."""
    before = [(path, path.read_bytes(), path.stat()) for path in files]
    try:
        yield
    finally:
        for path, content, status in before:
            if path.read_bytes() != content:
                path.write_bytes(content)
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def told(found: dict[str, Any]) -> Iterator[str]:
    """A line a measurement."""
    yield f"{found['documents']:,} documents of {found['files']:,} files"
    one = next(iter(found["updates"].values()))
    for size, (wall, cpu) in found["updates"].items():
        yield f"update of {size:,} changed: {wall:.2f} s, {cpu:.2f} s of CPU"
    walls = {"a walk over all files": found["walk"], "command": found["command"]}
    walls |= {"command, nothing changed": found["command_nothing"]}
    walls |= {"all made anew but word vectors": found["whole"]} if "whole" in found else {}
    for name, (wall, cpu) in walls.items():
        yield f"{name}: {wall:.2f} s, {cpu:.2f} s of CPU; {cpu / max(one[1], 1e-9):,.1f} times an update of one"
    yield f"delta: {found['delta']}; {found['bytes'] / 1e6:,.0f} MB"
    if "edits" in found:
        edits = found["edits"]
        kinds = ", ".join(f"{n} {kind}" for kind, n in edits["kinds"].items())
        wall, cpu = edits["update"]
        yield f"{edits['files']:,} random edits ({kinds}): {wall:.2f} s, {cpu:.2f} s of CPU"
        same = "equal" if edits["equal"] else "DIFFERENT"
        yield f"a build from nothing: {edits['from_nothing'][1]:.2f} s of CPU; documents and answers {same}"
    if "fresh_bytes" in found:
        yield f"a fresh one: {found['fresh_bytes'] / 1e6:,.0f} MB, so {found['bytes'] / found['fresh_bytes']:.3f} times"


if __name__ == "__main__":
    sys.exit(main())
