"""One system over one index: asked every query, timed, judged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from evaluation.latency import embedding_milliseconds, saved_bytes
from evaluation.metrics import CHALLENGE, challenge_ndcg, evaluate, mean
from evaluation.settings import said
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.types import Mask, Qrels, Query, Run


@dataclass(frozen=True, slots=True)
class System:
    """A ranker of the index, or one with other settings, fitted for the experiment only."""

    ranker: str
    config: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`ncs`, or `ncs:centre=true,stop_words=false`."""
        return f"{self.ranker}:{said(self.config, ',')}" if self.config else self.ranker


def fitted(index: Index, system: System) -> tuple[Ranker, float | None]:
    """A ranker and the seconds its own fitting took; of one made of others, the seconds of these."""
    if not system.config and index.has_ranker(system.ranker):
        ranker = index.ranker(system.ranker)
        parts = cast(Sequence[str], ranker.config.get("parts", (system.ranker,)))
        stages = cast(Mapping[str, float], index.manifest.counts["seconds"])
        return ranker, round(sum(stages[part] for part in parts), 2) if set(parts) <= stages.keys() else None
    start = time.perf_counter()
    ranker = index.fitted(system.ranker, **cast(Mapping[str, Any], system.config))
    return ranker, round(time.perf_counter() - start, 2)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a ranker answered, and the milliseconds of each query."""

    ranker: Ranker
    fit_seconds: float | None
    run: Run
    milliseconds: Sequence[float]


def ask(
    index: Index,
    system: System,
    queries: Sequence[Query],
    depth: int,
    *,
    candidates: Mapping[str, NDArray[np.int64]] | None = None,
    track: Track = silent,
    stage: str = "",
) -> Asked:
    """The first `depth` documents of every query, one query after the other, as CoIR measures retrieval (depth 1,000).

    candidates: query id -> the only rows to rank. The clock runs over search and document ids, not over the first
    query's opening of files.
    """
    ranker, fit_seconds = fitted(index, system)
    ranker.search(queries[0].text, depth)
    run: dict[str, dict[str, float]] = {}
    milliseconds = []
    for query in track(queries, stage, total=len(queries), unit="queries"):
        allowed = _mask(candidates[query.id], len(index)) if candidates else None
        start = time.perf_counter()
        rows = ranker.search(query.text, depth, allowed=allowed)
        ids = index.store.ids([row for row, _ in rows])
        milliseconds.append((time.perf_counter() - start) * 1000)
        run[query.id] = {id: score for id, (_, score) in zip(ids, rows, strict=True)}
    return Asked(ranker, fit_seconds, run, milliseconds)


def _mask(rows: NDArray[np.int64], n: int) -> Mask:
    mask = np.zeros(n, bool)
    mask[rows] = True
    return mask


def costs(index: Index, system: System, asked: Asked, queries: Sequence[Query]) -> dict[str, Any]:
    """The fields of Ranked that say what the answers cost."""
    p50, p95 = np.percentile(asked.milliseconds, [50, 95])
    document_ms, query_ms = embedding_milliseconds(index, asked.ranker, queries)
    return {
        "fit_seconds": asked.fit_seconds,
        "query_ms_p50": round(float(p50), 3),
        "query_ms_p95": round(float(p95), 3),
        "query_ms": [round(value, 3) for value in asked.milliseconds],
        "embed_document_ms": document_ms,
        "embed_query_ms": query_ms,
        "index_bytes": None if system.config else saved_bytes(index, asked.ranker),
    }


def judge(
    qrels: Qrels, run: Run, measures: Sequence[str], *, grades: Mapping[str, Mapping[str, float]] | None = None
) -> tuple[dict[str, float], dict[str, list[float | None]]]:
    """The mean of each measure, and its values in the order of the qrels, to six decimals; None where left out.

    grades: mean grades of several judges, which CodeSearchNet's two NDCG count instead of the qrels.
    """
    values = {measure: _values(qrels, run, measure, grades) for measure in measures}
    means = {measure: round(mean(found), 6) for measure, found in values.items()}
    columns = {
        measure: [round(found[query], 6) if query in found else None for query in qrels]
        for measure, found in values.items()
    }
    return means, columns


def _values(
    qrels: Qrels, run: Run, measure: str, grades: Mapping[str, Mapping[str, float]] | None
) -> Mapping[str, float]:
    found = evaluate(qrels, run, measure)
    if grades is not None and measure in CHALLENGE:
        exact = {query: grades[query] for query in qrels}
        return challenge_ndcg(exact, run, within=measure == CHALLENGE[0])
    return found
