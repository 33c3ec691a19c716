"""What stands in the tables of the HTML page: systems with their figures, questions that two systems differ on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaluation.experiment import BASELINE
from evaluation.record import Build, Experiment, Ranked
from evaluation.sheets import first_ranks
from evaluation.significance import compare, interval, paired_interval
from ncs.errors import BadInput

SHOWN = 15
"""Gains, and losses, that are named at once; the others are folded away."""


class Cell(NamedTuple):
    """What a table shows, what stands small below it, and what it is sorted by (None: its text)."""

    text: str
    small: str = ""
    key: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The first `labels` cells of each row name it."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    labels: int


def table(experiment: Experiment, suffix: str, measures: Sequence[str]) -> Table:
    """A row a system; means with their intervals, answered as count and share, costs."""
    first, *others = measures
    many = len(experiment.builds) > 1
    plain = [measure.removesuffix(suffix) for measure in others]
    label = "index" if experiment.builds[0].documents is not None else "settings"
    head = [label] * many + ["ranker", first.removesuffix(suffix), f"to {BASELINE}", *plain]
    rows = []
    for build in experiment.builds:
        baseline = experiment.values(_system(build, BASELINE), first)
        for ranked in build.systems:
            own = experiment.values(ranked, first)
            cells = [Cell(build.settings or "the defaults")] * many + [Cell(ranked.system), _mean(own)]
            cells.append(_difference(own, baseline) if ranked.system != BASELINE else Cell("", key=0.0))
            cells += [_value(experiment, ranked, measure) for measure in others]
            rows.append([*cells, *(_costs(ranked) if measures[0] == experiment.measures[0] else ())])
    threshold = suffix.removeprefix(" at ")
    title = f"Judged at similarity {threshold} and above" if threshold else "All measures"
    columns = [*head, "p50 ms", "p95 ms", "embed ms", "MiB"][: len(rows[0])]
    filled = [i for i in range(len(columns)) if any(row[i].text for row in rows)]
    shown = [[row[i] for i in filled] for row in rows]
    return Table(title, [columns[i] for i in filled], shown, 2 if many else 1)


def _mean(values: Mapping[str, float]) -> Cell:
    low, high = interval(values)
    mean = sum(values.values()) / len(values)
    return Cell(f"{mean:.3f}", f"{low:.3f} to {high:.3f}", mean)


def _difference(values: Mapping[str, float], baseline: Mapping[str, float]) -> Cell:
    difference, low, high = paired_interval(values, baseline)
    return Cell(f"{difference:+.3f}", f"{low:+.3f} to {high:+.3f}", difference)


def _value(experiment: Experiment, ranked: Ranked, measure: str) -> Cell:
    mean = ranked.means[measure]
    if measure.startswith("answered"):
        return Cell(str(round(mean * len(experiment.queries))), f"{mean:.1%}", mean)
    return Cell(f"{mean:.3f}", key=mean)


def _costs(ranked: Ranked) -> list[Cell]:
    embed, size = ranked.embed_query_ms, ranked.index_bytes
    return [
        Cell(f"{ranked.query_ms_p50:.1f}", key=ranked.query_ms_p50),
        Cell(f"{ranked.query_ms_p95:.1f}", key=ranked.query_ms_p95),
        Cell("" if embed is None else f"{embed:.2f}", key=embed or 0.0),
        Cell("" if size is None else f"{size / 2**20:.1f}", key=size or 0.0),
    ]


def pair_of(experiment: Experiment, build: Build, pair: tuple[str, str] | None, suffix: str) -> dict[str, Any]:
    """Two systems question by question; ranks are FRank, a dash where nothing was found."""
    from evaluation.plots import differences

    measure = experiment.measures[0]
    ours, theirs = (_system(build, name) for name in pair or (_best(build, measure), BASELINE))
    left, right = experiment.values(ours, measure), experiment.values(theirs, measure)
    ranks = [first_ranks(experiment, ranked, suffix) for ranked in (ours, theirs)]
    texts = dict(zip(experiment.queries, experiment.texts, strict=True)) if experiment.texts else {}
    rows: list[dict[str, Any]] = [
        {
            "question": texts.get(query, query),
            "difference": round(left[query] - right[query], 6),
            "ours": _rank(ranks[0][query]),
            "theirs": _rank(ranks[1][query]),
        }
        for query in left
    ]
    rows.sort(key=lambda row: -row["difference"])
    gains = [row for row in rows if row["difference"] > 0]
    losses = [row for row in reversed(rows) if row["difference"] < 0]
    found = compare(left, right)
    svg = differences([row["difference"] for row in rows], ours=ours.system, theirs=theirs.system, measure=measure,
                      title=f"{experiment.corpus} {build.settings} differences of every question")  # fmt: skip
    return {
        "ours": ours.system,
        "theirs": theirs.system,
        "measure": measure,
        "svg": svg,
        "summary": f"{len(gains)} questions are better, {len(losses)} worse, {len(rows) - len(gains) - len(losses)} "
        f"equal; the mean differs by {found.difference:+.3f} (95 % interval {found.low:+.3f} to {found.high:+.3f}, "
        f"randomisation test p = {found.p:.4f}). The columns show the rank of the first correct hit.",
        "parts": [
            {"caption": f"The largest gains of {ours.system}", "rows": gains[:SHOWN]},
            {"caption": f"Its largest losses to {theirs.system}", "rows": losses[:SHOWN]},
            {"caption": "All other questions that differ", "rows": gains[SHOWN:] + losses[SHOWN:]},
        ],
    }


def _rank(rank: int) -> tuple[float, str]:
    return (rank, str(rank)) if rank else (1e9, "–")


def _best(build: Build, measure: str) -> str:
    """The system with the highest mean beside bm25; bm25 where there is no other."""
    others = [ranked for ranked in build.systems if ranked.system != BASELINE]
    return max(others, key=lambda ranked: ranked.means[measure]).system if others else BASELINE


def _system(build: Build, name: str) -> Ranked:
    for ranked in build.systems:
        if ranked.system == name:
            return ranked
    raise BadInput(f"{name!r} was not asked; there are: {', '.join(ranked.system for ranked in build.systems)}")
