"""Lexical engines side by side on one real corpus in one run: our postings, bm25s and tantivy.

    bin/benchmark lexical [--documents 100000] [--json FILE] [FOLDER ...]

The functions of the folders (default: the running Python's standard library and installed packages) are
extracted once and drawn again with replacement up to `--documents`. Each engine indexes them in a process of
its own, and answers in another: cold (process start to first answer), then warm. Questions are the first words
of functions' doc comments. Exactness is judged by bm25s's scores of all documents, ties by row.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.lexical_corpus import prepare
from evaluation.lexical_engines import ENGINES, PARTS
from ncs.exit_status import ending
from ncs.storage.words import WordTable

STARTS, ROUNDS = 5, 4


@ending("lexical")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; --json also writes it."""
    args = _arguments(argv)
    if args.step:
        print(json.dumps(_step(args.engine, args.step, args.work)))  # noqa: T201
        return 0
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as temporary:
        work = Path(temporary)
        facts = prepare(args.folders, args.documents, args.questions, work)
        report = {**facts, "engines": {name: _measure(name, work) for name in ENGINES}}
    print(_table(report))  # noqa: T201
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmark lexical", description=__doc__.split("\n")[0])
    paths = sysconfig.get_paths()
    default = [Path(paths["stdlib"]), Path(paths["purelib"])]
    parser.add_argument("folders", nargs="*", type=Path, default=default)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--json", type=Path)
    for hidden in ("--engine", "--step"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _measure(engine: str, work: Path) -> dict[str, Any]:
    """Index, ask cold and ask warm, each in a fresh process; of several cold starts the fastest counts."""
    try:
        figures = _child(engine, "index", work)
        figures |= min((_child(engine, "cold", work) for _ in range(STARTS)), key=lambda cold: cold["cold ms"])
        return figures | _child(engine, "warm", work)
    except subprocess.CalledProcessError as error:
        return {"failed": str(error.stderr).strip().split("\n")[-1]}


def _child(engine: str, step: str, work: Path) -> dict[str, float]:
    options = ["--engine", engine, "--step", step, "--work", str(work)]
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "evaluation.bench_lexical", *options],
        env={**os.environ, **one_thread, "NCS_BENCH_START": str(time.time())},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _step(engine: str, step: str, work: Path) -> dict[str, float]:
    return {"index": _index, "cold": _cold, "warm": _warm}[step](engine, work)


def _index(engine: str, work: Path) -> dict[str, float]:
    folder = work / engine.replace(" ", "_")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    words = WordTable.load(work)
    start = time.perf_counter()
    ENGINES[engine].index(words, folder)
    return {
        "index s": time.perf_counter() - start,
        "index CPU s": time.process_time(),
        "index peak MB": _resident("VmHWM"),
        "disk MB": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6,
    }


def _cold(engine: str, work: Path) -> dict[str, float]:
    text = json.loads((work / "questions.json").read_text())["texts"][0]
    ENGINES[engine].open(work / engine.replace(" ", "_"))(text, False)
    return {"cold ms": (time.time() - float(os.environ["NCS_BENCH_START"])) * 1e3}


def _warm(engine: str, work: Path) -> dict[str, float]:
    questions = json.loads((work / "questions.json").read_text())
    search = ENGINES[engine].open(work / engine.replace(" ", "_"))
    free, got = _timed(lambda text: search(text, False), questions["texts"])
    masked, got_masked = _timed(lambda text: search(text, True), questions["texts"])
    pairs = [(hits[: len(best)], best) for hits, best in zip(got, questions["want"], strict=True)]
    same = [[row for row, _ in hits] == [row for row, _ in best] for hits, best in pairs]
    errors = [abs(a / b - 1) for hits, best in pairs for (_, a), (_, b) in zip(hits, best, strict=False)]
    return {
        **{f"p{p} ms": float(np.percentile(free, p)) for p in (50, 95)},
        **{f"masked p{p} ms": float(np.percentile(masked, p)) for p in (50, 95)},
        "anonymous MB": _resident("RssAnon"),
        "mapped MB": _resident("RssFile"),
        "same first ten %": 100 * float(np.mean(same)),
        "score error %": 100 * max(errors),
        "mask broken": float(sum(row % PARTS != 0 for hits in got_masked for row, _ in hits)),
    }


def _timed(
    search: Callable[[Sequence[str]], list[tuple[int, float]]], texts: Sequence[Sequence[str]]
) -> tuple[list[float], list[list[tuple[int, float]]]]:
    """Milliseconds and hits of each question: the fastest of several rounds, so that neighbours on the machine
    and the first reading of a file do not count."""
    times = np.full(len(texts), np.inf)
    for _ in range(ROUNDS):
        hits = []
        for number, text in enumerate(texts):
            start = time.perf_counter()
            hits.append(search(text))
            times[number] = min(times[number], (time.perf_counter() - start) * 1e3)
    return times.tolist(), hits


def _resident(kind: str) -> float:
    """RssAnon, RssFile or VmHWM (the peak) of this process in MB; 0 where there is no /proc."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(kind)), 0.0)


def _table(report: Mapping[str, Any]) -> str:
    engines = report["engines"]
    rows = list(dict.fromkeys(key for figures in engines.values() for key in figures))
    head = (
        f"{report['documents']:,} functions ({report['distinct']:,} distinct), {report['words']:,} words, "
        f"{report['questions']} questions, {report['machine']}"
    )
    lines = [head, "", f"| {'':17} | " + " | ".join(f"{name:>12}" for name in engines) + " |"]
    lines.append("|" + "-" * 19 + "|" + "|".join(["-" * 13 + ":"] * len(engines)) + "|")
    for row in rows:
        cells = [figures.get(row, "") for figures in engines.values()]
        lines.append(f"| {row:17} | " + " | ".join(f"{_cell(cell):>12}" for cell in cells) + " |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
