"""What a warm question costs on one core: each stage of the default ranker, beside brute-force faiss and bm25s alone.

    bin/benchmark query INDEX --queries FILE [--cpu] [--json FILE]

FILE: questions as `bin/evaluate-stackoverflow` takes them (.json), or a question a line. All answer in this process,
one question after the other, files open; of ROUNDS the fastest counts, so that neighbours on the machine do not.
Stages are without those inside them: they add up to the whole.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

from ncs.exit_status import ending

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[_threads] = "1"

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from corpora.ncs287 import read_questions
from evaluation.lexical_engines import Bm25s
from evaluation.machine import commit, machine
from evaluation.report import aligned
from ncs.errors import BadInput
from ncs.index import Index
from ncs.learn.tfidf import TfidfEncoder
from ncs.search import candidates, hybrid
from ncs.search.hybrid import HybridRanker
from ncs.search.ncs import NcsRanker
from ncs.search.signals import consensus, naming, priors, proximity
from ncs.storage.postings import Postings
from ncs.storage.vectors import VectorIndex
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize

ROUNDS, HITS, K = 5, 10, 100
"""K: what the others are asked for; it is what their own benchmarks ask."""
REST = "rest"
STAGES: Mapping[str, Sequence[tuple[Any, str]]] = {
    "lexical": [(Postings, "search_ids"), (Postings, "scores")],
    "dense": [(TfidfEncoder, "query"), (VectorIndex, "search"), (VectorIndex, "similarities")],
    "candidates": [(candidates, "find")],
    "evidence": [(consensus, "gather"), (consensus, "consensus_signal"), (consensus, "file_signal")],
    "names": [(naming, "agreement"), (naming, "direction"), (naming, "definition"), (proximity, "agreement")],
    "factors": [(priors, "body_factors"), (priors, "quality_factors"), (priors, "role_factors")],
    "ordering": [(hybrid, "_best")],
}
"""Stage -> what runs in it: owner and name of functions."""


@ending("query")
def main(argv: Sequence[str] | None = None) -> int:
    """Print p50 and p95 of everything; --json also writes every question's milliseconds."""
    parser = argparse.ArgumentParser(prog="benchmark query", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument(
        "--cpu", action="store_true", help="CPU time instead of time passed: for a machine that is busy"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    with Index.load(args.index) as index:
        report = measure(index, read_texts(args.queries), cpu=args.cpu)
    sys.stdout.write(table(report) + "\n")
    if args.json:
        text = re.sub(r"\[[^][{}]*\]", lambda list_: " ".join(list_[0].split()), json.dumps(report, indent=1))
        args.json.write_text(text + "\n", encoding="utf-8")
    return 0


def read_texts(path: Path) -> list[str]:
    """Questions of a file; BadInput for one without."""
    if path.suffix == ".json":
        return [question.query.text for question in read_questions(path)]
    try:
        texts = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror}); name a file with a question a line") from None
    if not texts:
        raise BadInput(f"{path} holds no question; write one a line")
    return texts


def measure(index: Index, texts: Sequence[str], *, cpu: bool = False) -> dict[str, Any]:
    """Milliseconds of every question: of the stages of `hybrid`, and of what it is compared with."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ranker = cast(HybridRanker, index.ranker("hybrid"))
    dense = cast(NcsRanker, ranker.opened.dense)
    words = [content_words(tokenize(text)) for text in texts]
    with watched(cpu=cpu) as clock:
        staged = [_fastest(lambda text=text: _staged(ranker, text, clock)) for text in texts]  # type: ignore[misc]
    stages = list(dict.fromkeys(name for each in staged for name in each))
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as folder:
        Bm25s.index(index.words(), Path(folder))
        bm25s = Bm25s.open(Path(folder))
        others: dict[str, Callable[[int], object]] = {
            "hybrid, not watched": lambda n: ranker.search(texts[n], HITS),
            "faiss, brute force": lambda n: dense.search(texts[n], K),
            "bm25s": lambda n: bm25s(words[n], False),
            "bm25, ours": lambda n: index.ranker("bm25").search(texts[n], K),
        }
        alone = {name: [_timed(ask, n, cpu) for n in range(len(texts))] for name, ask in others.items()}
    return {
        "commit": commit(), "machine": machine(), "load": os.getloadavg()[0],
        "clock": "cpu" if cpu else "wall", "documents": len(index),
        "questions": len(texts), "hits": HITS, "k": K, "rounds": ROUNDS,
        "stages_ms": {name: [round(each.get(name, 0.0), 4) for each in staged] for name in stages},
        "others_ms": alone,
    }  # fmt: skip


def _staged(ranker: HybridRanker, text: str, clock: Clock) -> dict[str, float]:
    clock.seconds = {}
    with clock(REST):
        ranker.search(text, HITS)
    return {name: 1000 * seconds for name, seconds in clock.seconds.items()}


def _fastest(ask: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The stages of the fastest round."""
    return min((ask() for _ in range(ROUNDS)), key=lambda stages: sum(stages.values()))


def _timed(ask: Callable[[int], object], n: int, cpu: bool) -> float:
    """Milliseconds of the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = _now(cpu)
        ask(n)
        best = min(best, _now(cpu) - start)
    return round(1000 * best, 4)


def _now(cpu: bool) -> float:
    return time.thread_time() if cpu else time.perf_counter()


class Clock:
    """Seconds a stage, without the stages inside it; cpu: those of this thread only."""

    def __init__(self, *, cpu: bool = False) -> None:
        self._cpu = cpu
        self.seconds: dict[str, float] = {}
        self._inside: list[float] = []

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        self._inside.append(0.0)
        start = _now(self._cpu)
        try:
            yield
        finally:
            spent = _now(self._cpu) - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent - self._inside.pop()
            if self._inside:
                self._inside[-1] += spent


@contextmanager
def watched(*, cpu: bool = False) -> Iterator[Clock]:
    """A clock that runs over the stages of every hybrid ranker, until it is left."""
    clock = Clock(cpu=cpu)
    before = [(owner, name, getattr(owner, name)) for places in STAGES.values() for owner, name in places]
    for stage, places in STAGES.items():
        for owner, name in places:
            setattr(owner, name, _within(clock, stage, getattr(owner, name)))
    try:
        yield clock
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def _within(clock: Clock, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **options: Any) -> Any:
        with clock(stage):
            return function(*args, **options)

    return timed


def table(report: Mapping[str, Any]) -> str:
    """p50 and p95 of each stage, of the whole, and of the others."""
    stages = report["stages_ms"]
    whole = np.sum(list(stages.values()), axis=0)
    rows = [[f"hybrid: {name}", *_percentiles(values)] for name, values in stages.items()]
    rows.append(["hybrid: whole", *_percentiles(whole)])
    rows += [[name, *_percentiles(values)] for name, values in report["others_ms"].items()]
    head = f"{report['documents']:,} documents, {report['questions']} questions, one core, load {report['load']:.1f}"
    head += ", CPU time" if report.get("clock") == "cpu" else ""
    return f"{head}\n\n{aligned(['ms', 'p50', 'p95'], rows)}"


def _percentiles(values: Any) -> list[str]:
    return [f"{np.percentile(values, p):.2f}" for p in (50, 95)]


if __name__ == "__main__":
    sys.exit(main())
