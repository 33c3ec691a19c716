"""Experiments as one HTML page that needs nothing else: tables, plots, the questions two systems differ on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.page_tables import pair_of, table
from evaluation.record import Build, Experiment, Ranked
from evaluation.report import caption, cost
from evaluation.sheets import first_ranks, splits
from evaluation.significance import interval
from ncs.errors import MissingExtra

CURVE = 100
"""The largest k of the Answered@k curves."""


def check_extra() -> None:
    """Raise MissingExtra where the libraries for plots and pages are not installed."""
    try:
        import jinja2
        import matplotlib
    except ImportError as error:
        raise MissingExtra(f"an HTML page needs {error.name}: pip install 'neural-code-search[evaluation]'") from None
    del jinja2, matplotlib


def write_page(experiments: Sequence[Experiment], path: Path, *, pair: tuple[str, str] | None = None) -> None:
    """Write the page. pair: the two systems compared question by question; None: the best one and bm25.

    Raises MissingExtra, and BadInput for a system that was not asked.
    """
    path.write_text(page(experiments, pair=pair), encoding="utf-8")


def page(experiments: Sequence[Experiment], *, pair: tuple[str, str] | None = None) -> str:
    """The page as text."""
    check_extra()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    names = ", ".join(dict.fromkeys(experiment.corpus for experiment in experiments))
    sections = [_section(experiment, pair) for experiment in _told_apart(experiments)]
    return environment.get_template("page.html.j2").render(title=f"How good is the ranking? {names}", sections=sections)


def _told_apart(experiments: Sequence[Experiment]) -> list[Experiment]:
    """With a number behind the name of every further result of one corpus."""
    seen: Counter[str] = Counter()
    found = []
    for experiment in experiments:
        seen[experiment.corpus] += 1
        number = f" ({seen[experiment.corpus]})" * (seen[experiment.corpus] > 1)
        found.append(replace(experiment, corpus=experiment.corpus + number))
    return found


def _section(experiment: Experiment, pair: tuple[str, str] | None) -> dict[str, Any]:
    several_indexes = all(build.documents is not None for build in experiment.builds)
    shown = experiment.builds if several_indexes else experiment.builds[:1]  # a sweep's curves hardly differ
    return {
        "name": experiment.corpus,
        "about": caption(experiment).partition("\n")[0],
        "tables": [table(experiment, suffix, measures) for suffix, measures in splits(experiment).items()],
        "figures": [figure for build in shown for figure in _figures(experiment, build)] + _sweep(experiment),
        "pairs": [
            pair_of(experiment, build, pair, suffix) for build in shown for suffix in list(splits(experiment))[:1]
        ],
        "builds": [
            {
                "costs": cost(build),
                "config": json.dumps({"config": build.config, "versions": build.versions}, indent=1, sort_keys=True),
            }
            for build in experiment.builds
        ],
    }


def _figures(experiment: Experiment, build: Build) -> list[dict[str, Any]]:
    from evaluation.plots import curves, speed

    inside = f" ({build.settings})" * bool(build.settings)
    found = []
    for suffix in splits(experiment):
        series = {
            ranked.system: _answered(first_ranks(experiment, ranked, suffix), experiment.depth)
            for ranked in build.systems
        }
        title = f"Answered@k{suffix}{inside}"
        found.append({"caption": title, "svg": curves(series, title=f"{experiment.corpus} {title}")})
    measure = experiment.measures[0]
    points = [_point(experiment, ranked, measure) for ranked in build.systems]
    title = f"Speed against quality, with 95 % intervals{inside}"
    found.append({"caption": title, "svg": speed(points, measure=measure, title=f"{experiment.corpus} {title}")})
    return found


def _answered(ranks: Mapping[str, int], depth: int) -> list[float]:
    """Answered@k for k = 1, 2, ... as shares."""
    return [sum(0 < rank <= k for rank in ranks.values()) / len(ranks) for k in range(1, min(depth, CURVE) + 1)]


def _point(experiment: Experiment, ranked: Ranked, measure: str) -> Any:
    from evaluation.plots import Point

    values = experiment.values(ranked, measure)
    low, high = interval(values)
    return Point(ranked.system, ranked.query_ms_p50, sum(values.values()) / len(values), low, high)


def _sweep(experiment: Experiment) -> list[dict[str, Any]]:
    """Means with intervals of all builds, where there are several."""
    if len(experiment.builds) < 2:
        return []
    from evaluation.plots import intervals

    measure = experiment.measures[0]
    rows = [
        (build.settings or "the defaults", [_point(experiment, ranked, measure) for ranked in build.systems])
        for build in experiment.builds
    ]
    title = f"{experiment.corpus}: {measure} for each of the settings"
    return [{"caption": "Every setting", "svg": intervals(rows, measure=measure, title=title)}]
