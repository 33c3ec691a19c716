"""Facebook's Neural Code Search Evaluation Dataset (Li et al. 2019): questions, repositories, score sheet.

The questions are Stack Overflow titles about Android with answer snippets. They have no qrels over a fixed corpus:
a hit is judged by its similarity to the answer's snippet (evaluation.stackoverflow). The score sheet has the rank of
the first correct answer (FRank) question by question and system by system: `No.,StackOverflow ID,<system> FRank,...`, a
rank is 1 or more, `NF` where none was found. The data is CC BY-NC: for evaluation only.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corpora.corpus import first_repeated
from corpora.download import RemoteFile
from corpora.jsonl import Row, read_json, read_lines
from corpora.tables import write_table
from ncs.errors import BadInput
from ncs.search.question import check_length
from ncs.types import Query

NOT_FOUND = "NF"
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
class Question:
    """A question, the snippet of its accepted answer, and links to functions that answer it as well."""

    query: Query
    answer: str
    examples: tuple[str, ...]


def read_questions(path: Path) -> list[Question]:
    """Questions of a JSON file in the published shape: a list of objects with stackoverflow_id, question,
    answer and (where there are) examples_url. Where two questions come from one post, as in the release
    (2470870), the second is called `<id>-2`. Raises BadInput, naming the first invalid object.
    """
    rows = read_json(path, "name the JSON file with the questions")
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{path} has no list of questions; name the JSON file with the questions")
    questions = [_question(row, f"{path}: question {number}") for number, row in enumerate(rows, 1)]
    if (twice := first_repeated((question.query, question.answer) for question in questions)) is not None:
        raise BadInput(f"{path}: two questions have the stackoverflow_id {twice[0].id!r}; ids must differ")
    counts: Counter[str] = Counter()
    numbered = []
    for question in questions:
        id = question.query.id
        counts[id] += 1
        new_id = id if counts[id] == 1 else f"{id}-{counts[id]}"
        numbered.append(replace(question, query=Query(new_id, question.query.text)))
    return numbered


def _question(values: object, place: str) -> Question:
    row = Row(values if isinstance(values, dict) else {}, place)
    id, question, answer = str(row.values.get("stackoverflow_id", "")), row.text("question"), row.text("answer")
    if not (id and question.strip() and answer.strip()):
        raise BadInput(f"{place} lacks stackoverflow_id, question or answer; correct it")
    check_length(question)
    return Question(Query(id, question), answer, row.texts("examples_url"))


_LINK = re.compile(r"https?://[^/\s]+(?:/[^/\s]+)*?/([\w.-]+)/([\w.-]+)/archive/([0-9a-fA-F]{7,40})\.zip")


def read_links(path: Path) -> list[RemoteFile]:
    """A list of repositories, one link to an archive per line, as files to fetch, `owner+name.zip`; # begins a comment.

    A repository listed at several commits is `owner+name+<commit>.zip` from the second on.
    Raises BadInput, naming the line, for an invalid link.
    """
    files: dict[str, RemoteFile] = {}
    urls: set[str] = set()
    for number, line in enumerate(read_lines(path), 1):
        url = line.partition("#")[0].strip()
        if not url or url in urls:
            continue
        link = _LINK.fullmatch(url)
        if link is None or {link[1], link[2]} & {".", ".."}:
            raise BadInput(
                f"{path}:{number}: {url[:80]!r} is no link to an archive (.../owner/name/archive/commit.zip)"
            )
        urls.add(url)
        file = f"{link[1]}+{link[2]}.zip"
        file = file if file not in files else f"{link[1]}+{link[2]}+{link[3]}.zip"
        files[file] = RemoteFile(url, file)
    if not files:
        raise BadInput(f"{path} lists no repositories; name android_repositories_download_links.txt of the release")
    return list(files.values())


@dataclass(frozen=True, slots=True)
class ScoreSheet:
    """posts: Stack Overflow ids in the order of the sheet, possibly repeated. ranks: system -> one per question."""

    posts: tuple[str, ...]
    ranks: Mapping[str, tuple[int | None, ...]]


def read_score_sheet(path: Path) -> ScoreSheet:
    """Read a score sheet; raises BadInput, naming the line, for another shape or an invalid rank."""
    rows = list(csv.reader(read_lines(path)))
    header = [name.strip() for name in rows[0]] if rows else []
    systems = [name.removesuffix(_SUFFIX) for name in header[2:]]
    if not systems or header != _header(systems):
        raise BadInput(f"{path}:1: the columns must be {', '.join(_FIRST)} and <system>{_SUFFIX}; correct it")
    if len(set(systems)) < len(systems):
        raise BadInput(f"{path}:1: a system has two columns; keep one")
    posts: list[str] = []
    columns: list[list[int | None]] = [[] for _ in systems]
    for number, row in enumerate(rows[1:], 2):
        if row and len(row) != len(header):
            raise BadInput(f"{path}:{number}: {len(row)} columns instead of {len(header)}; correct that line")
        posts += [post.strip() for post in row[1:2]]
        for column, text in zip(columns, row[2:], strict=False):
            column.append(_rank(text.strip(), f"{path}:{number}"))
    if not posts:
        raise BadInput(f"{path} is empty; it must have one line a question")
    return ScoreSheet(tuple(posts), dict(zip(systems, map(tuple, columns), strict=True)))


def _header(systems: Iterable[str]) -> list[str]:
    return [*_FIRST, *(system + _SUFFIX for system in systems)]


def _rank(text: str, place: str) -> int | None:
    if text == NOT_FOUND:
        return None
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise BadInput(f"{place}: the rank {text!r} is neither {NOT_FOUND} nor a number from 1; correct that line")
    return int(text)


def write_score_sheet(posts: Sequence[str], ranks: Mapping[str, Sequence[int | None]], path: Path) -> None:
    """A sheet in the published format, lines ended as there (CR LF); None is written as NF.

    ranks: system -> the rank of the first correct hit for each of the posts, in their order.
    """
    rows = (
        [number, post, *(NOT_FOUND if rank is None else rank for rank in row)]
        for number, (post, *row) in enumerate(zip(posts, *ranks.values(), strict=True), 1)
    )
    write_table(path, _header(ranks), rows, line_end="\r\n")


def figures(ranks: Sequence[int | None]) -> dict[str, float]:
    """The paper's figures for a system: questions answered in the first 1, 5 and 10 hits, and MRR (NF counts 0).

    >>> figures([1, None, 4])
    {'answered_1': 1, 'answered_5': 2, 'answered_10': 2, 'mrr': 0.4166666666666667}
    """
    reached = [rank for rank in ranks if rank is not None]
    answered = {f"answered_{k}": sum(rank <= k for rank in reached) for k in (1, 5, 10)}
    return {**answered, "mrr": math.fsum(1 / rank for rank in reached) / max(1, len(ranks))}


def recompute(path: Path) -> dict[str, Any]:
    """A sheet's figures beside the published ones, with the sheet's hash, without its rows (CC BY-NC)."""
    sheet = read_score_sheet(path)
    return {
        "sheet": path.name,
        "sheet_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "questions": len(sheet.posts),
        "systems": {system: figures(ranks) for system, ranks in sheet.ranks.items()},
        "published": {
            system: dict(zip(figures(()), values, strict=True))
            for system, values in PUBLISHED.items()
            if system in sheet.ranks
        },
    }
