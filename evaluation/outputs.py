"""The files that commands write: JSON, CSV, score sheets, Markdown and HTML, with their options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from corpora.ncs287 import write_score_sheet
from corpora.tables import write_table
from evaluation import experiments, page
from evaluation.experiments import BASELINE, Build, Experiment, Ranked
from evaluation.measures import compare, interval
from evaluation.reports import Pair, first_ranks, section, splits
from ncs.errors import BadInput
from ncs.files import replace_file


def write_csv(results: Sequence[Experiment], path: Path) -> None:
    """A line for each system of each index and threshold; means, intervals, and the paired difference to bm25."""
    rows = [
        _csv_row(experiment, build, result, suffix, measures)
        for experiment in results
        for build in experiment.builds
        for result in build.systems
        for suffix, measures in splits(experiment).items()
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    write_table(path, columns, ([row.get(name, "") for name in columns] for row in rows))


def _csv_row(
    experiment: Experiment, build: Build, result: Ranked, suffix: str, measures: Sequence[str]
) -> dict[str, object]:
    names = {measure: measure.removesuffix(suffix) for measure in measures}
    first, n_queries = measures[0], len(experiment.queries)
    own = experiment.values(result, first)
    low, high = interval(own)
    comparison = compare(own, experiment.values(build.system(BASELINE), first))
    return {
        "corpus": experiment.corpus,
        "index": build.settings,
        "ranker": result.system,
        "documents": build.documents or experiment.documents,
        "questions": n_queries,
        "k": experiment.depth,
        "threshold": suffix.removeprefix(" at "),
        **{name: round(result.means[measure], 6) for measure, name in names.items()},
        **{
            f"{name} count": round(result.means[measure] * n_queries)
            for measure, name in names.items()
            if name.startswith("answered")
        },
        f"{names[first]} low": round(low, 6),
        f"{names[first]} high": round(high, 6),
        f"difference to {BASELINE}": round(comparison.difference, 6),
        "difference low": round(comparison.low, 6),
        "difference high": round(comparison.high, 6),
        "p": round(comparison.p, 6),
        "query_ms_p50": result.query_ms_p50,
        "query_ms_p95": result.query_ms_p95,
    }


def write_score_sheets(experiment: Experiment, path: Path) -> None:
    """The FRank of every query at the paper's threshold into `path`, at the strict one into `<stem>.strict<suffix>`.

    In the form of the score sheet of the Neural Code Search Evaluation Dataset (Li et al. 2019):
    `No.,StackOverflow ID,<system> FRank,...`, NF without a relevant hit, lines ended as on Windows.
    """
    suffixes = sorted(splits(experiment), key=lambda suffix: float(suffix.removeprefix(" at ") or 0))
    for suffix, target in zip(suffixes, [path, path.with_name(f"{path.stem}.strict{path.suffix}")], strict=False):
        columns = {}
        for build in experiment.builds:
            for result in build.systems:
                ranks = first_ranks(experiment, result, suffix)
                name = f"{build.settings}/{result.system}".strip("/")
                columns[name] = [ranks.get(query) or None for query in experiment.queries]
        write_score_sheet(experiment.queries, columns, target)


OUTPUTS: Mapping[str, str] = {
    "json": "everything: values of every query, timings, commit, machine",
    "csv": "a line per system and threshold",
    "sheet": "FRank of every query, as the published score sheet; a second one, .strict, for the other threshold",
    "markdown": "the tables",
    "html": "one page with tables and plots; pip install 'neural-code-search[evaluation]'",
}
"""Option -> the content of its file."""


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
        if path is not None and path.is_dir():
            raise BadInput(f"--{kind} {path} is a folder; name a file")
        if path is not None and not path.absolute().parent.is_dir():
            raise BadInput(f"--{kind} {path}: no folder {path.absolute().parent}; make it, or name another file")
    if files.get("html"):
        page.check_extra()


def write_outputs(results: Sequence[Experiment], files: Mapping[str, Path | None], *, pair: Pair | None = None) -> bool:
    """Write all files; whether there was any. pair: for the page, else the best and bm25."""
    for kind, path in files.items():
        if path is None:
            continue
        if kind == "json":
            experiments.write(results[0], path)
        elif kind == "csv":
            write_csv(results, path)
        elif kind == "sheet":
            write_score_sheets(results[0], path)
        elif kind == "markdown":
            replace_file(path, "\n".join(section(each.corpus, each) for each in results))
        else:
            replace_file(path, page.page(results, pair=pair))
    return any(files.values())
