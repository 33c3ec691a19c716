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
import multiprocessing
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from evaluation.machine import commit, forget_peak_memory, machine, peak_memory
from evaluation.report import aligned
from evaluation.synthetic import Source, make, parts
from ncs.batches import Batch, Collected, Collector, pack_batch
from ncs.building import learn
from ncs.embeddings import Embeddings
from ncs.errors import BadInput, NcsError
from ncs.fitting import Clock
from ncs.generations import new_generation
from ncs.index import BuildConfig, Index
from ncs.progress import silent
from ncs.rankers import create_ranker, fit_ranker
from ncs.vector_kinds import read_about

RESULTS = Path(__file__).parent / "results" / "bench_synth.json"
HITS, ASKED = 10, 100
DENSE = ("ncs", "ncs_centred")


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


def apart(function: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """What a function gives in a process of its own, which starts with nothing imported."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class WatchedClock(Clock):
    """Also keeps the peak memory of each stage: `peaks` with pages of files, which the system may take back, and `own`
    without them, looked at twice a second."""

    def __init__(self) -> None:
        super().__init__()
        self.peaks: dict[str, int] = {}
        self.own: dict[str, int] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        forget_peak_memory()
        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(stage, ended), daemon=True)
        watching.start()
        try:
            with super().__call__(stage):
                yield
        finally:
            ended.set()
            watching.join()
        self.peaks[stage] = peak_memory()

    def _watch(self, stage: str, ended: threading.Event) -> None:
        while True:
            self.own[stage] = max(self.own.get(stage, 0), memory().get("own", 0))
            if ended.wait(0.5):
                return


def build(source: Path, folder: Path, functions: int, seed: int, workers: int) -> dict[str, Any]:
    """Write the index; seconds and peak bytes of every stage, bytes of every part.

    The stage `generate` is what making functions was waited for; it is no part of any real build.
    """
    with Index.load(source) as real:
        drawn, learnt = Source.of(real), real.folder
        config, clock = BuildConfig(), WatchedClock()
        with new_generation(folder) as generation:
            with clock("store"), Collector(generation.path, True, True) as collector:
                waited = _collect(collector, drawn, functions, seed, workers)
                collected: Collected = collector.finish()
            clock.seconds["store"] = round(clock.seconds["store"] - waited, 2)
            learn(collected, generation, config, (), silent, clock, None, learnt)
    with Index.load(folder) as index:
        counts = {"documents": len(index), "copies": collected.copies, "words": len(collected.words.ids)}
        vocabulary = len(collected.words.vocabulary)
    return {
        **counts, "vocabulary": vocabulary, "generate_s": round(waited, 1), "build_s": clock.seconds,
        "peak_bytes": clock.peaks, "own_peak_bytes": clock.own,
    }  # fmt: skip


def fit_again(folder: Path) -> dict[str, Any]:
    """Seconds and peak bytes of the vectors of an index that stands, learnt by this code."""
    clock = WatchedClock()
    with new_generation(folder) as generation, Index.load(folder) as index:
        generation.begin_with(index.data, without=DENSE)
        for name in DENSE:
            with clock(name):
                ranker = create_ranker(name)
                fit_ranker(ranker, index.words(), Embeddings.load(index.data), index.store)
                ranker.save(generation.path)
        manifest = index.manifest
        generation.commit(
            config=manifest.config, counts=manifest.counts, notes=manifest.notes, versions=manifest.versions
        )
    return {"build_s": clock.seconds, "peak_bytes": clock.peaks, "own_peak_bytes": clock.own}


def _collect(collector: Collector, source: Source, functions: int, seed: int, workers: int) -> float:
    """Store all parts in their order, few of them in memory; seconds that their making was waited for."""
    waited, todo = 0.0, deque(parts(functions))
    ahead: deque[Future[Batch]] = deque()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        while todo or ahead:
            while todo and len(ahead) < workers + 1:
                ahead.append(pool.submit(_packed, source, *todo.popleft(), seed))
            start = time.perf_counter()
            batch = ahead.popleft().result()
            waited += time.perf_counter() - start
            collector.add(batch)
    return waited


def _packed(source: Source, number: int, size: int, seed: int) -> Batch:
    return pack_batch(make(source, number, size, seed))


def parts_of(data: Path) -> dict[str, int]:
    """Bytes of each part of a generation: folders, and files outside of them."""
    sizes: dict[str, int] = {}
    for path in sorted(data.rglob("*")):
        if path.is_file():
            name = re.sub(r"\.(ids|offsets|npy|txt|json)(\.npy)?$", "", path.relative_to(data).parts[0])
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes


def forget(folder: Path) -> None:
    """Tell the system to drop an index's files from its cache: the next reader finds them on the disk only."""
    for path in folder.rglob("*"):
        if path.is_file() and hasattr(os, "posix_fadvise"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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


def memory() -> dict[str, int]:
    """Resident bytes of this process: its own (anonymous), and those of files that others can use too."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux
        return {"all": peak_memory()}
    kilobytes = dict(re.findall(r"(\w+):\s*(\d+) kB", status))
    return {name: int(kilobytes[key]) * 1024 for name, key in KEYS.items()}


KEYS = {"all": "VmRSS", "own": "RssAnon", "files": "RssFile"}


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
