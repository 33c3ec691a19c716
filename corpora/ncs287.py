"""Facebook's Neural Code Search Evaluation Dataset (Li et al. 2019): questions, repositories, score sheet.

The questions are Stack Overflow titles about Android with answer snippets. They have no qrels over a fixed corpus:
a hit is judged by its similarity to the answer's snippet (evaluation.judges.aroma). The score sheet has the rank of the
first correct answer (FRank) question by question and system by system: `No.,StackOverflow ID,<system> FRank,...`, a
rank is 1 or more, `NF` where none was found. The data is CC BY-NC: for evaluation only.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from corpora.download import RemoteFile
from corpora.jsonl import read_lines
from ncs.errors import BadInput
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
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; name the JSON file with the questions") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"{path} is not JSON ({error}); fetch the file again") from None
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{path} has no list of questions; name the JSON file with the questions")
    questions = [_question(row, f"{path}: question {number}") for number, row in enumerate(rows, 1)]
    same = Counter((question.query, question.answer) for question in questions)
    if twice := [query.id for (query, _), times in same.items() if times > 1]:
        raise BadInput(f"{path}: two questions have the stackoverflow_id {twice[0]!r}; ids must differ")
    ids = numbered(question.query.id for question in questions)
    return [
        Question(Query(id, question.query.text), question.answer, question.examples)
        for id, question in zip(ids, questions, strict=True)
    ]


def numbered(ids: Iterable[str]) -> list[str]:
    """The ids made unique: the second of the same post is `<id>-2`, in the questions as in the score sheet.

    >>> numbered(["7", "8", "7"])
    ['7', '8', '7-2']
    """
    counts: Counter[str] = Counter()
    unique_ids = []
    for id in ids:
        counts[id] += 1
        unique_ids.append(id if counts[id] == 1 else f"{id}-{counts[id]}")
    return unique_ids


def _question(row: object, place: str) -> Question:
    if not isinstance(row, dict):
        raise BadInput(f"{place} is not a JSON object; correct it")
    texts = [row.get(key) for key in ("question", "answer")]
    id = row.get("stackoverflow_id")
    if not isinstance(id, (str, int)) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise BadInput(f"{place} lacks stackoverflow_id, question or answer; correct it")
    examples = row.get("examples_url") or ()
    if not isinstance(examples, Iterable):
        raise BadInput(f"{place}: examples_url is not a list; correct it")
    return Question(Query(str(id), str(texts[0])), str(texts[1]), tuple(map(str, examples)))


_LINK = re.compile(r"https?://[^/\s]+(?:/[^/\s]+)*?/([\w.-]+)/([\w.-]+)/archive/([0-9a-fA-F]{7,40})\.zip")


def read_links(path: Path) -> list[RemoteFile]:
    """The list of repositories, one link to an archive a line, as files to fetch: `owner+name.zip`.

    A repository listed at several commits is `owner+name+<commit>.zip` from the second on.
    Raises BadInput, naming the line, for an invalid link.
    """
    files: dict[str, RemoteFile] = {}
    urls: set[str] = set()
    for number, line in enumerate(read_lines(path), 1):
        url = line.strip()
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

    @property
    def ids(self) -> list[str]:
        """Query ids, as read_questions gives them."""
        return numbered(self.posts)


@dataclass(frozen=True, slots=True)
class Figures:
    """A system's results: questions answered in the first 1, 5 and 10 hits, mean reciprocal rank (NF counts 0)."""

    answered_1: int
    answered_5: int
    answered_10: int
    mrr: float


def read_score_sheet(path: Path) -> ScoreSheet:
    """Read a score sheet; raises BadInput, naming the line, for another shape or an invalid rank."""
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
        ranks_of_query = [NOT_FOUND if column[row] is None else column[row] for column in ranks.values()]
        sheet.writerow([row + 1, post, *ranks_of_query])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def figures(ranks: Sequence[int | None]) -> Figures:
    """The figures that the paper reports for a system.

    >>> figures([1, None, 4])
    Figures(answered_1=1, answered_5=2, answered_10=2, mrr=0.4166666666666667)
    """
    counts = [sum(rank is not None and rank <= k for rank in ranks) for k in (1, 5, 10)]
    mrr = sum(1 / rank for rank in ranks if rank is not None) / len(ranks) if ranks else 0.0
    return Figures(counts[0], counts[1], counts[2], mrr)


def recompute(path: Path) -> dict[str, Any]:
    """A sheet's figures beside the published ones, with the sheet's hash, without its rows (CC BY-NC)."""
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
