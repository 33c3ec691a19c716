"""Experiments as one HTML page that needs no other file: tables, plots, the queries on which two systems differ."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.experiments import BASELINE, Build, Experiment
from evaluation.measures import compare, interval, mean
from evaluation.reports import Pair, caption, cost, first_ranks, splits, tables
from ncs.console import count
from ncs.errors import needing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPTH = 100
"""The largest k of the Answered@k curves."""
MARKERS = "os^DvPX*"


def check_extra() -> None:
    """Raise MissingExtra where the libraries for plots and pages are not installed."""
    with needing("an HTML page", "evaluation"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401


def page(experiments: Sequence[Experiment], *, pair: Pair | None = None) -> str:
    """The page. pair: the two systems compared query by query; None: the best one and bm25.

    Raises BadInput for a system that is not in a result.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    title = f"Ranking results: {', '.join(dict.fromkeys(each.corpus for each in experiments))}"
    sections = [_section(each, pair) for each in experiments]
    return environment.get_template("page.html.j2").render(title=title, sections=sections)


def _section(experiment: Experiment, pair: Pair | None) -> dict[str, Any]:
    over_indexes = all(build.documents is not None for build in experiment.builds)
    builds = experiment.builds if over_indexes else experiment.builds[:1]  # the curves of a sweep hardly differ
    return {
        "name": experiment.corpus,
        "about": caption(experiment).partition("\n")[0],
        "tables": tables(experiment),
        "figures": [figure for build in builds for figure in _figures(experiment, build)],
        "pairs": [_pair(experiment, build, pair) for build in builds],
        "builds": [
            {"cost": cost(build), "config": json.dumps(dict(build.config), indent=1, sort_keys=True)}
            for build in experiment.builds
        ],
    }


def _figures(experiment: Experiment, build: Build) -> list[dict[str, str]]:
    of_build = f" ({build.settings})" * bool(build.settings)
    figures = []
    for suffix in splits(experiment):
        ranks = {result.system: first_ranks(experiment, result, suffix) for result in build.systems}
        curves = partial(_draw_curves, ranks=ranks, depth=min(experiment.depth, DEPTH))
        figures.append(_figure(f"Answered@k{suffix}{of_build}", curves))
    speed = partial(_draw_speed, experiment=experiment, build=build)
    return [*figures, _figure(f"Speed against quality{of_build}", speed)]


def _draw_curves(axes: Axes, ranks: Mapping[str, Mapping[str, int]], depth: int) -> None:
    """Answered@k of each system for k = 1 ... depth."""
    for number, (name, by_query) in enumerate(ranks.items()):
        shares = [sum(0 < rank <= k for rank in by_query.values()) / len(by_query) for k in range(1, depth + 1)]
        axes.plot(range(1, depth + 1), shares, marker=MARKERS[number % 8], markevery=0.15, label=name)
    if depth > 10:
        _log_scale(axes)
    axes.set(xlabel="k", ylabel="share of queries answered", ylim=(0, 1))


def _draw_speed(axes: Axes, experiment: Experiment, build: Build) -> None:
    measure = experiment.measures[0]
    for number, result in enumerate(build.systems):
        values = experiment.values(result, measure)
        center, (low, high) = mean(values), interval(values)
        error = [[max(0.0, center - low)], [max(0.0, high - center)]]
        axes.errorbar(
            [result.query_ms_p50], [center], yerr=error, fmt=MARKERS[number % 8], capsize=3, label=result.system
        )
    _log_scale(axes)
    axes.set(xlabel="milliseconds per query (median)", ylabel=f"{measure} [95 %]")


def _draw_differences(axes: Axes, values: Sequence[float], measure: str) -> None:
    """A bar per query, from the largest gain to the largest loss."""
    axes.bar(range(len(values)), values, width=1.0)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="queries", ylabel=f"difference in {measure}", ylim=(-1.05, 1.05))


def _log_scale(axes: Axes) -> None:
    """A logarithmic x axis with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _figure(title: str, draw: Callable[[Axes], None]) -> dict[str, str]:
    """A plot as a data address, so that the page needs no other file."""
    data = base64.b64encode(svg(title, draw)).decode("ascii")
    return {"title": title, "source": f"data:image/svg+xml;base64,{data}"}


def svg(title: str, draw: Callable[[Axes], None]) -> bytes:
    """A plot, the same bytes each time. title: unique among the plots of a page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "text.parse_math": False}):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        axes.grid(visible=True, linewidth=0.4)
        axes.set_axisbelow(True)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _pair(experiment: Experiment, build: Build, pair: Pair | None) -> dict[str, Any]:
    """Two systems query by query; ranks are FRank, a dash without a relevant hit."""
    measure, suffix = experiment.measures[0], next(iter(splits(experiment)))
    systems = [build.system(name) for name in pair or (_best(build, measure), BASELINE)]
    names = [system.system for system in systems]
    left, right = (experiment.values(system, measure) for system in systems)
    ranks = [first_ranks(experiment, system, suffix) for system in systems]
    texts = dict(zip(experiment.queries, experiment.texts, strict=True)) if experiment.texts else {}
    changes = sorted(((left[query] - right[query], query) for query in left), key=lambda change: -change[0])
    rows = [
        [texts.get(query, query), f"{change:+.3f}", *(str(side[query] or "–") for side in ranks)]
        for change, query in changes
        if change
    ]
    gains, losses = sum(change > 0 for change, _ in changes), sum(change < 0 for change, _ in changes)
    comparison = compare(left, right)
    title = f"{experiment.corpus} {build.settings} difference of every query"
    return {
        "title": f"{' beside '.join(names)}: {measure}",
        "summary": f"{count(gains, 'query is', 'queries are')} better, {losses} worse, "
        f"{len(changes) - gains - losses} equal; the mean differs by {comparison.difference:+.3f} (95 % interval "
        f"{comparison.low:+.3f} to {comparison.high:+.3f}, randomization test p = {comparison.p:.4f}). The last "
        "columns show the rank of the first relevant hit.",
        "figure": _figure(title, partial(_draw_differences, values=[change for change, _ in changes], measure=measure)),
        "head": ["query", "difference", *names],
        "rows": rows,
    }


def _best(build: Build, measure: str) -> str:
    """The system with the highest mean beside bm25; bm25 where there is no other."""
    others = {result.system: result.means[measure] for result in build.systems if result.system != BASELINE}
    return max(others, key=others.__getitem__, default=BASELINE)
