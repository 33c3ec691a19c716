"""Corpus x configurations x rankers -> runs -> values, with timings: one JSON a run of it."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from corpora.corpus import Corpus, digest
from corpora.trec import write_run
from evaluation.asking import System, ask, costs, judge
from evaluation.distractors import batched, drawn
from evaluation.machine import commit, forget_peak_memory, machine, peak_memory
from evaluation.record import Build, Experiment, Ranked
from evaluation.settings import configure, said
from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.progress import Track, silent
from ncs.types import Document, Qrels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BASELINE = "bm25"
DEPTH = 1000  # documents a query; what CoIR measures its latency at
MEASURES = ("mrr", "answered@1", "answered@5", "answered@10", "mrr@10", "ndcg@10", "recall@100")
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Among:
    """Rank each query among its own documents and `count` distractors only (evaluation.distractors).

    batches: CodeSearchNet's released code, whole batches of queries; otherwise drawn for each query.
    """

    count: int
    seed: int = 0
    batches: bool = False

    def __str__(self) -> str:
        how = f"in batches of {self.count + 1:,}" if self.batches else f"among {self.count:,} drawn distractors"
        return f"{how}, seed {self.seed}"

    def rows(self, documents: Sequence[Document], qrels: Qrels) -> dict[str, NDArray[np.int64]]:
        """query id -> the rows it is ranked among; queries without a relevant document are left out.

        Raises BadInput where no documents are judged, or too few are there.
        """
        row_of = {document.id: row for row, document in enumerate(documents)}
        relevant = {
            query: rows
            for query, grades in qrels.items()
            if (rows := [row_of[id] for id, grade in grades.items() if grade > 0 and id in row_of])
        }
        if not relevant:
            raise BadInput("no query has a relevant document to rank among distractors; leave --distractors away")
        if self.batches:
            return batched(relevant, size=self.count + 1, seed=self.seed)
        return drawn(relevant, len(documents), count=self.count, seed=self.seed)


def run_experiment(
    corpus: Corpus,
    systems: Sequence[System],
    *,
    settings: Sequence[Mapping[str, object]] = ({},),
    measures: Sequence[str] = MEASURES,
    depth: int = DEPTH,
    among: Among | None = None,
    runs: Path | None = None,
    track: Track = silent,
) -> Experiment:
    """Build an index for each of the settings and ask every query of every system; bm25 is always one.

    settings: changes to BuildConfig, by dotted name (`fasttext.dim`). Documents are extracted once.
    runs: folder to write every ranking to, as TREC run files.
    Exact duplicates are not merged: every judged document must stay findable.
    Raises BadInput for unknown settings, before anything is built, and for judged documents that are not there.
    """
    started_at = commit()
    configs = [configure(BuildConfig(deduplicate=False), changes) for changes in settings]
    documents = list(track(corpus.documents(), f"{corpus.name}: documents"))
    _check_judged(corpus, documents)
    if all(system.name != BASELINE for system in systems):
        systems = [System(BASELINE), *systems]
    candidates = among.rows(documents, corpus.qrels) if among else None
    judged = corpus if candidates is None else replace(corpus, qrels={id: corpus.qrels[id] for id in candidates})
    plan = _Plan(judged, systems, measures, depth, candidates, runs, track)
    texts = {query.id: query.text for query in corpus.queries}
    return Experiment(
        corpus=corpus.name,
        corpus_digest=digest(documents, corpus.queries, corpus.qrels),
        documents=len(documents),
        commit=started_at,
        machine=machine(),
        depth=depth,
        measures=list(measures),
        queries=list(judged.qrels),
        builds=[_build(plan, documents, *each) for each in zip(configs, map(said, settings), strict=True)],
        texts=[texts[query] for query in judged.qrels],
        candidates=str(among or ""),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is the same for every build."""

    corpus: Corpus
    systems: Sequence[System]
    measures: Sequence[str]
    depth: int
    candidates: Mapping[str, NDArray[np.int64]] | None
    runs: Path | None
    track: Track


def _check_judged(corpus: Corpus, documents: Sequence[Document]) -> None:
    if corpus.fold is not None:  # files are judged, also those without a function
        return
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
                config=index.manifest.config,
                versions=index.manifest.versions,
                seconds=cast(Mapping[str, float], index.manifest.counts["seconds"]),
                build_seconds=round(seconds, 2),
                index_bytes=sum(path.stat().st_size for path in index.data.rglob("*") if path.is_file()),
                peak_memory_bytes=peak_memory(),
                systems=[_rank(plan, index, system, settings) for system in plan.systems],
            )


def _rank(plan: _Plan, index: Index, system: System, settings: str) -> Ranked:
    corpus = plan.corpus
    judged = [query for query in corpus.queries if query.id in corpus.qrels]
    stage = " ".join(filter(None, (corpus.name, settings, system.name)))
    asked = ask(index, system, judged, plan.depth, candidates=plan.candidates, track=plan.track, stage=stage)
    run = corpus.judged_run(asked.run)
    if plan.runs:
        plan.runs.mkdir(parents=True, exist_ok=True)
        write_run(run, plan.runs / f"{re.sub(r'[^A-Za-z0-9_.=-]+', '-', stage)}.run", tag=system.ranker)
    means, values = judge(corpus.qrels, run, plan.measures, grades=corpus.grades)
    return Ranked(system.name, means=means, values=values, **costs(index, system, asked, judged))
