"""How the cost of an index grows with its size: powers fitted to the figures of `bin/benchmark synth`, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.report import aligned
from ncs.errors import BadInput, MissingExtra
from ncs.storage.vectors import chosen

GIB = 2**30
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")  # Okabe and Ito's
MARKERS = "os^DvP"


def figures(run: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Panel -> line -> value of one run."""
    asked = run["resident_bytes"]
    return {
        "seconds to build": {**run["build_s"], "whole": sum(run["build_s"].values())},
        "GiB at most": {"build": max(run["peak_bytes"].values()) / GIB, **_own(run), **_resident(asked)},
        "GiB on disk": {
            "whole": sum(run["disk_bytes"].values()) / GIB,
            **{name: size / GIB for name, size in run["disk_bytes"].items() if size > 0.05 * _total(run)},
        },
        "milliseconds a question (p50)": {
            "whole": run["query_ms"]["p50"], **{name: each["p50"] for name, each in run["stages_ms"].items()}
        },
    }  # fmt: skip


def _total(run: Mapping[str, Any]) -> int:
    return sum(run["disk_bytes"].values())


def _own(run: Mapping[str, Any]) -> dict[str, float]:
    """What a build held without pages of files, where that was looked at."""
    return {"build, own": max(run["own_peak_bytes"].values()) / GIB} if "own_peak_bytes" in run else {}


def _resident(held: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    return {f"{name}, {what}": each[what] / GIB for name, each in held.items() for what in ("own", "files")
            if what in each and name.startswith("asked ") and name != "asked once"}  # fmt: skip


def power(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The b of a * size^b that fits best, by least squares of logarithms.

    >>> round(power([1, 2, 4], [3, 6, 12]), 3), round(power([10, 1000], [5, 50]), 3)
    (1.0, 0.5)
    """
    x, y = np.log(sizes), np.log(np.maximum(values, 1e-9))
    x = x - x.mean()
    return float(x @ y / (x @ x))


def series(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Panel -> line -> (documents, value) of the runs that have it."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for run in runs:
        for panel, lines in figures(run).items():
            for name, value in lines.items():
                found.setdefault(panel, {}).setdefault(name, []).append((run["documents"], value))
    return found


def one_a_size(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of several runs of a size the one whose kind of vectors a build takes by itself: kinds must not be compared."""
    found: dict[int, Mapping[str, Any]] = {}
    for run in runs:
        if run["functions"] not in found or run["vectors"] == chosen("auto", run["documents"]):
            found[run["functions"]] = run
    return list(found.values())


def draw(runs: Sequence[Mapping[str, Any]], path: Path) -> str:
    """Write the picture, of one run a size; a table of the powers. Raises BadInput for fewer than two sizes."""
    runs = one_a_size(runs)
    if len({run["documents"] for run in runs}) < 2:
        raise BadInput("growth needs two sizes at least; run bin/benchmark synth with another --functions")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("plots need matplotlib; pip install 'neural-code-search[evaluation]'") from None
    panels, rows = series(runs), []
    figure = Figure(figsize=(13, 8), layout="constrained")
    for axes, (panel, lines) in zip(figure.subplots(2, 2).ravel(), panels.items(), strict=True):
        for number, (name, points) in enumerate(lines.items()):
            sizes, values = zip(*points, strict=True)
            label = name
            if len(points) > 1 and max(values) > 0:
                label = f"{name}: {power(sizes, values):.2f}"
                rows.append([panel, name, f"{power(sizes, values):.2f}"])
            axes.plot(
                sizes, values, label=label, color=COLOURS[number % 6], marker=MARKERS[number % 6],
                linestyle="-" if number < 6 else "--", linewidth=2.2 if name == "whole" else 1.2, markersize=5,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="functions", title=panel)
        axes.grid(visible=True, which="major", linewidth=0.4)
        axes.legend(
            fontsize=7.5, frameon=False, title="grows by the power", title_fontsize=7.5, loc="center left",
            bbox_to_anchor=(1, 0.5),
        )  # fmt: skip
    figure.savefig(path, dpi=110)
    return aligned(["figure", "of", "power"], rows)
