"""`ncs eval`: evaluates an index on the user's own queries and their relevant functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.measures import interval, mean, paired_interval
from ncs.console import count, one_line
from ncs.errors import BadInput
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
class RankerReport:
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


def judge(index: Index, feedback: Sequence[Feedback], rankers: Sequence[str]) -> list[RankerReport]:
    """Each ranker over all queries; raises BadInput for none.

    A hit is relevant where it is a relevant function, or names one among its copies and near copies.
    """
    if not feedback:
        raise BadInput(
            "no queries to judge by; write lines of a query, a tab, and its function "
            "(with --qrels: of a query id that they judge, a tab, and the query)"
        )
    for name in rankers:
        index.ranker(name)  # a missing one is an error before any work
    reports: list[RankerReport] = []
    baseline: Mapping[str, float] = {}
    for name in rankers:
        results = [_search(index, query, name) for query in feedback]
        ranks = tuple(rank for rank, _ in results)
        values = {str(i): 1 / rank if rank else 0.0 for i, rank in enumerate(ranks)}
        difference = paired_interval(values, baseline) if baseline else None
        baseline = baseline or values
        answered = {k: sum(0 < rank <= k for rank in ranks) / len(ranks) for k in FIRST}
        missed = tuple(each for rank, each in results if not 0 < rank <= SHOWN)
        reports.append(RankerReport(name, answered, mean(values), *interval(values), difference, ranks, missed))
    return reports


def _search(index: Index, query: Feedback, ranker: str) -> tuple[int, Missed]:
    """The rank of a query's first relevant hit, 0 for none, and its description where that is a miss."""
    relevant = {document.location for document in index.documents.documents(list(query.rows))}
    hits = index.search(query.text, DEPTH, ranker=ranker)
    rank = next((hit.rank for hit in hits if relevant & _places(hit)), 0)
    place = min(relevant, key=lambda at: (at.repository, at.path, at.start_line))
    first = _format_location(hits[0].document.location) if hits else None
    return rank, Missed(query.text, rank, _format_location(place), first)


def _places(hit: Hit) -> set[Location]:
    return {hit.document.location, *hit.document.copies, *hit.near_copies}


def _format_location(at: Location) -> str:
    return f"{at.qualified_name}  {at.repository}/{at.path}:{at.start_line}"


def report(reports: Sequence[RankerReport]) -> str:
    """A table of all rankers, and the queries that the first one missed."""
    several, missed = len(reports) > 1, reports[0].missed
    n_queries = len(reports[0].ranks)
    rows = [["ranker", *(f"Answered@{k}" for k in FIRST), "MRR [95 %]", *["to the first"] * several]]
    for each in reports:
        shares = [f"{round(share * n_queries)} ({share:.0%})" for share in each.answered.values()]
        difference = "{:+.3f} [{:+.3f}, {:+.3f}]".format(*each.difference) if each.difference else ""
        rows.append([each.ranker, *shares, f"{each.mrr:.3f} [{each.low:.3f}, {each.high:.3f}]", difference])
    widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
    lines = [f"{count(n_queries, 'query', 'queries')} with relevant functions", ""]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    by = f" by {reports[0].ranker}" * several
    if not missed:
        return "\n".join([*lines, "", f"none missed{by}: each has a relevant function among its first {SHOWN} hits"])
    lines += ["", f"missed{by}, no relevant function among the first {SHOWN} hits: {len(missed)}"]
    for miss in missed:
        place = f"at rank {miss.rank}" if miss.rank else f"not among {DEPTH}"
        texts = miss.text, f"  relevant, {place}: {miss.relevant}", f"  first: {miss.first or 'no hit'}"
        lines += [f"  {one_line(text)}" for text in texts]
    return "\n".join(lines)
