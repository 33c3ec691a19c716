"""The rank of the first correct answer (FRank), question by question and system by system, as NCSE publishes it.

A comma-separated file: `No.,StackOverflow ID,<system> FRank,...`; a rank is 1 or more, `NF` where none was found.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from corpora.jsonl import read_lines
from corpora.ncs287 import numbered
from ncs.errors import BadInput
from ncs.types import Qrels, Run

NOT_FOUND = "NF"
ANSWER = "answer"
_FIRST = ("No.", "StackOverflow ID")
_SUFFIX = " FRank"
PUBLISHED: Mapping[str, tuple[int, int, int, float]] = {
    "NCS": (33, 74, 98, 0.189),
    "NCS_postrank": (85, 151, 180, 0.400),
    "UNIF_android": (25, 75, 110, 0.178),
    "UNIF_stackoverflow": (104, 164, 188, 0.464),
}
"""What Li et al. (2019) print over all 287 questions: Answered@1, @5, @10, MRR."""


@dataclass(frozen=True, slots=True)
class ScoreSheet:
    """posts: Stack Overflow ids in the order of the sheet, one may come twice. ranks: system -> one a question."""

    posts: tuple[str, ...]
    ranks: Mapping[str, tuple[int | None, ...]]

    @property
    def ids(self) -> list[str]:
        """Query ids, as corpora.ncs287.read_questions gives them."""
        return numbered(self.posts)


@dataclass(frozen=True, slots=True)
class Figures:
    """A system's results: questions answered in the first 1, 5 and 10 hits, mean reciprocal rank (NF counts 0)."""

    answered_1: int
    answered_5: int
    answered_10: int
    mrr: float


def read_score_sheet(path: Path) -> ScoreSheet:
    """Raises BadInput, naming the line, for a sheet of another shape and for a rank that is none."""
    rows = list(csv.reader(read_lines(path)))
    header = [name.strip() for name in rows[0]] if rows else []
    if tuple(header[:2]) != _FIRST or len(header) < 3 or not all(name.endswith(_SUFFIX) for name in header[2:]):
        raise BadInput(f"{path}:1: the columns must be {', '.join(_FIRST)} and <system>{_SUFFIX}; correct it")
    systems = [name.removesuffix(_SUFFIX) for name in header[2:]]
    if len(set(systems)) < len(systems):
        raise BadInput(f"{path}:1: a system has two columns; keep one")
    posts: list[str] = []
    columns: list[list[int | None]] = [[] for _ in systems]
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(header):
            raise BadInput(f"{path}:{number}: {len(row)} columns instead of {len(header)}; correct that line")
        posts.append(row[1].strip())
        for column, text in zip(columns, row[2:], strict=True):
            column.append(_rank(text.strip(), f"{path}:{number}"))
    if not posts:
        raise BadInput(f"{path} is empty; it must have one line a question")
    return ScoreSheet(tuple(posts), dict(zip(systems, map(tuple, columns), strict=True)))


def _rank(text: str, place: str) -> int | None:
    if text == NOT_FOUND:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadInput(f"{place}: the rank {text!r} is neither {NOT_FOUND} nor a number from 1; correct that line")
    return int(text)


def write_score_sheet(posts: Sequence[str], ranks: Mapping[str, Sequence[int | None]], path: Path) -> None:
    """A sheet in the published format, lines ended as there (CR LF); None is written as NF.

    ranks: system -> the rank of the first correct hit for each of the posts, in their order.
    Raises BadInput where a system has not one rank a post, or a rank below 1.
    """
    for system, column in ranks.items():
        if len(column) != len(posts):
            raise BadInput(f"{system} has {len(column)} ranks for {len(posts)} questions; give one each")
        if any(rank is not None and rank < 1 for rank in column):
            raise BadInput(f"{system} has a rank below 1; ranks count from 1")
    text = io.StringIO()
    sheet = csv.writer(text)
    sheet.writerow([*_FIRST, *(system + _SUFFIX for system in ranks)])
    for row, post in enumerate(posts):
        found = [NOT_FOUND if column[row] is None else column[row] for column in ranks.values()]
        sheet.writerow([row + 1, post, *found])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def figures(ranks: Sequence[int | None]) -> Figures:
    """What the paper reports of one system.

    >>> figures([1, None, 4])
    Figures(answered_1=1, answered_5=2, answered_10=2, mrr=0.4166666666666667)
    """
    answered = [sum(rank is not None and rank <= k for rank in ranks) for k in (1, 5, 10)]
    mrr = sum(1 / rank for rank in ranks if rank is not None) / len(ranks) if ranks else 0.0
    return Figures(answered[0], answered[1], answered[2], mrr)


def as_runs(sheet: ScoreSheet) -> tuple[Qrels, dict[str, Run]]:
    """The sheet as qrels and one run a system, so that any measure and any test compares with ours.

    The published systems' hits are not known, only where the first correct one stands: before it stand
    documents that nobody judged. What follows it is not known, so only measures of the first answer hold.
    """
    qrels = {id: {ANSWER: 1} for id in sheet.ids}
    runs: dict[str, Run] = {}
    for system, ranks in sheet.ranks.items():
        runs[system] = {
            id: {**{f"unknown-{place}": -float(place) for place in range(1, rank)}, ANSWER: -float(rank)}
            for id, rank in zip(sheet.ids, ranks, strict=True)
            if rank is not None
        }
    return qrels, runs


def recomputed(path: Path) -> dict[str, Any]:
    """A sheet's figures beside the published ones, with the sheet's hash; its rows (CC BY-NC) stay where they are."""
    sheet = read_score_sheet(path)
    return {
        "sheet": path.name,
        "sheet_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "questions": len(sheet.posts),
        "systems": {system: asdict(figures(ranks)) for system, ranks in sheet.ranks.items()},
        "published": {
            system: asdict(Figures(*values)) for system, values in PUBLISHED.items() if system in sheet.ranks
        },
    }
