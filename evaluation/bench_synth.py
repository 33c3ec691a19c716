"""An index of functions that nobody wrote, drawn from a real one: what building, opening and asking cost at its size.

    bin/benchmark synth INDEX --functions 1000000 --out FOLDER --queries FILE [--json FILE]
    bin/benchmark synth INDEX --functions 1000000 --out FOLDER --queries FILE --again    # its vectors anew, then asked
    bin/benchmark synth --plot FILE.png [--json FILE]

INDEX is what is drawn from (evaluation/synthetic.py); its word vectors are taken over, training them is left out. Every
step runs in a process of its own. Opening is measured after the system was told to forget the index's files. --json
keeps one run a size; --plot draws all of them, with the power of the number of functions that each figure grows by.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[_threads] = "1"

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.fresh import apart, forget
from evaluation.machine import commit, machine
from evaluation.report import aligned
from evaluation.synth_ask import ask, ask_within
from evaluation.synth_build import build, fit_again
from ncs.build.memory import size_of
from ncs.errors import BadInput, NcsError

RESULTS = Path(__file__).parent / "results" / "bench_synth.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Print what a size costs, or draw all sizes; 2 for an error, told in one line."""
    parser = argparse.ArgumentParser(prog="benchmark synth", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path, nargs="?", help="a real index with its code")
    parser.add_argument("--functions", type=int, default=1_000_000, help="besides copies (default %(default)s)")
    parser.add_argument("--out", type=Path, help="where the index is written; one that is there is asked again")
    parser.add_argument("--queries", type=Path, help="questions, as bin/benchmark query takes them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes that make functions (default %(default)s)")
    parser.add_argument("--again", action="store_true", help="fit the vectors of the index in --out anew")
    parser.add_argument("--limit", help="ask again with so much memory, pages of files included: 1GiB")
    parser.add_argument("--json", type=Path, default=RESULTS, help="one run a size is kept there (%(default)s)")
    parser.add_argument("--plot", type=Path, help="a picture of all sizes in --json")
    args = parser.parse_args(argv)
    try:
        if args.index:
            report = run(args)
            sys.stdout.write(table(report) + "\n")
            keep(args.json, report)
        if args.plot:
            from evaluation.growth import draw

            sys.stdout.write(draw(json.loads(args.json.read_text())["runs"], args.plot) + "\n")
    except NcsError as error:
        sys.stderr.write(f"synth: {error}\n")
        return 2
    return 0


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Build where nothing is yet, then open and ask."""
    if not (args.out and args.queries) or args.functions < 1:
        raise BadInput("say where to write and what to ask: --out FOLDER --queries FILE, --functions 1 or more")
    about = {"commit": commit(), "machine": machine(), "load": os.getloadavg()[0], "seed": args.seed}
    path = args.out / "synth.json"
    if not path.exists():
        built = apart(build, args.index, args.out, args.functions, args.seed, args.workers)
        path.write_text(json.dumps({"built_commit": commit(), **built}))
    elif args.again:
        built = json.loads(path.read_text())
        found = apart(fit_again, args.out)
        built |= {key: {**built.get(key, {}), **found[key]} for key in found}
        path.write_text(json.dumps(built))
    built = json.loads(path.read_text())
    forget(args.out)
    asked = apart(ask, args.out, args.queries)
    if args.limit:
        asked["bounded"] = ask_within(args.out, args.queries, size_of(args.limit))
    return {**about, "functions": args.functions, **built, **asked}


def keep(path: Path, report: dict[str, Any]) -> None:
    """Replace the run of this size and kind of vectors in a results file."""
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    same = (report["functions"], report["vectors"])
    runs = [each for each in runs if (each["functions"], each["vectors"]) != same]
    runs = sorted([*runs, report], key=lambda each: (each["functions"], each["vectors"]))
    path.write_text(json.dumps({"runs": runs}, indent=1) + "\n", encoding="utf-8")


def table(report: dict[str, Any]) -> str:
    """Stages of the build, parts of the index, memory and questions."""
    seconds, peaks, disk = report["build_s"], report["peak_bytes"], report["disk_bytes"]
    own, million = report.get("own_peak_bytes", {}), report["documents"] / 1e6
    stages = [
        [name, f"{s:.1f}", f"{s / million:.1f}", f"{peaks[name] / 2**30:.2f}", f"{own.get(name, 0) / 2**30:.2f}"]
        for name, s in seconds.items()
    ]
    sizes = [[name, f"{size / 2**20:.1f}", f"{size / million / 1e6:.1f}"] for name, size in disk.items()]
    whole = {"whole": report["query_ms"], **report["stages_ms"]}
    asked = [[name, f"{each['p50']:.2f}", f"{each['p95']:.2f}"] for name, each in whole.items()]
    held = [[k, *(f"{each[n] / 2**20:.0f}" for n in each)] for k, each in report["resident_bytes"].items()]
    pages = sorted(report.get("mapped_bytes", {}).items(), key=lambda each: -each[1])[:10]
    pages = [[name, f"{size / 2**20:.0f}"] for name, size in pages]
    return "\n\n".join((
        f"{report['documents']:,} documents, {report['copies']:,} copies, {report['words']:,} words, "
        f"{report['vocabulary']:,} distinct, vectors {report['vectors']}, load {report['load']:.1f}",
        aligned(["build", "s", "s a million", "peak GiB", "own GiB"], stages),
        aligned(["on disk", "MiB", "bytes a document"], sizes),
        aligned(["resident MiB", "all", "own", "files"], held),
        aligned(["pages of files, the most", "MiB"], pages),
        f"cold: opened in {report['cold_open_s']:.2f} s, first answer after {report['cold_first_s']:.2f} s, "
        f"questions asked for the first time {report['first_time_ms']['p50']:.1f} ms",
        aligned(["warm question, ms", "p50", "p95"], asked),
        *_bounded(report),
    ))  # fmt: skip


def _bounded(report: dict[str, Any]) -> list[str]:
    if "bounded" not in report:
        return []
    found = report["bounded"]
    p50, p95 = (found["first_time_ms"][p] for p in ("p50", "p95"))
    return [
        f"with {found['limit'] / 2**20:,.0f} MiB of memory, pages of files included: first answer after "
        f"{found['cold_first_s']:.2f} s, a question asked for the first time {p50:.1f} ms (p95 {p95:.1f})"
    ]


if __name__ == "__main__":
    sys.exit(main())
