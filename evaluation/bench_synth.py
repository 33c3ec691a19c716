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
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from evaluation.fresh import apart, forget, memory
from evaluation.machine import commit, machine
from evaluation.report import aligned
from evaluation.synth_build import build, fit_again
from ncs.errors import BadInput, NcsError
from ncs.index import Index
from ncs.vector_kinds import read_about

RESULTS = Path(__file__).parent / "results" / "bench_synth.json"
HITS, ASKED = 10, 100


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
        path.write_text(json.dumps(built))
    elif args.again:
        built = json.loads(path.read_text())
        found = apart(fit_again, args.out)
        built |= {key: {**built.get(key, {}), **found[key]} for key in found}
        path.write_text(json.dumps(built))
    built = json.loads(path.read_text())
    forget(args.out)
    return {**about, "functions": args.functions, **built, **apart(ask, args.out, args.queries)}


def ask(folder: Path, queries: Path) -> dict[str, Any]:
    """Open, ask once, ask ASKED questions; milliseconds and resident bytes after each, milliseconds of each stage."""
    from evaluation.bench_query import _fastest, _staged, read_texts, watched
    from ncs.rankers.hybrid import HybridRanker

    texts = read_texts(queries)[:ASKED]
    resident = {"imported": memory()}
    start = time.perf_counter()
    with Index.load(folder) as index:
        ranker = cast(HybridRanker, index.ranker("hybrid"))
        opened, resident["opened"] = time.perf_counter() - start, memory()
        index.search(texts[0], HITS)
        first, resident["asked once"] = time.perf_counter() - start, memory()
        for text in texts:
            index.search(text, HITS)
        resident[f"asked {len(texts)}"] = memory()
        whole = [_seconds(lambda text=text: index.search(text, HITS)) for text in texts]  # type: ignore[misc]
        with watched() as clock:
            staged = [_fastest(lambda text=text: _staged(ranker, text, clock)) for text in texts]  # type: ignore[misc]
        about, sizes = read_about(index.data / "ncs_centred"), parts_of(index.data)
    return {
        "vectors": about.kind if about else "exact", "disk_bytes": sizes,
        "cold_open_s": round(opened, 3), "cold_first_s": round(first, 3), "resident_bytes": resident,
        "query_ms": _percentiles([1000 * seconds for seconds in whole]),
        "stages_ms": {name: _percentiles([each.get(name, 0.0) for each in staged]) for name in staged[0]},
    }  # fmt: skip


def parts_of(data: Path) -> dict[str, int]:
    """Bytes of each part of a generation: folders, and files outside of them."""
    sizes: dict[str, int] = {}
    for path in sorted(data.rglob("*")):
        if path.is_file():
            name = re.sub(r"\.(ids|offsets|npy|txt|json)(\.npy)?$", "", path.relative_to(data).parts[0])
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes


def _seconds(call: Callable[[], object]) -> float:
    """Of the fastest of three calls."""
    spent = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    return {f"p{p}": round(float(np.percentile(values, p)), 3) for p in (50, 95)}


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
    return "\n\n".join((
        f"{report['documents']:,} documents, {report['copies']:,} copies, {report['words']:,} words, "
        f"{report['vocabulary']:,} distinct, vectors {report['vectors']}, load {report['load']:.1f}",
        aligned(["build", "s", "s a million", "peak GiB", "own GiB"], stages),
        aligned(["on disk", "MiB", "bytes a document"], sizes),
        aligned(["resident MiB", "all", "own", "files"], held),
        f"cold: opened in {report['cold_open_s']:.2f} s, first answer after {report['cold_first_s']:.2f} s",
        aligned(["warm question, ms", "p50", "p95"], asked),
    ))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
