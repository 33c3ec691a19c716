"""`ncs eval`: evaluates an index on the user's own queries and their relevant functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.measures import interval, paired_interval
from ncs.errors import BadInput

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.search.feedback import Feedback
    from ncs.types import Hit, Location

DEPTH = 100
"""Hits per query in which its relevant functions are looked for."""
FIRST = (1, 5, 10)
SHOWN = 10
"""Hits among which a relevant function is not missed."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A query without a relevant function among the first SHOWN hits.

    rank: of the first one, 0 where it is not among DEPTH. relevant: its place; first: that of the first hit.
    """

    text: str
    rank: int
    relevant: str
    first: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """One ranker. answered: k -> share of the queries with a relevant function among the first k hits.

    mrr: mean reciprocal rank over DEPTH hits, with its 95 % bootstrap interval. difference: to the first ranker's mrr,
    with the paired interval; None for the first. ranks: of each query, in the order of the file.
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
    """Each ranker over all queries; raises BadInput for none.

    A hit is relevant where it is a relevant function, or names one among its copies and near copies.
    """
    if not feedback:
        raise BadInput("no queries to judge by; write lines of a query, a tab, and its function")
    for name in rankers:
        index.ranker(name)  # a missing one is an error before any work
    judged: list[Judged] = []
    baseline: Mapping[str, float] = {}
    for name in rankers:
        ranks, missed = _ranks(index, feedback, name)
        values = {str(i): 1 / rank if rank else 0.0 for i, rank in enumerate(ranks)}
        baseline = baseline or values
        low, high = interval(values)
        judged.append(
            Judged(
                name,
                {k: sum(0 < rank <= k for rank in ranks) / len(ranks) for k in FIRST},
                sum(values.values()) / len(values),
                low,
                high,
                None if name == rankers[0] else paired_interval(values, baseline),
                tuple(ranks),
                tuple(missed),
            )
        )
    return judged


def _ranks(index: Index, feedback: Sequence[Feedback], ranker: str) -> tuple[list[int], list[Missed]]:
    """The rank of each query's first relevant hit, 0 for none, and the queries that missed."""
    ranks, missed = [], []
    for query in feedback:
        relevant = {document.location for document in index.documents.documents(list(query.rows))}
        hits = index.search(query.text, DEPTH, ranker=ranker)
        rank = next((hit.rank for hit in hits if relevant & _places(hit)), 0)
        ranks.append(rank)
        if not 0 < rank <= SHOWN:
            place = min(relevant, key=lambda at: (at.repository, at.path, at.start_line))
            missed.append(
                Missed(
                    query.text,
                    rank,
                    _format_location(place),
                    _format_location(hits[0].document.location) if hits else None,
                )
            )
    return ranks, missed


def _places(hit: Hit) -> set[Location]:
    return {hit.document.location, *hit.document.copies, *hit.near_copies}


def _format_location(at: Location) -> str:
    return f"{at.qualified_name}  {at.repository}/{at.path}:{at.start_line}"


def report(judged: Sequence[Judged]) -> str:
    """Tables of all rankers, and the queries that the first one missed."""
    queries = len(judged[0].ranks)
    head = ["ranker", *(f"Answered@{k}" for k in FIRST), "MRR [95 %]", *(["to the first"] if judged[1:] else [])]
    rows = [head, *(_row(each, queries, len(judged) > 1) for each in judged)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    lines = [f"{queries} {'query' if queries == 1 else 'queries'} with relevant functions", ""]
    lines += ["  ".join(f"{cell:<{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]
    missed = judged[0].missed
    by = f" by {judged[0].ranker}" if judged[1:] else ""
    if not missed:
        return "\n".join([*lines, "", f"none missed{by}: each has a relevant function among its first {SHOWN} hits"])
    lines += ["", f"missed{by}, no relevant function among the first {SHOWN} hits: {len(missed)}"]
    for each in missed:
        place_of = f"at rank {each.rank}" if each.rank else f"not among {DEPTH}"
        lines += [
            f"  {each.text}",
            f"    relevant, {place_of}: {each.relevant}",
            f"    first: {each.first or 'no hit'}",
        ]
    return "\n".join(lines)


def _row(result: Judged, queries: int, several: bool) -> list[str]:
    shares = [f"{round(share * queries)} ({share:.0%})" for share in result.answered.values()]
    row = [result.ranker, *shares, f"{result.mrr:.3f} [{result.low:.3f}, {result.high:.3f}]"]
    if several:
        row.append("" if result.difference is None else "{:+.3f} [{:+.3f}, {:+.3f}]".format(*result.difference))
    return row
