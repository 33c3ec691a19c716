"""A training's curves as a picture: loss and validation MRR by epoch, what was kept, where stages and minings began."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ncs.errors import MissingExtra


def draw(curve: Sequence[Mapping[str, float]], best_epoch: int, path: Path) -> None:
    """SVG or PNG, by the path's suffix; the same curve gives the same bytes. Raises MissingExtra without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        raise MissingExtra("a plot needs matplotlib: pip install 'neural-code-search[evaluation]'") from None
    with matplotlib.rc_context({"svg.hashsalt": "unif", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7, 5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        learnt = [row for row in curve if "loss" in row]
        above.plot([row["epoch"] for row in learnt], [row["loss"] for row in learnt], marker="o", color="#d55e00")
        above.set_ylabel("loss")
        below.plot([row["epoch"] for row in curve], [row["mrr"] for row in curve], marker="s", color="#0072b2")
        below.set_ylabel("validation MRR")
        below.set_xlabel("epoch")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        best = next(row["mrr"] for row in curve if row["epoch"] == best_epoch)
        kept = f"kept: epoch {best_epoch}, {best:.4f}"
        below.plot([best_epoch], [best], marker="*", markersize=16, color="#009e73", linestyle="", label=kept)
        below.legend(loc="lower right", frameon=False)
        for axes in (above, below):
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
            for row, following in pairwise(learnt):
                if following.get("stage") != row.get("stage"):
                    axes.axvline(row["epoch"] + 0.5, color="#555555", linewidth=1)
                if following.get("mined") != row.get("mined"):
                    axes.axvline(row["epoch"] + 0.5, color="#cc79a7", linewidth=1, linestyle=":")
        above.set_title("line: next stage of the curriculum; dotted: hard negatives mined anew", fontsize=9)
        buffer = io.BytesIO()
        svg = path.suffix == ".svg"
        figure.savefig(buffer, format=path.suffix[1:], metadata={"Date": None} if svg else None, dpi=120)
    path.write_bytes(buffer.getvalue())
