"""Functions that questions list as answers by GitHub links, found in local clones.

A link names a commit, which a newer clone need not have. So a listed function is read at that commit where it is
there, else at HEAD by its lines; and it counts as still there where HEAD has a function of its name in the same
file with at least half of its lines (`Example.current`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from corpora.ncs287 import Question
from ncs.errors import BadInput, SourceError
from ncs.extract import extract, language_of
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.sources.git import ObjectReader
from ncs.sources.ignore import NO_IGNORES
from ncs.sources.repositories import Repository, repository_at
from ncs.types import Document, Qrels

LEFT = 0.5
"""Least share of a listed function's lines in its current version."""
_LINK = re.compile(r"https?://github\.com/([^/]+/[^/]+)/blob/([^/]+)/([^#]+)#L(\d+)(?:-L(\d+))?")


@dataclass(frozen=True, slots=True)
class Link:
    """A GitHub address of some lines of a file at a commit."""

    repository: str
    commit: str
    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Example:
    """A function that answers a question."""

    question: str
    url: str
    document: Document
    """At the listed commit, or at HEAD without that commit."""
    current: Document | None
    """The function at HEAD, None if it is gone; its repository is `owner/name`."""


def parse_link(url: str) -> Link:
    """The parts of a link; BadInput for what is none.

    >>> parse_link("https://github.com/o/n/blob/1f2e/src/A%20b.java#L3-L9")
    Link(repository='o/n', commit='1f2e', path='src/A b.java', first=3, last=9)
    """
    if (match := _LINK.fullmatch(url)) is None:
        raise BadInput(f"{url!r} is no link to lines of a file on GitHub; correct the questions' examples_url")
    repository, commit, path, first, last = match.groups()
    return Link(repository, commit, unquote(path), int(first), int(last or first))


def find_examples(questions: Sequence[Question], clones: Path, *, track: Track = silent) -> list[Example]:
    """All listed functions that the clones below a folder have, in the order of the questions.

    clones: a folder with `owner/name`, `owner+name` or `owner+name/repo`, each a git repository, bare or not.
    Missing repositories, files and functions are skipped.
    """
    links = [(q.query.id, url, parse_link(url)) for q in questions for url in q.examples]
    by_repository = sorted(enumerate(links), key=lambda item: (item[1][2].repository, item[0]))
    groups = [(name, list(group)) for name, group in groupby(by_repository, key=lambda item: item[1][2].repository)]
    examples: dict[int, Example] = {}
    for name, group in track(groups, "reading listed functions", total=len(groups), unit="repositories"):
        if (clone := clone_of(name, clones)) is None:
            continue
        with closing(ObjectReader(clone)) as objects:
            for number, (question, url, link) in group:
                if (example := _example(objects, question, url, link)) is not None:
                    examples[number] = example
    return [examples[number] for number in sorted(examples)]


def clone_of(repository: str, clones: Path) -> Repository | None:
    """Where the clone of `owner/name` lies; None without one."""
    plus = repository.replace("/", "+")
    for path in (clones / repository, clones / plus, clones / plus / "repo"):
        if path.is_dir():
            clone = repository_at(path, [entry.name for entry in path.iterdir()], "", NO_IGNORES)
            if clone is not None:
                return clone
    return None


def _example(objects: ObjectReader, question: str, url: str, link: Link) -> Example | None:
    then = _functions(objects, link.commit, link)
    now = _functions(objects, "HEAD", link)
    if (listed := at_lines(then, link.first, link.last)) is not None:
        return Example(question, url, listed, _become(listed, now))
    if then or (at_head := at_lines(now, link.first, link.last)) is None:
        return None
    return Example(question, url, at_head, at_head)


def _functions(objects: ObjectReader, revision: str, link: Link) -> list[Document]:
    language = language_of(link.path)
    file = objects.read(f"{revision}:{link.path}") if language else None
    if file is None or language is None:
        return []
    try:
        return list(extract(file.content, language, repository=link.repository, path=link.path))
    except SourceError:
        return []


def at_lines(functions: Iterable[Document], first: int, last: int) -> Document | None:
    """The function that covers at least half of these lines and little else; None where there is none."""

    def fit(function: Document) -> tuple[float, int]:
        common = max(0, min(last, function.end_line) - max(first, function.start_line) + 1)
        union = last - first + 1 + function.end_line - function.start_line + 1 - common
        return common / union, common

    best = max(functions, key=fit, default=None)
    return best if best is not None and fit(best)[1] >= LEFT * (last - first + 1) else None


def _become(listed: Document, now: Iterable[Document]) -> Document | None:
    """The function of the same name with most of the lines, where these are at least half."""
    lines = _lines(listed.code)
    shares = [
        (sum((lines & _lines(function.code)).values()) / max(1, sum(lines.values())), -number, function)
        for number, function in enumerate(now)
        if function.name == listed.name
    ]
    share, _, function = max(shares, key=lambda item: item[:2], default=(0.0, 0, None))
    return function if share >= LEFT else None


def _lines(code: str) -> Counter[str]:
    return Counter(stripped for line in code.split("\n") if (stripped := line.strip()))


def rows_of(index: Index, examples: Iterable[Example]) -> Iterator[int | None]:
    """The row of each example's current function in an index of the clones; None where it is not indexed.

    A function that was folded into an exact duplicate has that one's row. Repositories are known by `owner/name`
    or by the folders that `find_examples` knows.
    """
    counts: Mapping[str, Any] = index.description.counts
    names = {_plain(name): name for name in counts["repositories"]}
    for example in examples:
        yield _row(index, names, example.current) if example.current is not None else None


def listed_qrels(index: Index, examples: Sequence[Example]) -> Qrels:
    """The listed functions that an index has, as judgments: question -> document id -> 1."""
    qrels: dict[str, dict[str, int]] = {}
    for example, row in zip(examples, rows_of(index, examples), strict=True):
        if row is not None:
            qrels.setdefault(example.question, {})[index.documents.ids([row])[0]] = 1
    return qrels


def _plain(repository: str) -> str:
    return repository.removesuffix("/repo").replace("+", "/")


def _row(index: Index, names: Mapping[str, str], function: Document) -> int | None:
    repository = names.get(function.repository)
    if repository is None:
        return None
    path = "/" + function.path
    mask = index.documents.mask(None, "/" + repository, path)
    rows = mask.nonzero()[0].tolist() if mask is not None else []
    for row, document in zip(rows, index.documents.documents(rows), strict=True):
        places = (document.location, *document.copies)
        if any(
            (place.repository, place.path, place.start_line) == (repository, function.path, function.start_line)
            for place in places
        ):
            return int(row)
    return None
