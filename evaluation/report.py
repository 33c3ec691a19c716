"""Experiments as tables: Markdown that reads as plain text too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evaluation.experiment import BASELINE
from evaluation.record import Build, Experiment, Ranked
from evaluation.sheets import splits
from evaluation.significance import interval, paired_interval

_Row = Sequence[str]


def table(experiment: Experiment) -> str:
    """One build: a row a system, all measures. Several: a row for each of the settings, a column a system.

    The first measure comes with its bootstrap interval and its paired difference: to bm25 in the same
    build, or, of several builds, to the same system under the first settings (a second table).
    """
    if len(experiment.builds) == 1:
        return _systems(experiment, experiment.builds[0])
    return _sweep(experiment)


def _systems(experiment: Experiment, build: Build) -> str:
    measure, *others = experiment.measures
    costs = _known_costs(build)
    head = ["ranker", f"{measure} [95 %]", f"to {BASELINE} [95 %]", *others, "fit s", "p50 ms", "p95 ms", *costs]
    values = {ranked.system: _values(experiment, ranked) for ranked in build.systems}
    rows = []
    for ranked in build.systems:
        own = values[ranked.system]
        row = [ranked.system, _mean(own), _difference(own, values[BASELINE]) if ranked.system != BASELINE else ""]
        row += [_cell(experiment, ranked, name) for name in others]
        fit = "" if ranked.fit_seconds is None else f"{ranked.fit_seconds:.1f}"
        row += [fit, f"{ranked.query_ms_p50:.1f}", f"{ranked.query_ms_p95:.1f}"]
        rows.append([*row, *(column[ranked.system] for column in costs.values())])
    return aligned(head, rows)


def _known_costs(build: Build) -> dict[str, dict[str, str]]:
    """Columns of embedding latency (a document / a query) and of the rankers' own files, where any is known."""
    embedding = {
        ranked.system: f"{ranked.embed_document_ms:.2f} / {ranked.embed_query_ms or 0:.2f}"
        if ranked.embed_document_ms is not None
        else ""
        for ranked in build.systems
    }
    size = {
        ranked.system: f"{ranked.index_bytes / 2**20:.1f}" if ranked.index_bytes is not None else ""
        for ranked in build.systems
    }
    columns = {"embed ms, doc / query": embedding, "MiB": size}
    return {name: column for name, column in columns.items() if any(column.values())}


def averages(experiments: Sequence[Experiment]) -> str:
    """A row a system of each of the settings: its means averaged over the corpora, as CoIR averages its tasks."""
    first = experiments[0]
    rows = [
        [f"{build.settings} {ranked.system}".strip()]
        + [
            f"{sum(each.builds[b].systems[s].means[measure] for each in experiments) / len(experiments):.3f}"
            for measure in first.measures
        ]
        for b, build in enumerate(first.builds)
        for s, ranked in enumerate(build.systems)
    ]
    return aligned(["ranker", *first.measures], rows)


def judged_table(experiment: Experiment) -> str:
    """Questions judged at thresholds: a row a system of each index; per threshold the answered counts and the MRR.

    MRR comes with its bootstrap interval and the paired difference to bm25 over the same index.
    """
    parts = splits(experiment)
    many = len(experiment.builds) > 1
    head = ["index"] * many + ["ranker"]
    for suffix, measures in parts.items():
        depths = "/".join(re.findall(r"@(\d+)", " ".join(measures[1:])))
        first = measures[0].removesuffix(suffix)
        head += [f"answered@{depths}{suffix}", f"{first}{suffix} [95 %]", f"to {BASELINE} [95 %]"]
    rows = [
        [build.settings] * many + _judged_row(experiment, build, ranked, parts)
        for build in experiment.builds
        for ranked in build.systems
    ]
    return aligned([*head, "p50 ms"], rows)


def _judged_row(experiment: Experiment, build: Build, ranked: Ranked, parts: Mapping[str, Sequence[str]]) -> list[str]:
    cells = [ranked.system]
    baseline = next(other for other in build.systems if other.system == BASELINE)
    for first, *answered in parts.values():
        own = experiment.values(ranked, first)
        counts = [round(ranked.means[measure] * len(experiment.queries)) for measure in answered]
        cells += ["/".join(map(str, counts)), _mean(own)]
        cells.append(_difference(own, experiment.values(baseline, first)) if ranked is not baseline else "")
    return [*cells, f"{ranked.query_ms_p50:.1f}"]


def _sweep(experiment: Experiment) -> str:
    values = [[_values(experiment, ranked) for ranked in build.systems] for build in experiment.builds]
    names = [build.settings or "the defaults" for build in experiment.builds]
    systems = [ranked.system for ranked in experiment.builds[0].systems]
    means = [
        [name, *map(_mean, row), f"{build.build_seconds:.1f}"]
        for name, row, build in zip(names, values, experiment.builds, strict=True)
    ]
    differences = [[name, *map(_difference, row, values[0])] for name, row in zip(names[1:], values[1:], strict=True)]
    return (
        aligned([f"{experiment.measures[0]} [95 %]", *systems, "build s"], means)
        + "\n\n"
        + aligned([f"to {names[0]} [95 %]", *systems], differences)
    )


def caption(experiment: Experiment) -> str:
    """What was measured, on what, and what the builds cost."""
    machine = experiment.machine
    dirty = "+" * experiment.commit.endswith("+")
    asked = f"{experiment.depth:,} documents a query" + ", " * bool(experiment.candidates) + experiment.candidates
    about = (
        f"{experiment.documents:,} documents, {len(experiment.queries):,} queries, {asked}; "
        f"commit {experiment.commit[:10]}{dirty}, corpus "
        f"{experiment.corpus_digest[:10]}; {machine.get('processor', machine['system'])}, {machine['cores']} cores, "
        f"{machine.get('memory_gib', '?')} GiB, Python {machine['python']}."
    )
    costs = map(cost, experiment.builds) if len(experiment.builds) == 1 else ()
    return "\n".join([about, *costs])


def cost(build: Build) -> str:
    """What a build took: seconds a stage, size, memory."""
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in build.seconds.items())
    return (
        f"Build{f' with {build.settings}' * bool(build.settings)}: {build.build_seconds:.1f} s ({stages}), "
        f"index {build.index_bytes / 2**20:.1f} MiB, peak memory {build.peak_memory_bytes / 2**20:,.0f} MiB."
    )


def aligned(head: _Row, rows: Sequence[_Row]) -> str:
    """A Markdown table whose columns stand under each other.

    >>> print(aligned(["ranker", "mrr"], [["bm25", "0.5"]]))
    | ranker | mrr |
    |--------|-----|
    | bm25   | 0.5 |
    """
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _values(experiment: Experiment, ranked: Ranked) -> Mapping[str, float]:
    return experiment.values(ranked, experiment.measures[0])


def _mean(values: Mapping[str, float]) -> str:
    low, high = interval(values)
    return f"{sum(values.values()) / len(values):.3f} [{low:.3f}, {high:.3f}]"


def _difference(values: Mapping[str, float], baseline: Mapping[str, float]) -> str:
    if values == baseline:
        return "equal"
    difference, low, high = paired_interval(values, baseline)
    return f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]"


def _cell(experiment: Experiment, ranked: Ranked, measure: str) -> str:
    mean = ranked.means[measure]
    if measure.startswith("answered"):
        return f"{round(mean * len(experiment.queries))} ({mean:.1%})"
    return f"{mean:.3f}"


def markdown(experiments: Sequence[Experiment]) -> str:
    """A heading, the table and the caption of each experiment."""
    return "\n".join(section(experiment.corpus, experiment) for experiment in experiments)


def section(title: str, experiment: Experiment) -> str:
    """A heading, the table that fits, the caption."""
    return f"### {title}\n\n{best_table(experiment)}\n\n{caption(experiment)}\n"


def best_table(experiment: Experiment) -> str:
    """The table that fits: of judged questions, of several systems, or of a sweep."""
    return judged_table(experiment) if "" not in splits(experiment) else table(experiment)
