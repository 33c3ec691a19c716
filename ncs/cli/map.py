"""`ncs map`: the picture of an index."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from ncs.cli.options import IndexOption, Quiet, index_folder, without_none
from ncs.console import say


def draw_map(
    index: IndexOption = None,
    points: Annotated[
        int | None, Option(min=5, help="How many documents to draw, sampled.", show_default="20000")
    ] = None,
    seed: Annotated[int | None, Option(min=0, max=(1 << 32) - 1, help="Of the sample and the picture.")] = None,
    quiet: Quiet = False,
) -> None:
    """Draw the index as a picture of its document vectors, for the page of `ncs serve`.

    Example: ncs map -i .ncs
    """
    from ncs.build.map import make_map

    folder = index_folder(index)
    project_map = make_map(folder, **without_none(points=points, seed=seed))
    if not quiet:
        say(f"{len(project_map.rows):,} points in {folder}; see them with: ncs serve -i {folder}")
