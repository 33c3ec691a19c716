"""Figures as pieces of SVG inside a page: its colours, its font, ids of their own.

Matplotlib draws with stand-in colours, which are then replaced by the page's CSS variables: `--ink`, `--soft`,
`--s0` ... `--s6`.
"""

from __future__ import annotations

import hashlib
import io
import re
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

SERIES = 7
"""Colours there are; the next system begins anew, with another marker."""
INK, SOFT = "#010203", "#040506"
_STAND_INS = {INK: "var(--ink)", SOFT: "var(--soft)"} | {f"#0a0b{i:02x}": f"var(--s{i})" for i in range(SERIES)}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none", "font.size": 11, "font.family": "sans-serif", "axes.edgecolor": SOFT,
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "grid.color": SOFT,
    "grid.linewidth": 0.4, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "axes.grid": True, "axes.axisbelow": True, "text.parse_math": False,
    "figure.facecolor": "none", "axes.facecolor": "none",
}  # fmt: skip


def colour(i: int) -> str:
    """The stand-in of the i-th system."""
    return f"#0a0b{i % SERIES:02x}"


class Drawing:
    """A figure that becomes text when its block ends."""

    svg = ""

    def __init__(self, title: str, height: float) -> None:
        self.title = title
        self.figure = Figure(figsize=(5.2, height), layout="constrained")


@contextmanager
def drawn(title: str, *, height: float) -> Iterator[tuple[Drawing, Axes]]:
    """Axes to draw on; when the block ends the drawing has its `svg`. height: inches."""
    settings: Any = _SETTINGS | {"svg.hashsalt": title}
    with matplotlib.rc_context(settings):
        drawing = Drawing(title, height)
        yield drawing, drawing.figure.subplots()
        buffer = io.StringIO()
        drawing.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawing.svg = _inline(buffer.getvalue(), title)


def _inline(text: str, title: str) -> str:
    """The svg element alone: colours and font from the page, ids of its own, a name for screen readers."""
    svg = text[text.index("<svg") :]
    for stand_in, variable in _STAND_INS.items():
        svg = svg.replace(stand_in, variable)
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)  # its style is for the page
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"|( font-family: [^;"]*;)', "", svg).replace("xlink:href", "href")
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg))
    own = "f" + hashlib.blake2b(title.encode(), digest_size=4).hexdigest()
    svg = re.sub(r' id="([^"]*)"', lambda id: f' id="{own}-{id[1]}"' if id[1] in used else "", svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{own}-", svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (width|height|version)="[^"]*"', "", head).replace(
        "<svg", f'<svg role="img" aria-label="{escape(title)}"'
    )
    return re.sub(r"\s*\n\s*", " ", f"{head}>{rest}").replace("> <", "><").strip()
