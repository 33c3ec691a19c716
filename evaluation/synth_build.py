"""The index of functions that nobody wrote: made, learnt with a real index's word vectors, its vectors fitted again."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluation.fresh import memory
from evaluation.machine import forget_peak_memory, peak_memory
from evaluation.synthetic import Source, make, parts
from ncs.build.batches import Batch, Collected, Collector, pack_batch
from ncs.build.building import learn
from ncs.build.pipeline import Clock
from ncs.index import BuildConfig, Index
from ncs.learn.embeddings import Embeddings
from ncs.progress import silent
from ncs.search.rankers import create_ranker, fit_ranker
from ncs.storage.generations import new_generation

DENSE = ("ncs", "ncs_centred")


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
