"""A build from source files under a hard limit of memory, all of its processes together: what it held, stage by stage.

    bin/benchmark memory INDEX --functions 1000000 --limit 2GiB --sources FOLDER --out FOLDER [--json FILE]

INDEX is what source files are drawn from (evaluation/made_sources.py); those that are there already are not made again.
A process that asks for more than the limit is killed: the build then fails,
and so does this. --json keeps one run a size and limit.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from evaluation.limited import Ran, run
from evaluation.machine import commit, machine
from evaluation.made_sources import write_part
from evaluation.report import aligned
from evaluation.synthetic import Source, parts
from ncs.build.memory import shown, size_of
from ncs.errors import NcsError
from ncs.index import Index
from ncs.storage.folder import open_folder

RESULTS = Path(__file__).parent / "results" / "bench_memory.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Print what was held; 1 where the build failed, 2 for an error, told in one line."""
    parser = argparse.ArgumentParser(prog="benchmark memory", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path, help="a real index with its code")
    parser.add_argument("--functions", type=int, default=1_000_000, help="(default %(default)s)")
    parser.add_argument("--limit", default="2GiB", help="of memory (default %(default)s)")
    parser.add_argument("--sources", type=Path, required=True, help="where source files are written, or are already")
    parser.add_argument("--out", type=Path, required=True, help="where the index is built; its log lies beside it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=RESULTS, help="one run a size and limit is kept there")
    parser.add_argument("--options", default="", help="of ncs build, as one text: '--epochs 1'")
    args = parser.parse_args(argv)
    try:
        written = make_sources(args.index, args.sources, args.functions, args.seed)
        limit = size_of(args.limit)
        command = [sys.executable, "-m", "ncs.cli", "build", str(args.sources), "-i", str(args.out)]
        command += ["--memory", args.limit, *shlex.split(args.options), "-q"]
        load = os.getloadavg()[0]
        ran = run(command, limit, args.out.with_suffix(".log"))
        if ran.status:
            sys.stderr.write(f"memory: the build ended with {ran.status}, {ran.kills} kills: {ran.output[-500:]}\n")
            return 1
        report = {
            "commit": commit(), "machine": machine(), "load": load, "functions": args.functions, "limit": limit,
            "source_bytes": written, "options": args.options, **told(ran, args.out),
        }  # fmt: skip
    except NcsError as error:
        sys.stderr.write(f"memory: {error}\n")
        return 2
    sys.stdout.write(table(report) + "\n")
    keep(args.json, report)
    return 0


def make_sources(index: Path, folder: Path, functions: int, seed: int) -> int:
    """Write the parts that are not there yet; bytes of all source files."""
    folder.mkdir(parents=True, exist_ok=True)
    with Index.load(index) as real:
        source = Source.of(real)
    for number, size in parts(functions):
        done = folder / f".{number}.done"
        if not done.exists():
            write_part(source, folder, number, size, seed)
            done.touch()
    return sum(path.stat().st_size for path in folder.rglob("*.java"))


def told(ran: Ran, folder: Path) -> dict[str, Any]:
    """Seconds and peak of each stage, in their order: stages follow each other and the last ends with the build."""
    counts = cast("Mapping[str, Any]", open_folder(folder)[1].counts)
    seconds: Mapping[str, float] = counts["seconds"]
    began = ran.seconds - sum(seconds.values())
    stages = {}
    for stage, took in seconds.items():
        sizes = [size for at, size in ran.held if began <= at <= began + took]
        stages[stage] = {"seconds": took, "peak_bytes": max(sizes, default=0)}
        began += took
    return {
        "documents": counts["documents"], "copies": counts["copies"], "words": counts["words"],
        "embeddings": counts["embeddings"], "seconds": round(ran.seconds, 1), "peak_bytes": ran.peak,
        "charged_bytes": ran.most, "kills": ran.kills, "stages": stages,
    }  # fmt: skip


def keep(path: Path, report: Mapping[str, Any]) -> None:
    """Replace the run of this size and limit in a results file."""
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    same = (report["functions"], report["limit"])
    runs = sorted(
        [*(each for each in runs if (each["functions"], each["limit"]) != same), report],
        key=lambda each: (each["functions"], each["limit"]),
    )
    path.write_text(json.dumps({"runs": runs}, indent=1) + "\n", encoding="utf-8")


def table(report: Mapping[str, Any]) -> str:
    """Stages, and the whole against the limit."""
    rows = [
        [name, f"{each['seconds']:.1f}", f"{each['peak_bytes'] / 2**20:.0f}"] for name, each in report["stages"].items()
    ]
    return "\n".join((
        f"{report['functions']:,} functions, {report['documents']:,} documents, {report['words']:,} distinct words, "
        f"{report['source_bytes'] / 2**20:.0f} MiB of source, word vectors by {report['embeddings']}",
        aligned(["stage", "s", "peak MiB"], rows),
        f"{report['seconds']:.0f} s; held {report['peak_bytes'] / 2**20:.0f} MiB at most of "
        f"{shown(report['limit'])}; killed: {report['kills']}",
    ))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
