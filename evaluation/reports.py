"""Experiments as Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import compress, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from evaluation import experiments
from evaluation.experiments import BASELINE, Build, Experiment, Ranked, changed_settings, settings_text
from evaluation.measures import interval, mean, paired_interval
from ncs.errors import BadInput

BEGIN, END = "<!-- tables: bin/evaluate --readme -->", "<!-- end of tables -->"
Pair = tuple[str, str]
"""Two systems that a page compares query by query."""
Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Head and rows."""
SIZES = (3_000, 10_000, 30_000)
"""Documents of a corpus, at most, in each class of `by_size` but the last."""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns.

    >>> print(markdown_table(["ranker", "mrr"], [["bm25", "0.5"]]))
    | ranker | mrr |
    |--------|-----|
    | bm25   | 0.5 |
    """
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def splits(experiment: Experiment) -> dict[str, list[str]]:
    """suffix -> its measures: ` at 0.6` and ` at 0.25` for judged hits, nothing for others.

    The first measure of each is a reciprocal rank, where the experiment measured one.
    """
    measures: dict[str, list[str]] = {}
    for measure in experiment.measures:
        match = re.search(r" at [0-9.]+$", measure)
        measures.setdefault(match[0] if match else "", []).append(measure)
    return measures


def first_ranks(experiment: Experiment, result: Ranked, suffix: str = "") -> dict[str, int]:
    """query id -> FRank, 0 without a relevant hit: the inverse of the deepest reciprocal rank; BadInput without any."""
    depths = {
        name: float(match[2] or "inf")
        for name in splits(experiment).get(suffix, [])
        if (match := re.match(r"mrr(@(\d+))?( at |$)", name))
    }
    if not depths:
        raise BadInput(f"{experiment.corpus}: first ranks need --measure mrr{suffix}, which was not measured")
    values = experiment.values(result, max(depths, key=depths.__getitem__))
    return {query: round(1 / value) if value else 0 for query, value in values.items()}


# Tables.


def tables(experiment: Experiment, baseline: str = BASELINE) -> list[Table]:
    """Hits judged at thresholds: a row per system of each index. One build: a row per system, all measures.

    Several builds: a row for each of the settings, a column per system, and a second table of the differences to the
    same system under the first settings. Means come with their bootstrap intervals, differences to the baseline of the
    same build with their paired ones.
    """
    if "" not in splits(experiment):
        return [_threshold_table(experiment, baseline)]
    if len(experiment.builds) == 1:
        return [_systems_table(experiment, experiment.builds[0], baseline)]
    return _sweep_tables(experiment)


def table(experiment: Experiment, baseline: str = BASELINE) -> str:
    """`tables` as Markdown."""
    return "\n\n".join(markdown_table(*each) for each in tables(experiment, baseline))


def _systems_table(experiment: Experiment, build: Build, baseline: str) -> Table:
    measure, *others = experiment.measures
    optional = ("fit s", "tokens", "embed ms, doc / query", "MiB")  # shown where any system has them
    head = ["ranker", f"{measure} [95 %]", f"to {baseline} [95 %]", *others, "fit s", "p50 ms", "p95 ms", *optional[1:]]
    base = experiment.values(build.system(baseline), measure)
    rows = []
    for result in build.systems:
        own = experiment.values(result, measure)
        document_ms, query_ms = result.embed_document_ms, result.embed_query_ms or 0
        rows.append([
            result.system,
            mean_text(own),
            difference_text(own, base) if result.system != baseline else "",
            *(_cell(experiment, result, name) for name in others),
            "" if result.fit_seconds is None else f"{result.fit_seconds:.1f}",
            f"{result.query_ms_p50:.1f}",
            f"{result.query_ms_p95:.1f}",
            f"{fmean(result.tokens):.0f}" if result.tokens else "",
            "" if document_ms is None else f"{document_ms:.2f} / {query_ms:.2f}",
            "" if result.index_bytes is None else f"{result.index_bytes / 2**20:.1f}",
        ])  # fmt: skip
    shown = [name not in optional or any(row[at] for row in rows) for at, name in enumerate(head)]
    return list(compress(head, shown)), [list(compress(row, shown)) for row in rows]


def _threshold_table(experiment: Experiment, baseline: str) -> Table:
    several = len(experiment.builds) > 1
    head, rows = ["index"] * several + ["ranker"], []
    for suffix, (first, *others) in splits(experiment).items():
        depths = "/".join(re.findall(r"@(\d+)", " ".join(others)))
        head += [f"answered@{depths}{suffix}", f"{first} [95 %]", f"to {baseline} [95 %]"]
    for build in experiment.builds:
        for result in build.systems:
            row = [build.settings] * several + [result.system]
            for first, *others in splits(experiment).values():
                own, base = (experiment.values(each, first) for each in (result, build.system(baseline)))
                counts = [round(result.means[measure] * len(experiment.queries)) for measure in others]
                difference = difference_text(own, base) if result.system != baseline else ""
                row += ["/".join(map(str, counts)), mean_text(own), difference]
            rows.append([*row, f"{result.query_ms_p50:.1f}"])
    return [*head, "p50 ms"], rows


def _sweep_tables(experiment: Experiment) -> list[Table]:
    measure = experiment.measures[0]
    values = [[experiment.values(result, measure) for result in build.systems] for build in experiment.builds]
    names = [build.settings or "the defaults" for build in experiment.builds]
    systems = [result.system for result in experiment.builds[0].systems]
    means = [
        [name, *map(mean_text, row), f"{build.build_seconds:.1f}"]
        for name, row, build in zip(names, values, experiment.builds, strict=True)
    ]
    changes = [[name, *map(difference_text, row, values[0])] for name, row in zip(names[1:], values[1:], strict=True)]
    return [([f"{measure} [95 %]", *systems, "build s"], means), ([f"to {names[0]} [95 %]", *systems], changes)]


def averages(results: Sequence[Experiment]) -> str:
    """A row per system of each of the settings: its means averaged over the corpora, as CoIR averages its tasks."""
    rows = []
    for builds in zip(*(each.builds for each in results), strict=True):
        for systems in zip(*(build.systems for build in builds), strict=True):
            means = [sum(each.means[name] for each in systems) / len(systems) for name in results[0].measures]
            rows.append([f"{builds[0].settings} {systems[0].system}".strip(), *(f"{value:.3f}" for value in means)])
    return markdown_table(["ranker", *results[0].measures], rows)


def by_size(results: Sequence[Experiment]) -> str:
    """A row per system and class of SIZES: the means, over the questions of all corpora of that size, of the measures
    that all have.
    """
    first, *others = results
    measures = [name for name in first.measures if all(name in each.measures for each in others)]
    systems = [result.system for result in first.builds[0].systems]
    systems = [name for name in systems if all(name in [s.system for s in each.builds[0].systems] for each in others)]
    rows = []
    for low, high in pairwise((0, *SIZES, 1 << 62)):
        members = [each for each in results if low < each.documents <= high]
        label = f"to {high:,}" if high in SIZES else "more"
        for system in systems if members else ():
            found = [(each.corpus, each, each.builds[0].system(system)) for each in members]
            columns = [
                {f"{corpus}/{id}": value for corpus, each, own in found for id, value in each.values(own, name).items()}
                for name in measures
            ]
            counts = [str(len(members)), str(sum(len(each.queries) for each in members))]
            rows.append([label, *counts, system, *map(mean_text, columns)])
    return markdown_table(["documents", "corpora", "questions", "ranker", *measures], rows)


def mean_text(values: Mapping[str, float]) -> str:
    """A mean with its interval."""
    low, high = interval(values)
    return f"{mean(values):.3f} [{low:.3f}, {high:.3f}]"


def difference_text(values: Mapping[str, float], base: Mapping[str, float]) -> str:
    """A mean difference with its paired interval."""
    if values == base:
        return "equal"
    difference, low, high = paired_interval(values, base)
    return f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]"


def _cell(experiment: Experiment, result: Ranked, measure: str) -> str:
    value = result.means[measure]
    if measure.startswith("answered"):
        return f"{round(value * len(experiment.queries))} ({value:.1%})"
    return f"{value:.3f}"


def caption(experiment: Experiment) -> str:
    """Sizes, commit, corpus and machine, and of one build its cost."""
    machine = experiment.machine
    dirty = "+" * experiment.commit.endswith("+")
    depth = f"the first {experiment.depth:,} hits of each" + ", " * bool(experiment.candidates) + experiment.candidates
    about = (
        f"{experiment.documents:,} documents, {len(experiment.queries):,} queries, {depth}; "
        f"commit {experiment.commit[:10]}{dirty}, corpus "
        f"{experiment.corpus_digest[:10]}; {machine.get('processor', machine['system'])}, {machine['cores']} cores, "
        f"{machine.get('memory_gib', '?')} GiB, Python {machine['python']}."
    )
    return "\n".join([about, *(map(cost, experiment.builds) if len(experiment.builds) == 1 else ())])


def cost(build: Build) -> str:
    """The cost of a build: seconds per stage, size, memory; and its updates."""
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in build.seconds.items())
    text = (
        f"Build{f' with {build.settings}' * bool(build.settings)}: {build.build_seconds:.1f} s ({stages}), "
        f"index {build.index_bytes / 2**20:.1f} MiB, peak memory {build.peak_memory_bytes / 2**20:,.0f} MiB."
    )
    return text if build.updates is None else f"{text}\n{_updates(build.updates)}"


def _updates(updates: Mapping[str, Any]) -> str:
    """The updates in a line: their time, and what the comparisons gave."""
    seconds, checks = updates["seconds"], updates["checks"]
    text = f"{len(seconds):,} updates, {sum(updates['compactions'])} of them compactions"
    if seconds:
        p50, p95 = np.percentile(seconds, [50, 95])
        text += f": p50 {p50:.1f} s, p95 {p95:.1f} s"
    if not checks:
        return f"{text}."
    same = sum(not check["missing"] and not check["extra"] for check in checks)
    sides = [_side(name, checks) for name in checks[0]["rankings"]]
    several = sum(check["segments"] > 1 for check in checks)
    compared = f"{len(checks)} updated indexes against whole builds ({several} of several segments)"
    return f"{text}. {compared}: the same documents in {same}; {'; '.join(sides)} (updated / built)."


def _side(name: str, checks: Sequence[Mapping[str, Any]]) -> str:
    rankings = [check["rankings"][name] for check in checks]
    shared = fmean(each["overlap"] for each in rankings)  # exact: from 3.12 on sum rounds otherwise
    updated, built = (sum(each[side]["acc@5"] for each in rankings) for side in ("updated", "built"))
    return f"{name}: {shared:.2f} of the first ten files the same, acc@5 {updated:.0f} / {built:.0f}"


def report(experiment: Experiment, baseline: str = BASELINE) -> str:
    """The tables and the caption."""
    return f"{table(experiment, baseline)}\n\n{caption(experiment)}\n"


def section(title: str, experiment: Experiment) -> str:
    """A heading and the report."""
    return f"### {title}\n\n{report(experiment)}"


def readme(text: str, results: Path) -> str:
    """A page with the tables of all committed results between its two marks; BadInput where these are missing.

    Of configurations only the settings that differ from today's defaults are shown.
    """
    if BEGIN not in text or END not in text:
        raise BadInput(f"no {BEGIN} ... {END} to put the tables between; add these two lines")
    sections = []
    for path in sorted(results.glob("*.json")):
        if '"corpus_digest"' in path.read_text(encoding="utf-8"):
            experiment = experiments.read(path)
            changes = settings_text(changed_settings(experiment.builds[0].config)) or "the defaults"
            sections.append(f"{section(path.stem, experiment)}Configuration: `{changes}`.\n")
    return f"{text[: text.index(BEGIN)]}{BEGIN}\n\n" + "\n".join(sections) + text[text.index(END) :]
