"""Experiments as Markdown tables, CSV and score sheets, and the output options that all commands share."""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from corpora.ncs287 import write_score_sheet
from evaluation import experiments
from evaluation.experiments import BASELINE, Build, Experiment, Ranked
from evaluation.measures import compare, interval, paired_interval
from ncs.errors import BadInput

BEGIN, END = "<!-- tables: bin/evaluate --readme -->", "<!-- end of tables -->"
Pair = tuple[str, str]
"""Two systems that a page compares query by query."""
Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Head and rows."""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns stand under each other.

    >>> print(markdown_table(["ranker", "mrr"], [["bm25", "0.5"]]))
    | ranker | mrr |
    |--------|-----|
    | bm25   | 0.5 |
    """
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def splits(experiment: Experiment) -> dict[str, list[str]]:
    """suffix -> the measures that carry it: ` at 0.6` and ` at 0.25` for judged hits, nothing for others.

    The first measure of each is a reciprocal rank, where the experiment measured one.
    """
    measures: dict[str, list[str]] = {}
    for measure in experiment.measures:
        match = re.search(r" at [0-9.]+$", measure)
        measures.setdefault(match[0] if match else "", []).append(measure)
    return measures


def first_ranks(experiment: Experiment, result: Ranked, suffix: str = "") -> dict[str, int]:
    """query id -> FRank, 0 where nothing was found: the inverse of the reciprocal rank.

    Raises BadInput where no reciprocal rank was measured.
    """
    measured = [name for name in splits(experiment).get(suffix, []) if re.match(r"mrr(@\d+)?( at |$)", name)]
    if not measured:
        raise BadInput(f"{experiment.corpus}: first ranks need --measure mrr{suffix}, which was not measured")
    deepest = max(measured, key=_depth)
    return {query: round(1 / value) if value else 0 for query, value in experiment.values(result, deepest).items()}


def _depth(measure: str) -> float:
    match = re.match(r"mrr@(\d+)", measure)
    return int(match[1]) if match else float("inf")


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
        return [_systems(experiment, experiment.builds[0], baseline)]
    return _sweep(experiment)


def table(experiment: Experiment, baseline: str = BASELINE) -> str:
    """`tables` as Markdown."""
    return "\n\n".join(markdown_table(*each) for each in tables(experiment, baseline))


def _systems(experiment: Experiment, build: Build, baseline: str) -> Table:
    measure, *others = experiment.measures
    costs = _known_costs(build)
    head = ["ranker", f"{measure} [95 %]", f"to {baseline} [95 %]", *others, "fit s", "p50 ms", "p95 ms", *costs]
    base = experiment.values(build.system(baseline), measure)
    rows = []
    for result in build.systems:
        own = experiment.values(result, measure)
        row = [result.system, mean_text(own), difference_text(own, base) if result.system != baseline else ""]
        row += [_cell(experiment, result, name) for name in others]
        fit = "" if result.fit_seconds is None else f"{result.fit_seconds:.1f}"
        row += [fit, f"{result.query_ms_p50:.1f}", f"{result.query_ms_p95:.1f}"]
        rows.append([*row, *(column[result.system] for column in costs.values())])
    return head, rows


def _known_costs(build: Build) -> dict[str, dict[str, str]]:
    """Columns of embedding latency (a document / a query) and of the rankers' own files, where any is known."""
    embedding = {
        result.system: f"{result.embed_document_ms:.2f} / {result.embed_query_ms or 0:.2f}"
        if result.embed_document_ms is not None
        else ""
        for result in build.systems
    }
    size = {
        result.system: f"{result.index_bytes / 2**20:.1f}" if result.index_bytes is not None else ""
        for result in build.systems
    }
    columns = {"embed ms, doc / query": embedding, "MiB": size}
    return {name: column for name, column in columns.items() if any(column.values())}


def _threshold_table(experiment: Experiment, baseline: str) -> Table:
    parts = splits(experiment)
    many = len(experiment.builds) > 1
    head = ["index"] * many + ["ranker"]
    for suffix, measures in parts.items():
        depths = "/".join(re.findall(r"@(\d+)", " ".join(measures[1:])))
        first = measures[0].removesuffix(suffix)
        head += [f"answered@{depths}{suffix}", f"{first}{suffix} [95 %]", f"to {baseline} [95 %]"]
    rows = [
        [build.settings] * many + _judged_row(experiment, build, result, parts, baseline)
        for build in experiment.builds
        for result in build.systems
    ]
    return [*head, "p50 ms"], rows


def _judged_row(
    experiment: Experiment, build: Build, result: Ranked, parts: Mapping[str, Sequence[str]], baseline: str
) -> list[str]:
    cells, base = [result.system], build.system(baseline)
    for first, *answered in parts.values():
        own = experiment.values(result, first)
        counts = [round(result.means[measure] * len(experiment.queries)) for measure in answered]
        cells += ["/".join(map(str, counts)), mean_text(own)]
        cells.append(difference_text(own, experiment.values(base, first)) if result is not base else "")
    return [*cells, f"{result.query_ms_p50:.1f}"]


def _sweep(experiment: Experiment) -> list[Table]:
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
    first = results[0]
    rows = [
        [f"{build.settings} {result.system}".strip()]
        + [
            f"{sum(each.builds[b].systems[s].means[measure] for each in results) / len(results):.3f}"
            for measure in first.measures
        ]
        for b, build in enumerate(first.builds)
        for s, result in enumerate(build.systems)
    ]
    return markdown_table(["ranker", *first.measures], rows)


def mean_text(values: Mapping[str, float]) -> str:
    """A mean with its interval."""
    low, high = interval(values)
    return f"{sum(values.values()) / len(values):.3f} [{low:.3f}, {high:.3f}]"


def difference_text(values: Mapping[str, float], base: Mapping[str, float]) -> str:
    """A mean difference with its paired interval."""
    if values == base:
        return "equal"
    difference, low, high = paired_interval(values, base)
    return f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]"


def _cell(experiment: Experiment, result: Ranked, measure: str) -> str:
    mean = result.means[measure]
    if measure.startswith("answered"):
        return f"{round(mean * len(experiment.queries))} ({mean:.1%})"
    return f"{mean:.3f}"


def caption(experiment: Experiment) -> str:
    """What was measured, on what, and what the build cost."""
    machine = experiment.machine
    dirty = "+" * experiment.commit.endswith("+")
    depth = f"{experiment.depth:,} documents a query" + ", " * bool(experiment.candidates) + experiment.candidates
    about = (
        f"{experiment.documents:,} documents, {len(experiment.queries):,} queries, {depth}; "
        f"commit {experiment.commit[:10]}{dirty}, corpus "
        f"{experiment.corpus_digest[:10]}; {machine.get('processor', machine['system'])}, {machine['cores']} cores, "
        f"{machine.get('memory_gib', '?')} GiB, Python {machine['python']}."
    )
    return "\n".join([about, *(map(cost, experiment.builds) if len(experiment.builds) == 1 else ())])


def cost(build: Build) -> str:
    """What a build took: seconds per stage, size, memory."""
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in build.seconds.items())
    return (
        f"Build{f' with {build.settings}' * bool(build.settings)}: {build.build_seconds:.1f} s ({stages}), "
        f"index {build.index_bytes / 2**20:.1f} MiB, peak memory {build.peak_memory_bytes / 2**20:,.0f} MiB."
    )


def section(title: str, experiment: Experiment) -> str:
    """A heading, the tables, the caption."""
    return f"### {title}\n\n{table(experiment)}\n\n{caption(experiment)}\n"


def readme(text: str, results: Path) -> str:
    """A page with the tables of all committed results between its two marks; BadInput where these are missing."""
    if BEGIN not in text or END not in text:
        raise BadInput(f"no {BEGIN} ... {END} to put the tables between; add these two lines")
    sections = []
    for path in sorted(results.glob("*.json")):
        if '"corpus_digest"' in path.read_text(encoding="utf-8"):
            experiment = experiments.read(path)
            config = json.dumps(experiment.builds[0].config, sort_keys=True)
            sections.append(f"{section(path.stem, experiment)}Configuration: `{config}`\n")
    return f"{text[: text.index(BEGIN)]}{BEGIN}\n\n" + "\n".join(sections) + text[text.index(END) :]


# CSV and score sheets.


def write_csv(results: Sequence[Experiment], path: Path) -> None:
    """A line for each system of each index and threshold; means, intervals, and the paired difference to bm25."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [row for each in results for build in each.builds for row in _csv_rows(each, build)]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _csv_rows(experiment: Experiment, build: Build) -> list[dict[str, object]]:
    return [
        {
            "corpus": experiment.corpus,
            "index": build.settings,
            "ranker": result.system,
            "documents": build.documents or experiment.documents,
            "questions": len(experiment.queries),
            "k": experiment.depth,
            "threshold": suffix.removeprefix(" at "),
            **_figures(experiment, build, result, measures),
            "query_ms_p50": result.query_ms_p50,
            "query_ms_p95": result.query_ms_p95,
        }
        for result in build.systems
        for suffix, measures in splits(experiment).items()
    ]


def _figures(experiment: Experiment, build: Build, result: Ranked, measures: Sequence[str]) -> Mapping[str, object]:
    first = measures[0]
    own = experiment.values(result, first)
    low, high = interval(own)
    comparison = compare(own, experiment.values(build.system(BASELINE), first))
    names = {measure: re.sub(r" at .*", "", measure) for measure in measures}
    return {
        **{names[measure]: round(result.means[measure], 6) for measure in measures},
        **{
            f"{names[measure]} count": round(result.means[measure] * len(experiment.queries))
            for measure in measures
            if names[measure].startswith("answered")
        },
        f"{names[first]} low": round(low, 6),
        f"{names[first]} high": round(high, 6),
        f"difference to {BASELINE}": round(comparison.difference, 6),
        "difference low": round(comparison.low, 6),
        "difference high": round(comparison.high, 6),
        "p": round(comparison.p, 6),
    }


def write_score_sheets(experiment: Experiment, path: Path) -> None:
    """The FRank of every query at the paper's threshold into `path`, at the strict one into `<stem>.strict<suffix>`.

    In the form of the score sheet of the Neural Code Search Evaluation Dataset (Li et al. 2019):
    `No.,StackOverflow ID,<system> FRank,...`, NF where nothing was found, lines ended as on Windows.
    """
    suffixes = sorted(splits(experiment), key=lambda suffix: float(suffix.removeprefix(" at ") or 0))
    for suffix, target in zip(suffixes, [path, path.with_name(f"{path.stem}.strict{path.suffix}")], strict=False):
        ranks = {
            f"{build.settings}/{result.system}".strip("/"): first_ranks(experiment, result, suffix)
            for build in experiment.builds
            for result in build.systems
        }
        columns = {
            name: [ranks_by_query.get(query) or None for query in experiment.queries]
            for name, ranks_by_query in ranks.items()
        }
        write_score_sheet(experiment.queries, columns, target)


# Output options.

OUTPUTS: Mapping[str, str] = {
    "json": "everything: values of every query, timings, commit, machine",
    "csv": "a line per system and threshold",
    "sheet": "FRank of every query, as the published score sheet; a second one, .strict, for the other threshold",
    "markdown": "the tables",
    "html": "one page with tables and plots; pip install 'neural-code-search[evaluation]'",
}
"""Option -> what its file holds."""


def add_options(parser: argparse.ArgumentParser, kinds: Sequence[str] = tuple(OUTPUTS)) -> None:
    """Add an option for each kind of file."""
    for kind in kinds:
        names = ["--json", "--out"] if kind == "json" else [f"--{kind}"]
        parser.add_argument(*names, type=Path, metavar="FILE", help=f"write {OUTPUTS[kind]}")
    parser.add_argument("--pair", nargs=2, metavar=("A", "B"), help="rankers the page compares query by query")


def output_files(options: argparse.Namespace) -> dict[str, Path | None]:
    """kind -> file, of the options that `add_options` added."""
    return {kind: getattr(options, kind, None) for kind in OUTPUTS}


def check_outputs(files: Mapping[str, Path | None]) -> None:
    """Raise BadInput, before any work, where a file cannot be written; MissingExtra where a page cannot be made."""
    for kind, path in files.items():
        if path is None:
            continue
        if path.is_dir():
            raise BadInput(f"--{kind} {path} is a folder; name a file")
        if not path.absolute().parent.is_dir():
            raise BadInput(f"--{kind} {path}: no folder {path.absolute().parent}; make it, or name another file")
    if files.get("html"):
        from evaluation.page import check_extra

        check_extra()


def write_outputs(results: Sequence[Experiment], files: Mapping[str, Path | None], *, pair: Pair | None = None) -> bool:
    """Write every file that was asked for; whether there was any. pair: for the page, else the best and bm25."""
    for kind, path in files.items():
        if path is None:
            continue
        if kind in ("json", "sheet") and len(results) != 1:
            raise BadInput(f"--{kind} {path} takes the result of one corpus; name one, or omit --{kind}")
        if kind == "json":
            experiments.write(results[0], path)
        elif kind == "csv":
            write_csv(results, path)
        elif kind == "sheet":
            write_score_sheets(results[0], path)
        elif kind == "markdown":
            path.write_text("\n".join(section(each.corpus, each) for each in results), encoding="utf-8")
        else:
            from evaluation.page import write_page  # matplotlib and jinja2 are an extra

            write_page(results, path, pair=pair)
    return any(files.values())
