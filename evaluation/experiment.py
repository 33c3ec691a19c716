"""Corpus x configurations x rankers -> runs -> values, with timings: one JSON a run of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from corpora.corpus import Corpus, digest
from evaluation.machine import commit, forget_peak_memory, machine, peak_memory
from evaluation.metrics import evaluate, mean
from evaluation.record import Build, Experiment, Ranked
from evaluation.settings import configure, said
from ncs.embeddings import Embeddings
from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.progress import Track, silent
from ncs.rankers import Ranker, create_ranker
from ncs.types import Document, Run

BASELINE = "bm25"
DEPTH = 1000  # documents a query; what CoIR measures its latency at
MEASURES = ("mrr", "answered@1", "answered@5", "answered@10", "mrr@10", "ndcg@10", "recall@100")
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class System:
    """A ranker of the index, or one with other settings, fitted for the experiment only."""

    ranker: str
    config: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`ncs`, or `ncs:centre=true,stop_words=false`."""
        return f"{self.ranker}:{said(self.config, ',')}" if self.config else self.ranker


def run_experiment(
    corpus: Corpus,
    systems: Sequence[System],
    *,
    settings: Sequence[Mapping[str, object]] = ({},),
    measures: Sequence[str] = MEASURES,
    depth: int = DEPTH,
    track: Track = silent,
) -> Experiment:
    """Build an index for each of the settings and ask every query of every system; bm25 is always one.

    settings: changes to BuildConfig, by dotted name (`fasttext.dim`). Documents are extracted once.
    Exact duplicates are not merged: every judged document must stay findable.
    Raises BadInput for unknown settings, before anything is built, and for judged documents that are not there.
    """
    started_at = commit()
    configs = [configure(BuildConfig(deduplicate=False), changes) for changes in settings]
    documents = list(track(corpus.documents(), f"{corpus.name}: documents"))
    _check_judged(corpus, documents)
    if all(system.name != BASELINE for system in systems):
        systems = [System(BASELINE), *systems]
    plan = _Plan(corpus, systems, measures, depth, track)
    return Experiment(
        corpus=corpus.name,
        corpus_digest=digest(documents, corpus.queries, corpus.qrels),
        documents=len(documents),
        commit=started_at,
        machine=machine(),
        depth=depth,
        measures=list(measures),
        queries=list(corpus.qrels),
        builds=[_build(plan, documents, *each) for each in zip(configs, map(said, settings), strict=True)],
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is the same for every build."""

    corpus: Corpus
    systems: Sequence[System]
    measures: Sequence[str]
    depth: int
    track: Track


def _check_judged(corpus: Corpus, documents: Sequence[Document]) -> None:
    known = {document.id for document in documents}
    for query, grades in corpus.qrels.items():
        for id in grades:
            if id not in known:
                raise BadInput(f"{corpus.name}: {id!r}, judged for {query!r}, is not in the corpus; correct the qrels")


def _build(plan: _Plan, documents: Sequence[Document], config: BuildConfig, settings: str) -> Build:
    with tempfile.TemporaryDirectory(prefix="ncs-evaluate-") as folder:
        forget_peak_memory()
        start = time.perf_counter()
        with Index.of(documents, Path(folder) / "index", config=config, track=plan.track) as index:
            seconds = time.perf_counter() - start
            return Build(
                settings=settings,
                config=asdict(config),
                versions=index.manifest.versions,
                seconds=_stages(index),
                build_seconds=round(seconds, 2),
                index_bytes=sum(path.stat().st_size for path in index.data.rglob("*") if path.is_file()),
                peak_memory_bytes=peak_memory(),
                systems=[_rank(plan, index, system, settings) for system in plan.systems],
            )


def _stages(index: Index) -> Mapping[str, float]:
    return cast(Mapping[str, float], index.manifest.counts["seconds"])


def _rank(plan: _Plan, index: Index, system: System, settings: str) -> Ranked:
    corpus, depth = plan.corpus, plan.depth
    ranker, fit_seconds = _fitted(index, system)
    ranker.search(corpus.queries[0].text, depth)  # opens files; the first query would pay for it
    run: dict[str, dict[str, float]] = {}
    milliseconds = []
    judged = [query for query in corpus.queries if query.id in corpus.qrels]
    stage = " ".join(filter(None, (corpus.name, settings, system.name)))
    for query in plan.track(judged, stage, total=len(judged), unit="queries"):
        start = time.perf_counter()
        rows = ranker.search(query.text, depth)
        ids = index.store.ids([row for row, _ in rows])
        milliseconds.append((time.perf_counter() - start) * 1000)
        run[query.id] = {id: score for id, (_, score) in zip(ids, rows, strict=True)}
    means, values = judge(corpus, run, plan.measures)
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return Ranked(system.name, fit_seconds, round(float(p50), 3), round(float(p95), 3), means, values)


def judge(corpus: Corpus, run: Run, measures: Sequence[str]) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The mean of each measure, and its values in the order of the qrels, to six decimals."""
    values = {measure: evaluate(corpus.qrels, run, measure) for measure in measures}
    means = {measure: round(mean(found), 6) for measure, found in values.items()}
    return means, {measure: [round(value, 6) for value in found.values()] for measure, found in values.items()}


def _fitted(index: Index, system: System) -> tuple[Ranker, float | None]:
    """A ranker and the seconds its own fitting took; of one made of others, the seconds of these."""
    if not system.config:
        ranker = index.ranker(system.ranker)
        parts = cast(Sequence[str], ranker.config.get("parts", (system.ranker,)))
        stages = _stages(index)
        return ranker, round(sum(stages[part] for part in parts), 2) if set(parts) <= stages.keys() else None
    ranker = create_ranker(system.ranker, **system.config)
    words, embeddings = index.words(), Embeddings.load(index.data)
    start = time.perf_counter()
    ranker.fit(words, embeddings)
    return ranker, round(time.perf_counter() - start, 2)
