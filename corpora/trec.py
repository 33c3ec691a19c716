"""Runs and judgments as TREC's tools read and write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from corpora.corpus import add_judgment
from corpora.jsonl import read_lines
from ncs.errors import BadInput
from ncs.files import replace_file
from ncs.types import Qrels, Run

T = TypeVar("T")


def write_run(run: Run, path: Path, *, tag: str = "ncs") -> None:
    """`query Q0 document rank score tag`, best first; white space of ids becomes %20 and alike."""
    lines = (
        f"{query} Q0 {document} {rank} {float(score)!r} {tag}\n"
        for query, scores in _escape(run).items()
        for rank, (document, score) in enumerate(sorted(_escape(scores).items(), key=lambda pair: -pair[1]), 1)
    )
    replace_file(path, "".join(lines))


def read_run(path: Path) -> Run:
    """A run, every query's documents in the order of the file, which decides ties; the rank column is ignored.

    Raises BadInput, naming the line, for a mistake, and for an empty file.
    """
    run: dict[str, dict[str, float]] = {}
    for place, (query, _, document, _, score, _) in _columns(path, 6):
        scores = run.setdefault(query, {})
        if document in scores:
            raise BadInput(f"{place}: {document!r} is repeated for query {query!r}; keep one line")
        scores[document] = _score(score, place)
    if not run:
        raise BadInput(f"{path} is an empty run; give the ranking of at least one query")
    return run


def write_qrels(qrels: Qrels, path: Path) -> None:
    """`query 0 document grade`; white space of ids as `write_run` has it."""
    lines = (
        f"{query} 0 {document} {grade}\n"
        for query, grades in _escape(qrels).items()
        for document, grade in _escape(grades).items()
    )
    replace_file(path, "".join(lines))


def read_qrels(path: Path) -> Qrels:
    """Judgments; BadInput, naming the line, for a mistake, and for an empty file."""
    qrels: dict[str, dict[str, int]] = {}
    for place, (query, _, document, grade) in _columns(path, 4):
        add_judgment(qrels, query, document, grade, place)
    if not qrels:
        raise BadInput(f"{path} holds no judgments; give at least one")
    return qrels


def _columns(path: Path, count: int) -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split()
        if columns and len(columns) != count:
            raise BadInput(f"{path}:{number}: {len(columns)} columns instead of {count}; correct that line")
        if columns:
            yield f"{path}:{number}", columns


def _score(text: str, place: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise BadInput(f"{place}: the score {text!r} is not a number; correct that line")
    return score


def _escape(values: Mapping[str, T]) -> dict[str, T]:
    """The values by ids that TREC files can hold; BadInput for an empty id, and where two become one.

    >>> _escape({"my app/a.py:1": 1, "app/a%b.py:1": 2})
    {'my%20app/a.py:1': 1, 'app/a%b.py:1': 2}
    """
    escaped = {re.sub(r"\s", lambda space: quote(space[0]), id): value for id, value in values.items()}
    if len(escaped) < len(values) or "" in escaped:
        raise BadInput(
            "TREC files hold no empty id, and no two that differ in white space and %20 alone; "
            "rename one, or write a BEIR folder"
        )
    return escaped
