"""`ncs eval`: an index judged by its user's own questions and their right functions, as the user would see the hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metrics import answered, reciprocal_rank
from evaluation.significance import interval, paired_interval
from ncs.errors import BadInput

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.search.feedback import Feedback
    from ncs.types import Hit, Location

DEPTH = 100
"""Hits a question in which its right functions are looked for."""
FIRST = (1, 5, 10)
SHOWN = 10
"""Hits among which a right function is not missed."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A question without a right function among the first SHOWN hits.

    rank: where the first one stood, 0 where it is not among DEPTH. right: its place; instead: what stood first.
    """

    text: str
    rank: int
    right: str
    instead: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """One ranker. answered: k -> share of the questions with a right function among the first k hits.

    mrr: mean reciprocal rank over DEPTH hits, with its 95 % bootstrap interval. difference: to the first ranker's
    mrr, with the paired interval; None for the first. ranks: of each question, in the order of the file.
    """

    ranker: str
    answered: Mapping[int, float]
    mrr: float
    low: float
    high: float
    difference: tuple[float, float, float] | None
    ranks: tuple[int, ...]
    missed: tuple[Missed, ...]


def judge(index: Index, feedback: Sequence[Feedback], rankers: Sequence[str]) -> list[Judged]:
    """Each ranker over all questions; raises BadInput for none.

    A hit is right where it is a right function, or names one among its copies and near copies.
    """
    if not feedback:
        raise BadInput("there is no question to judge by; write lines of a question, a tab, and its function")
    found: list[Judged] = []
    first: Mapping[str, float] = {}
    for name in rankers:
        index.ranker(name)  # one that is not there is told before any work
        ranks, missed = [], []
        for asked in feedback:
            right = {document.location for document in index.store.documents(list(asked.rows))}
            hits = index.search(asked.text, DEPTH, ranker=name)
            rank = next((hit.rank for hit in hits if right & _places(hit)), 0)
            ranks.append(rank)
            if not 0 < rank <= SHOWN:
                wanted = min(right, key=lambda at: (at.repository, at.path, at.start_line))
                missed.append(
                    Missed(asked.text, rank, _shown(wanted), _shown(hits[0].document.location) if hits else None)
                )
        values = {str(i): reciprocal_rank(_grades(rank, DEPTH), [1]) for i, rank in enumerate(ranks)}
        first = first or values
        low, high = interval(values)
        found.append(
            Judged(
                name,
                {k: sum(answered(_grades(rank, k), [1]) for rank in ranks) / len(ranks) for k in FIRST},
                sum(values.values()) / len(values),
                low,
                high,
                None if name == rankers[0] else paired_interval(values, first),
                tuple(ranks),
                tuple(missed),
            )
        )
    return found


def _grades(rank: int, k: int) -> list[int]:
    """Grades of the first k hits where the first right one has this rank, 0: none."""
    return [1 if place == rank else 0 for place in range(1, k + 1)]


def _places(hit: Hit) -> set[Location]:
    return {hit.document.location, *hit.document.copies, *hit.near_copies}


def _shown(at: Location) -> str:
    return f"{at.qualified_name}  {at.repository}/{at.path}:{at.start_line}"


def told(judged: Sequence[Judged]) -> str:
    """Tables and what was missed, for people; of several rankers, what the first one missed."""
    questions = len(judged[0].ranks)
    lines = [f"{questions} questions with right functions", ""]
    head = ["ranker", *(f"Answered@{k}" for k in FIRST), "MRR [95 %]", *(["to the first"] if judged[1:] else [])]
    rows = [head, *(_row(one, questions, len(judged) > 1) for one in judged)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    lines += ["  ".join(f"{cell:<{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]
    missed = judged[0].missed
    of = f" by {judged[0].ranker}" if judged[1:] else ""
    if not missed:
        return "\n".join([*lines, "", f"none missed{of}: each has a right function among its first {SHOWN} hits"])
    lines += ["", f"missed{of}, as no right function is among the first {SHOWN} hits: {len(missed)}"]
    for one in missed:
        stood = f"at {one.rank}" if one.rank else f"not among {DEPTH}"
        lines += [f"  {one.text}", f"    right, {stood}: {one.right}", f"    first: {one.instead or 'no hit'}"]
    return "\n".join(lines)


def _row(one: Judged, questions: int, several: bool) -> list[str]:
    shares = [f"{round(share * questions)} ({share:.0%})" for share in one.answered.values()]
    row = [one.ranker, *shares, f"{one.mrr:.3f} [{one.low:.3f}, {one.high:.3f}]"]
    if several:
        row.append("" if one.difference is None else "{:+.3f} [{:+.3f}, {:+.3f}]".format(*one.difference))
    return row
