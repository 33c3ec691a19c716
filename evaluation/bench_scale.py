"""Everything that size costs, in one run and in one table: a figure, what it should be, whether it holds.

    bin/benchmark scale FOLDER... --index INDEX --queries FILE --out OUT [--functions N] [--rows N] [--only PART]...
    bin/benchmark scale [--out evaluation/results]          # the table of what was measured before

Parts are benchmarks of their own (build, update, memory, synth, vectors, cluster, milvus), run one after the other:
what each prints goes to OUT/PART.log, its figures to OUT/bench_PART.json. FOLDERs are built and read by a cluster;
INDEX, made of folders, is updated, drawn from, its vectors searched, and put into Milvus. A part that fails is named
and the next one runs. Functions that are made take some 3 KB each of OUT.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.report import aligned
from ncs.errors import BadInput
from ncs.exit_status import ending

RESULTS = Path(__file__).parent / "results"
Report = Mapping[str, Any]


class Figure(NamedTuple):
    """One line of the table. limit: at most that, or with a sign at least; None: nothing was asked."""

    what: str
    value: float
    limit: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> str:
        """yes, NO, or nothing."""
        if self.limit is None:
            return ""
        return "yes" if (self.value >= self.limit if self.at_least else self.value <= self.limit) else "NO"

    def row(self, part: str) -> list[str]:
        """As the table has it."""
        asked = "" if self.limit is None else f"{'>=' if self.at_least else '<='} {self.limit:g}"
        value = f"{self.value:,.0f}" if self.value >= 1000 or self.value == int(self.value) else f"{self.value:.3g}"
        return [part, self.what, value, asked, self.holds]


def build(report: Report) -> Iterator[Figure]:
    """Of bench_build.json."""
    seconds, answering = report["seconds"], report["answering"]
    floors = sum(seconds[part]["cpu"] for part in ("parse", "fasttext", "faiss"))
    yield Figure("documents", report["documents"])
    yield Figure("CPU time, times its floors'", seconds["ncs"]["cpu"] / floors, 1.3)
    yield Figure("first answers by words, part of the build", answering[0]["after_s"] / seconds["ncs"]["wall"], 0.1)
    whole = next(each for each in answering if each["documents"] == report["documents"])
    yield Figure("all answer by words, part of the build", whole["after_s"] / seconds["ncs"]["wall"], 0.1)
    for other in ("bm25s", "semble"):
        if other in seconds:
            yield Figure(f"CPU time, times {other}'s", seconds["ncs"]["cpu"] / seconds[other]["cpu"])


def update(report: Report) -> Iterator[Figure]:
    """Of bench_update.json."""
    yield Figure("files", report["files"])
    for changed, (wall, _) in report["updates"].items():
        yield Figure(f"{changed} changed, seconds by the clock", wall, 1.0 if changed == "1" else None)
    if edits := report.get("edits"):
        yield Figure(f"{edits['files']:,} random edits: as built from nothing", float(edits["equal"]), 1, at_least=True)
        yield Figure("CPU time, times that build's", edits["update"][1] / edits["from_nothing"][1])


def memory(report: Report) -> Iterator[Figure]:
    """Of bench_memory.json: the largest."""
    run = report["runs"][-1]
    yield Figure("functions", run["functions"])
    yield Figure(f"held at most, part of {run['limit'] / 2**30:.1f} GiB", run["peak_bytes"] / run["limit"], 1)
    yield Figure("processes killed", run["kills"], 0)


def synth(report: Report) -> Iterator[Figure]:
    """Of bench_synth.json: every size, of one run each."""
    from evaluation.growth import one_a_size

    for run in one_a_size(report["runs"]):
        size, held = f"{run['functions']:,} functions", list(run["resident_bytes"].values())[-1]
        yield Figure(f"{size}: opened cold, seconds", run["cold_open_s"], 1)
        yield Figure(f"{size}: first answer cold, seconds", run["cold_first_s"])
        yield Figure(f"{size}: a question, ms (p50)", run["query_ms"]["p50"])
        yield Figure(f"{size}: held of its own, GiB", held.get("own", held["all"]) / 2**30, 1)
        yield Figure(f"{size}: bytes a document", sum(run["disk_bytes"].values()) / run["documents"])


def vectors(report: Report) -> Iterator[Figure]:
    """Of bench_vectors.json, what `auto` takes, against exact search: the largest."""
    from ncs.storage.vectors import chosen

    run = max(report["runs"], key=lambda run: run["documents"]) if "runs" in report else report
    kind = chosen("auto", run["documents"])
    found = run["kinds"][kind]
    yield Figure(f"vectors, {kind}", run["documents"])
    yield Figure("recall@10", found["at_10"]["recall"], 0.95, at_least=True)
    yield Figure("ms (p50)", found["at_10"]["p50_ms"], 2)
    yield Figure("bytes a vector", found["bytes"], 160)
    if "exact" in run["kinds"]:
        yield Figure("times faster than exact", run["kinds"]["exact"]["at_10"]["p50_ms"] / found["at_10"]["p50_ms"])


def cluster(report: Report) -> Iterator[Figure]:
    """Of bench_cluster.json."""
    yield Figure("documents", report["documents"])
    yield Figure("CPU time, times the local pool's", report["cpu_ratio"], 1.25)
    yield Figure("clock, times the local pool's", report["wall_ratio"])
    for loss in ("killed", "cut_off"):
        if loss in report:
            yield Figure(
                f"a worker {loss.replace('_', ' ')}: the same documents", report[loss]["same_documents"], 1, True
            )


def milvus(report: Report) -> Iterator[Figure]:
    """Of bench_milvus.json."""
    asked = report["questions"]
    yield Figure("documents", asked["documents"])
    yield Figure("first ten equal to the folder's, share", asked["equal_hits"] / asked["hits"], 0.99, at_least=True)
    if killed := report.get("killed"):
        again = 1 - report["publication"]["there"] / killed["documents"]
        yield Figure("sent again after a kill, of what was there", again)


FIGURES: Mapping[str, Callable[[Report], Iterator[Figure]]] = {
    "build": build, "update": update, "memory": memory, "synth": synth, "vectors": vectors, "cluster": cluster,
    "milvus": milvus,
}  # fmt: skip


@ending("scale")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a part failed."""
    parser = argparse.ArgumentParser(prog="benchmark scale", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--index", type=Path, help="a real index made of folders, with its code")
    parser.add_argument("--queries", type=Path, help="questions, as bin/benchmark query takes them")
    parser.add_argument("--out", type=Path, default=RESULTS, help="results, logs and what is built (%(default)s)")
    parser.add_argument("--functions", type=int, default=1_000_000, help="made for memory and synth (%(default)s)")
    parser.add_argument("--rows", type=int, default=5_000_000, help="vectors that are searched (%(default)s)")
    parser.add_argument("--edits", type=int, default=1000, help="random edits before an update (%(default)s)")
    parser.add_argument("--limit", default="2GiB", help="of memory (%(default)s)")
    parser.add_argument("--semble", type=Path, help="an interpreter with semble, for build")
    parser.add_argument("--only", action="append", choices=list(FIGURES), help="repeatable (default: all)")
    args = parser.parse_args(argv)
    wanted = args.only or list(FIGURES)
    failed = [] if not args.folders else run(args, wanted)
    sys.stdout.write(table(args.out, wanted) + "\n")
    return 1 if failed else 0


def run(args: argparse.Namespace, wanted: Sequence[str]) -> list[str]:
    """Every part; the names of those that failed. Raises BadInput where something is not given."""
    if not (args.index and args.queries) or args.out == RESULTS:
        raise BadInput("say which index, what to ask and where to write: --index INDEX --queries FILE --out FOLDER")
    args.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for part in wanted:
        start, log = time.perf_counter(), args.out / f"{part}.log"
        with log.open("wb") as written:
            command = [sys.executable, "-m", f"evaluation.bench_{part}", *options(part, args)]
            code = subprocess.run(command, stdout=written, stderr=subprocess.STDOUT, check=False).returncode
        failed += [part] if code else []
        how = f"ended with {code}, see {log}" if code else "done"
        sys.stderr.write(f"{part}: {how} after {time.perf_counter() - start:,.0f} s\n")
    return failed


def options(part: str, args: argparse.Namespace) -> list[str]:
    """What a part is started with."""
    folders, index = [str(folder) for folder in args.folders], str(args.index)
    asked, made = ["--queries", str(args.queries)], ["--functions", str(args.functions)]
    sources = ["--sources", str(args.out / "sources"), "--out", str(args.out / "bounded"), "--limit", args.limit]
    given = {
        "build": [*folders, *(["--semble", str(args.semble)] if args.semble else [])],
        "update": [index, "--edits", str(args.edits)],
        "memory": [index, *made, *sources],
        "synth": [index, *made, *asked, "--out", str(args.out / "made")],
        "vectors": [index, *asked, "--rows", str(args.rows), "--kind", "exact", "--kind", "pq"],
        "cluster": folders,
        "milvus": [index, "--kill-after", "1000"],
    }
    return [*given[part], "--json", str(args.out / f"bench_{part}.json")]


def table(out: Path, wanted: Sequence[str]) -> str:
    """What is in a folder of results; parts without any are named."""
    rows, missing = [], []
    for part in wanted:
        path = out / f"bench_{part}.json"
        if not path.is_file():
            missing.append(part)
            continue
        rows += [figure.row(part) for figure in FIGURES[part](json.loads(path.read_bytes()))]
    told = [aligned(["part", "figure", "measured", "asked", "holds"], rows)] if rows else []
    return "\n\n".join([*told, *([f"not measured: {', '.join(missing)}"] if missing else [])])


if __name__ == "__main__":
    sys.exit(main())
