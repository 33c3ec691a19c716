"""Several corpora as one result: every query counts the same, whichever corpus it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from corpora.corpus import first_repeated
from evaluation.record import Build, Experiment, Ranked
from ncs.errors import BadInput


def pooled(name: str, experiments: Sequence[Experiment]) -> Experiment:
    """One experiment over the queries of all; costs add up, latencies are taken over all queries.

    Query ids that several corpora use get their corpus before them. Raises BadInput where the experiments do not
    have the same systems, settings, measures and depth.
    """
    first = experiments[0]
    if len(experiments) == 1:
        return replace(first, corpus=name)
    if any(_shape(each) != _shape(first) for each in experiments):
        raise BadInput(f"{name}: the corpora were not asked alike; give them the same rankers, settings and measures")
    ids = [query for each in experiments for query in each.queries]
    if first_repeated(ids) is not None:
        ids = [f"{each.corpus}/{query}" for each in experiments for query in each.queries]
    return replace(
        first,
        corpus=name,
        corpus_digest=hashlib.sha256("".join(each.corpus_digest for each in experiments).encode()).hexdigest(),
        documents=sum(each.documents for each in experiments),
        queries=ids,
        texts=[text for each in experiments for text in each.texts],
        builds=[_build([each.builds[i] for each in experiments]) for i in range(len(first.builds))],
    )


def _shape(experiment: Experiment) -> tuple[object, ...]:
    systems = [[build.settings, [ranked.system for ranked in build.systems]] for build in experiment.builds]
    return systems, list(experiment.measures), experiment.depth, experiment.candidates


def _build(builds: Sequence[Build]) -> Build:
    stages = list(dict.fromkeys(stage for build in builds for stage in build.seconds))
    return replace(
        builds[0],
        seconds={stage: round(sum(build.seconds.get(stage, 0) for build in builds), 2) for stage in stages},
        build_seconds=round(sum(build.build_seconds for build in builds), 2),
        index_bytes=sum(build.index_bytes for build in builds),
        peak_memory_bytes=max(build.peak_memory_bytes for build in builds),
        systems=[_ranked([build.systems[i] for build in builds]) for i in range(len(builds[0].systems))],
    )


def _ranked(parts: Sequence[Ranked]) -> Ranked:
    milliseconds = [value for part in parts for value in part.query_ms]
    p50, p95 = np.percentile(milliseconds, [50, 95])
    values = {name: [value for part in parts for value in part.values[name]] for name in parts[0].values}
    known = {name: [value for value in column if value is not None] for name, column in values.items()}
    return replace(
        parts[0],
        fit_seconds=_total([part.fit_seconds for part in parts], 2),
        query_ms_p50=round(float(p50), 3),
        query_ms_p95=round(float(p95), 3),
        query_ms=milliseconds,
        values=values,
        means={name: round(sum(column) / len(column), 6) if column else 0.0 for name, column in known.items()},
        embed_document_ms=_median([part.embed_document_ms for part in parts]),
        embed_query_ms=_median([part.embed_query_ms for part in parts]),
        index_bytes=_total([part.index_bytes for part in parts]),
    )


def _total(values: Sequence[float | int | None], digits: int | None = None) -> int | None:
    """The sum; None where any is not known."""
    known = [value for value in values if value is not None]
    return round(sum(known), digits) if len(known) == len(values) else None  # type: ignore[return-value]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(float(np.median(known)), 4) if known else None
