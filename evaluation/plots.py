"""The plots of the page: Answered@k, speed against quality, differences of every query, intervals of a sweep.

Systems differ by marker and line as well as by colour (Okabe and Ito's, told apart by everybody).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, PercentFormatter

from evaluation.svg import INK, Drawing, colour, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS, _LINES = "os^DvPX*", ("-", "--", "-.", ":")


@dataclass(frozen=True, slots=True)
class Point:
    """A system's place: milliseconds a query, mean of a measure, and the mean's interval."""

    name: str
    milliseconds: float
    mean: float
    low: float
    high: float


def curves(series: Mapping[str, Sequence[float]], *, title: str) -> str:
    """Answered@k: each system's share of answered queries for k = 1, 2, ..."""
    depth = max(map(len, series.values()))
    with drawn(title, height=3 + _legend_height(list(series))) as (figure, axes):
        for i, (name, shares) in enumerate(series.items()):
            k = range(1, len(shares) + 1)
            axes.plot(
                k, shares, color=colour(i), marker=_MARKERS[i % 8], linestyle=_LINES[i % 4], label=name,
                markersize=5, markevery=[place - 1 for place in _marked(len(shares))], linewidth=1.6,
            )  # fmt: skip
        if depth > 10:
            axes.set_xscale("log")
        axes.set_xticks(_marked(depth), [str(k) for k in _marked(depth)], minor=False)
        axes.minorticks_off()
        axes.set_xlabel("k")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_ylabel("queries answered")
        _legend(figure, axes)
    return figure.svg


def speed(points: Sequence[Point], *, measure: str, title: str) -> str:
    """Milliseconds a query (logarithmic) against the mean of a measure with its interval."""
    with drawn(title, height=3 + _legend_height([point.name for point in points])) as (figure, axes):
        for i, point in enumerate(points):
            error = [[point.mean - point.low], [point.high - point.mean]]
            axes.errorbar(
                [point.milliseconds], [point.mean], yerr=error, color=colour(i), marker=_MARKERS[i % 8],
                linestyle="", capsize=3, markersize=7, label=point.name,
            )  # fmt: skip
        axes.set_xscale("log")
        low, high = min(p.milliseconds for p in points), max(p.milliseconds for p in points)
        axes.set_xlim(low / 1.6, high * 1.6)
        ticks = [tick for tick in _round_numbers() if low / 1.6 <= tick <= high * 1.6]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("ms a query, median")
        axes.set_ylabel(measure)
        _legend(figure, axes)
    return figure.svg


def differences(values: Sequence[float], *, ours: str, theirs: str, measure: str, title: str) -> str:
    """A bar a query, from the largest gain to the largest loss; queries without a difference lie between."""
    order = sorted(values, reverse=True)
    gains, losses = sum(value > 0 for value in order), sum(value < 0 for value in order)
    with drawn(title, height=2.8) as (figure, axes):
        steps, edges = _steps(order)
        for i, wanted in ((2, 1), (1, -1)):
            axes.stairs([max(step * wanted, 0) * wanted for step in steps], edges, fill=True, color=colour(i))
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xlim(0, len(order))
        axes.set_ylim(-1.05, 1.05)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+.1f}" if value else "0"))
        axes.set_xticks([])
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(measure)
        axes.set_xlabel(f"{gains} better, {len(order) - gains - losses} equal, {losses} worse")
    return figure.svg


def intervals(rows: Sequence[tuple[str, Sequence[Point]]], *, measure: str, title: str) -> str:
    """Means with their intervals: a group of lines for each of the settings, a line a system."""
    names = list(dict.fromkeys(point.name for _, points in rows for point in points))
    lines = [(group, point) for group, points in rows for point in points]
    with drawn(title, height=0.9 + 0.2 * (len(lines) + len(rows)) + _legend_height(names)) as (figure, axes):
        ticks, shown = [], set()
        y = 0.0
        for group, points in rows:
            ticks.append((y + (len(points) - 1) / 2, group))
            for point in points:
                i = names.index(point.name)
                axes.errorbar(
                    [point.mean], [y], xerr=[[point.mean - point.low], [point.high - point.mean]], color=colour(i),
                    marker=_MARKERS[i % 8], linestyle="", capsize=2, markersize=5,
                    label=None if point.name in shown else point.name,
                )  # fmt: skip
                shown.add(point.name)
                y += 1
            y += 1
        axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{measure}, with its 95 % interval")
        _legend(figure, axes)
    return figure.svg


def _steps(values: Sequence[float]) -> tuple[list[float], list[int]]:
    """Runs of equal values, and where they begin and end: a few hundred points less in the file."""
    starts = [i for i, value in enumerate(values) if not i or value != values[i - 1]]
    return [values[i] for i in starts], [*starts, len(values)]


def _marked(depth: int) -> list[int]:
    places = [k for k in (1, 2, 3, 5, 10, 20, 50, 100) if k <= depth]
    return places if depth > 10 else list(range(1, depth + 1))


def _round_numbers() -> list[float]:
    return [factor * 10.0**power for power in range(-3, 6) for factor in (1, 2, 5)]


def _columns(labels: Sequence[str]) -> int:
    return 1 if max(map(len, labels)) > 26 else 2


def _legend_height(labels: Sequence[str]) -> float:
    """Inches."""
    return 0.21 * -(-len(labels) // _columns(labels))


def _legend(drawing: Drawing, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    drawing.figure.legend(handles, labels, loc="outside lower center", ncols=_columns(labels), fontsize=10)
