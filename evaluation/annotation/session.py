"""An annotation session: the pairs shown to each annotator, with highlighted code and links, and the progress."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, String
from pygments.util import ClassNotFound

from corpora.codesearchnet.repositories import Repository, commit_of, find_repositories, url_of
from evaluation.annotation.judgments import Answer, Judgments, grades_of, next_pair
from evaluation.annotation.pool import Pair, digest
from ncs.errors import BadInput, SourceError
from ncs.index import Index
from ncs.types import Document

State = Mapping[str, Any]
Repositories = Mapping[str, tuple[Repository, str]]
"""name -> repository and commit."""
MAX_SHOWN = 60_000
"""Characters of a function that are shown."""
MAX_HIGHLIGHTED = 20_000
"""Characters that are highlighted."""
MAX_SECONDS = 0.5
"""The time limit of highlighting, the rest stays plain: 20,000 line ends take Pygments' Java 13 s."""
HIDDEN = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff])"
)
"""Invisible and bidirectional control characters (trojan source), except tab and line end."""
_KINDS = (
    (Comment, "comment"), (String, "string"), (Number, "number"), (Keyword.Type, "type"), (Keyword, "keyword"),
    (Name.Function, "name"), (Name.Class, "type"), (Name.Builtin, "type"), (Name.Decorator, "type"),
)  # fmt: skip
_LEXERS = {"c_sharp": "csharp", "template": "text", "module": "text"}
Piece = tuple[str, str]
"""Kind (a class of the page; "" for plain), text."""


class Session:
    """One pool with its answers and the functions in the index."""

    def __init__(self, judgments: Judgments, index: Index) -> None:
        """Raises BadInput where a function of the pool is not in the index, or has other code there."""
        self.judgments, self.index = judgments, index
        self._documents = _documents(judgments, index)
        self._texts = {query.id: query.text for query in judgments.queries}
        self._repositories = repositories_of(index, {each.repository for each in self._documents.values()})

    def aliases(self) -> Mapping[str, str]:
        """Paths of the machine -> their names in error messages."""
        return {str(self.judgments.path): self.judgments.path.name, str(self.index.folder): "the index"}

    def overview(self) -> State:
        """Counts of pairs by language and of judgments by annotator."""
        languages = Counter(pair.language for pair in self.judgments.pairs)
        counts = Counter(name for grades in grades_of(self.judgments.answers()).values() for name in grades)
        return {
            "pairs": len(self.judgments.pairs),
            "queries": len({pair.query for pair in self.judgments.pairs}),
            "languages": dict(sorted(languages.items())),
            "annotators": dict(sorted(counts.items())),
        }

    def state(self, annotator: str, language: str | None, undone: Answer | None = None) -> State:
        """The next pair of an annotator, or that of the undone answer, and the progress."""
        pairs = [pair for pair in self.judgments.pairs if language in (None, pair.language)]
        if not pairs:
            languages = ", ".join(sorted({pair.language for pair in self.judgments.pairs}))
            raise BadInput(f"the pool has no {language}; it has: {languages}")
        answers = self.judgments.answers()
        own = [answer for answer in answers if answer.annotator == annotator]
        pair = next_pair(pairs, answers, annotator, self.judgments.recipe.seed)
        if undone is not None:
            pair = self.judgments.pairs[undone.pair - 1]
        return {
            "pair": None if pair is None else self._pair_state(pair, own, undone),
            "progress": _progress(pairs, answers, annotator),
            "undo": bool(own),
        }

    def url_or_id(self, id: str) -> str:
        """A function's name in annotationStore.csv: its web address where it is known, else its id."""
        return link(self._documents[id], self._repositories) or id

    def _pair_state(self, pair: Pair, own: Sequence[Answer], undone: Answer | None) -> State:
        """A pair for the page; its rankers would bias and are not shown."""
        document = self._documents[pair.document]
        code, is_cut = highlight(document)
        is_complete = document.code.count("\n") == document.end_line - document.start_line
        earlier = undone or next((answer for answer in reversed(own) if answer.pair == pair.number), None)
        return {
            "number": pair.number,
            "query": self._texts[pair.query],
            "language": document.language,
            "name": document.qualified_name or document.name,
            "place": f"{document.repository}/{document.path}:{document.start_line}".lstrip("/"),
            "url": link(document, self._repositories),
            "first_line": document.start_line if is_complete else None,
            "code": code,
            "cut": is_cut,
            "notes": earlier.notes if earlier else "",
            "grade": undone.grade if undone else None,
        }


def _progress(pairs: Sequence[Pair], answers: Sequence[Answer], annotator: str) -> dict[str, int]:
    numbers = {pair.number for pair in pairs}
    answers = [answer for answer in answers if answer.pair in numbers]
    grades = grades_of(answers)
    judged = {number for number, by_annotator in grades.items() if annotator in by_annotator}
    skipped = {answer.pair for answer in answers if answer.annotator == annotator and answer.grade is None}
    return {
        "judged": len(judged), "skipped": len(skipped - judged), "of": len(numbers), "by_anybody": len(grades),
    }  # fmt: skip


def _documents(judgments: Judgments, index: Index) -> dict[str, Document]:
    """The functions of the pool; their code must be the code that people judged."""
    digests = {pair.document: pair.digest for pair in judgments.pairs}
    rows = {id: row for id in digests if (row := index.documents.row_of(id)) is not None}
    documents = dict(zip(rows, index.documents.documents(list(rows.values())), strict=True))
    mismatches = [id for id in digests if id not in documents or digest(documents[id]) != digests[id]]
    if mismatches:
        raise BadInput(
            f"{judgments.path} is of another index: {len(mismatches):,} of its {len(digests):,} functions are not in "
            f"{index.folder}, or changed (the first: {mismatches[0]}); name that index, or a new file with --database"
        )
    return documents


# Links.


def link(document: Document, repositories: Repositories) -> str | None:
    """The id where it is a web address (CodeSearchNet's are), else an address in its repository; None without.

    >>> from ncs.types import Document
    >>> link(Document("javascript:alert(1)", "r", "p", 1, 2, "java", "method", "f", "f"), {})
    >>> link(Document("https://github.com/o/n/blob/c0/p#L1-L2", "r", "p", 1, 2, "java", "method", "f", "f"), {})
    'https://github.com/o/n/blob/c0/p#L1-L2'
    """
    if _is_web(document.id):
        return document.id
    if document.repository not in repositories:
        return None
    repository, commit = repositories[document.repository]
    path = quote(document.path, errors="surrogateescape")
    url = url_of(repository, commit, path, document.start_line, document.end_line)
    return url if _is_web(url) else None


def _is_web(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and text.isprintable() and " " not in text
    except ValueError:
        return False


def repositories_of(index: Index, names: Iterable[str]) -> Repositories:
    """The repositories of an index whose place on this machine and address on the web are known, at their commit now.

    An index names a repository by its path below the root, or by the root's own name; a name that fits several
    places is ignored.
    """
    repositories, roots = {}, index.snapshot.roots
    for name in names:
        places = [root for root in roots if root.name.removesuffix(".git") == name]
        places += [place for root in roots for end in ("", ".git") if (place := root / f"{name}{end}").is_dir()]
        if len(places) == 1 and (repository := _repository_at(places[0])) is not None:
            repositories[name] = repository, commit_of(repository)
    return repositories


def _repository_at(place: Path) -> Repository | None:
    try:
        repositories = [each for each in find_repositories([place]) if each.path == place.resolve() and each.address]
    except (SourceError, OSError):
        return None
    return repositories[0] if len(repositories) == 1 else None


# Highlighting.


def highlight(document: Document) -> tuple[list[Piece], bool]:
    """The code, cut at MAX_SHOWN characters, and whether it was cut.

    Pieces of kind `hidden` say which character stands there (U+202E); all others put together are the code.
    """
    code = document.code.replace("\r\n", "\n")
    pieces = (piece for token in _tokens(code[:MAX_SHOWN], document.language) for piece in _reveal(*token))
    runs = [(kind, "".join(text for _, text in run)) for kind, run in groupby(pieces, key=lambda piece: piece[0])]
    return [(kind, text) for kind, text in runs if text], len(code) > MAX_SHOWN


def _reveal(kind: str, text: str) -> Iterator[Piece]:
    for number, part in enumerate(HIDDEN.split(text)):
        yield ("hidden", f"U+{ord(part):04X}") if number % 2 else (kind, part)


def _tokens(code: str, language: str) -> Iterator[Piece]:
    """Plain where Pygments does not know the language, or a lexer fails: people can still judge the code."""
    position, end = 0, time.monotonic() + MAX_SECONDS
    try:
        name = _LEXERS.get(language, language)
        lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False, startinline=True)  # startinline: of PHP
        for token, text in lexer.get_tokens(code[:MAX_HIGHLIGHTED]):
            if time.monotonic() > end or not code.startswith(text, position):
                break
            yield next((kind for parent, kind in _KINDS if token in parent), ""), text
            position += len(text)
    except (ClassNotFound, RecursionError):
        pass
    yield "", code[position:]
