"""How far an approximate search must look: the least that finds enough for questions it is measured with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ncs.storage.ground_truth import Searches

if TYPE_CHECKING:
    from ncs.storage.ground_truth import Best
    from ncs.storage.vector_kinds import About

RECALL = 0.95
EFFORTS = (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512)
"""Lists that are searched, or candidates that the search in a graph keeps."""


class Tunable(Searches, Protocol):
    """What looks as far as its `about.effort` says."""

    about: About


def tune(searcher: Tunable, best: Best) -> None:
    """Set the least effort that is enough for these questions, or the most there is, and what it found."""
    lists = searcher.about.lists
    for effort in EFFORTS:
        searcher.about = replace(searcher.about, effort=min(effort, lists if lists > 1 else effort))
        recall = best.recall(searcher)
        searcher.about = replace(searcher.about, recall=round(recall, 4))
        if not 0 <= recall < RECALL or searcher.about.effort < effort:
            break
