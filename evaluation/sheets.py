"""Results as spreadsheets: a line a system, and the per-question FRank sheet in its published form."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from corpora.ncs287 import write_score_sheet
from evaluation.experiment import BASELINE
from evaluation.record import Build, Experiment, Ranked
from evaluation.significance import compare, interval
from ncs.errors import BadInput


def splits(experiment: Experiment) -> dict[str, list[str]]:
    """suffix -> the measures that carry it: ` at 0.6` and ` at 0.25` for judged questions, nothing for others.

    The first measure of each is a reciprocal rank, where the experiment measured one.
    """
    found: dict[str, list[str]] = {}
    for measure in experiment.measures:
        match = re.search(r" at [0-9.]+$", measure)
        found.setdefault(match[0] if match else "", []).append(measure)
    return found


def first_ranks(experiment: Experiment, ranked: Ranked, suffix: str = "") -> dict[str, int]:
    """query id -> FRank, 0 where nothing was found: the inverse of the reciprocal rank.

    Raises BadInput where no reciprocal rank was measured.
    """
    measured = [name for name in splits(experiment).get(suffix, []) if re.match(r"mrr(@\d+)?( at |$)", name)]
    if not measured:
        raise BadInput(f"{experiment.corpus}: no mrr was measured{suffix}, which tells the first ranks; add it")
    deepest = max(measured, key=_depth)
    return {query: round(1 / value) if value else 0 for query, value in experiment.values(ranked, deepest).items()}


def _depth(measure: str) -> float:
    match = re.match(r"mrr@(\d+)", measure)
    return int(match[1]) if match else float("inf")


def write_csv(experiments: Sequence[Experiment], path: Path) -> None:
    """A line for each system of each index and threshold; means, intervals, and the paired difference to bm25."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [row for each in experiments for build in each.builds for row in _rows(each, build)]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _rows(experiment: Experiment, build: Build) -> list[dict[str, object]]:
    return [
        {
            "corpus": experiment.corpus,
            "index": build.settings,
            "ranker": ranked.system,
            "documents": build.documents or experiment.documents,
            "questions": len(experiment.queries),
            "k": experiment.depth,
            "threshold": suffix.removeprefix(" at "),
            **_figures(experiment, build, ranked, measures),
            "query_ms_p50": ranked.query_ms_p50,
            "query_ms_p95": ranked.query_ms_p95,
        }
        for ranked in build.systems
        for suffix, measures in splits(experiment).items()
    ]


def _figures(experiment: Experiment, build: Build, ranked: Ranked, measures: Sequence[str]) -> Mapping[str, object]:
    first = measures[0]
    own = experiment.values(ranked, first)
    low, high = interval(own)
    against = next(other for other in build.systems if other.system == BASELINE)
    found = compare(own, experiment.values(against, first))
    names = {measure: re.sub(r" at .*", "", measure) for measure in measures}
    return {
        **{names[measure]: round(ranked.means[measure], 6) for measure in measures},
        **{
            f"{names[measure]} count": round(ranked.means[measure] * len(experiment.queries))
            for measure in measures
            if names[measure].startswith("answered")
        },
        f"{names[first]} low": round(low, 6),
        f"{names[first]} high": round(high, 6),
        f"difference to {BASELINE}": round(found.difference, 6),
        "difference low": round(found.low, 6),
        "difference high": round(found.high, 6),
        "p": round(found.p, 6),
    }


def write_score_sheets(experiment: Experiment, path: Path) -> None:
    """The FRank of every question at the paper's threshold into `path`, at the strict one into `<stem>.strict<suffix>`.

    In the form of the score sheet of the Neural Code Search Evaluation Dataset (Li et al. 2019):
    `No.,StackOverflow ID,<system> FRank,...`, NF where nothing was found, lines ended as Windows does.
    """
    for suffix, target in _targets(experiment, path).items():
        ranks = {
            f"{build.settings}/{ranked.system}".strip("/"): first_ranks(experiment, ranked, suffix)
            for build in experiment.builds
            for ranked in build.systems
        }
        columns = {name: [found.get(query) or None for query in experiment.queries] for name, found in ranks.items()}
        write_score_sheet(experiment.queries, columns, target)


def _targets(experiment: Experiment, path: Path) -> dict[str, Path]:
    suffixes = sorted(splits(experiment), key=lambda suffix: float(suffix.removeprefix(" at ") or 0))
    strict = path.with_name(f"{path.stem}.strict{path.suffix}")
    return dict(zip(suffixes, [path, strict], strict=False))
