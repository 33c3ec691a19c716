"""An annotation session: the pairs shown to each annotator, with highlighted code and links, and their answers."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

from corpora.codesearchnet.repositories import Repository, commit_of, find_repositories, url_of
from evaluation.annotation.judgments import Answer, Judgments, grades_of, next_pair
from evaluation.annotation.pool import Pair, digest
from ncs.errors import BadInput, SourceError
from ncs.index import Index
from ncs.types import Document

State = Mapping[str, Any]
MAX_SHOWN = 60_000
"""Characters of a function that are shown."""
MAX_HIGHLIGHTED = 20_000
"""Characters that are highlighted."""
MAX_SECONDS = 0.5
"""What highlighting may take, the rest stays plain: 20,000 line ends take Pygments' Java 13 s."""
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Invisible and bidirectional control characters (trojan source), except tab and line end."""
_KINDS = (
    ("Comment", "comment"), ("Literal.String", "string"), ("Literal.Number", "number"), ("Keyword.Type", "type"),
    ("Keyword", "keyword"), ("Name.Function", "name"), ("Name.Class", "type"), ("Name.Builtin", "type"),
    ("Name.Decorator", "type"),
)  # fmt: skip
_LEXERS = {"c_sharp": "csharp", "template": "text", "module": "text"}
Piece = tuple[str, str]
"""Kind (a class of the page; "" for plain), text."""
_FLAT = re.compile(r"([A-Za-z0-9][\w-]*)\+([\w.-]+)", re.ASCII)


class Session:
    """One pool with its answers and the functions in the index."""

    def __init__(self, judgments: Judgments, index: Index) -> None:
        """Raises BadInput where a function of the pool is not in the index, or has other code there."""
        self.judgments = judgments
        self.documents = _documents(judgments, index)
        self._texts = {query.id: query.text for query in judgments.queries}
        self._repositories: Mapping[str, tuple[Repository, str]] = repositories_of(
            index, (document.repository for document in self.documents.values())
        )
        self._hidden = {str(judgments.path): judgments.path.name, str(index.folder): "the index"}

    def hidden(self) -> Mapping[str, str]:
        """Paths of the machine -> what error messages call them."""
        return self._hidden

    def overview(self) -> State:
        """Counts of pairs by language and of judgments by annotator."""
        languages = Counter(pair.language for pair in self.judgments.pairs)
        judged = Counter(name for grades in grades_of(self.judgments.answers()).values() for name in grades)
        return {
            "pairs": len(self.judgments.pairs),
            "queries": len({pair.query for pair in self.judgments.pairs}),
            "languages": dict(sorted(languages.items())),
            "annotators": dict(sorted(judged.items())),
        }

    def state(self, annotator: str, language: str | None, undone: Answer | None = None) -> State:
        """The next pair of an annotator, or the one whose answer was undone, and the progress."""
        answers = self.judgments.answers()
        own_answers = [answer for answer in answers if answer.annotator == annotator]
        pairs = self._of(language)
        pair = next_pair(pairs, answers, annotator, self.judgments.recipe.seed)
        if undone is not None:
            pair = self.judgments.pairs[undone.pair - 1]
        return {
            "pair": None if pair is None else self._pair_state(pair, own_answers, undone),
            "progress": _progress(pairs, answers, annotator),
            "undo": bool(own_answers),
        }

    def answer(self, annotator: str, pair: int, grade: int | None, notes: str) -> None:
        """Store an answer. Raises BadInput for a pair that is not in the pool, JudgedAlready for a judged one."""
        if not 1 <= pair <= len(self.judgments.pairs):
            raise BadInput(f"the pool has no pair {pair}; its pairs are 1 to {len(self.judgments.pairs)}")
        self.judgments.add(annotator, pair, grade, notes)

    def undo(self, annotator: str) -> Answer:
        """Delete the annotator's last answer. Raises BadInput where there is none."""
        answer = self.judgments.undo(annotator)
        if answer is None:
            raise BadInput("nothing to undo; judge something first")
        return answer

    def url_or_id(self, id: str) -> str:
        """What annotationStore.csv calls a function: its web address where it is known, else its id."""
        return link(self.documents[id], self._repositories) or id

    def _of(self, language: str | None) -> Sequence[Pair]:
        pairs = [pair for pair in self.judgments.pairs if language in (None, pair.language)]
        if not pairs:
            languages = ", ".join(sorted({pair.language for pair in self.judgments.pairs}))
            raise BadInput(f"the pool has no {language}; it has: {languages}")
        return pairs

    def _pair_state(self, pair: Pair, own_answers: Sequence[Answer], undone: Answer | None) -> State:
        """A pair for the page; which ranker found it would bias and is not shown."""
        document = self.documents[pair.document]
        code, is_cut = highlight(document)
        is_complete = document.code.count("\n") == document.end_line - document.start_line
        earlier = next((answer.notes for answer in reversed(own_answers) if answer.pair == pair.number), "")
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
            "notes": undone.notes if undone else earlier,
            "grade": undone.grade if undone else None,
        }


def _progress(pairs: Sequence[Pair], answers: Sequence[Answer], annotator: str) -> dict[str, int]:
    numbers = {pair.number for pair in pairs}
    judged = grades_of([answer for answer in answers if answer.pair in numbers])
    judged_by_annotator = {number for number, grades in judged.items() if annotator in grades}
    skipped = {a.pair for a in answers if a.annotator == annotator and a.grade is None and a.pair in numbers}
    return {
        "judged": len(judged_by_annotator),
        "skipped": len(skipped - judged_by_annotator),
        "of": len(numbers),
        "by_anybody": len(judged),
    }


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


def link(document: Document, repositories: Mapping[str, tuple[Repository, str]]) -> str | None:
    """The id where it is a web address (CodeSearchNet's are), else one made of the repository's; None for neither.

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


def repositories_of(index: Index, names: Iterable[str]) -> dict[str, tuple[Repository, str]]:
    """name -> repository and its commit now, of those whose place on this machine and address on the web are known.

    An index names a repository by its path below the root, or by the root's own name; a name that fits several
    places is ignored. A folder that is called owner+name is that repository of GitHub, as for corpora.codesearchnet.
    """
    sources = index.description.counts.get("sources")
    roots = [Path(root) for root in cast("list[str]", sources["roots"])] if isinstance(sources, dict) else []
    repositories = {}
    for name in sorted(set(names)):
        places = [root for root in roots if root.name.removesuffix(".git") == name]
        places += [place for root in roots for end in ("", ".git") if (place := root / f"{name}{end}").is_dir()]
        if len(places) == 1 and (repository := _at(places[0])) is not None:
            repositories[name] = repository, commit_of(repository)
        elif flat := next(filter(None, map(_FLAT.fullmatch, name.split("/"))), None):
            repositories[name] = Repository(name, Path(name), f"https://github.com/{flat[1]}/{flat[2]}"), ""
    return repositories


def _at(place: Path) -> Repository | None:
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
    return list(_pieces(code[:MAX_SHOWN], document.language)), len(code) > MAX_SHOWN


@lru_cache(64)
def _pieces(code: str, language: str) -> tuple[Piece, ...]:
    visible = (piece for kind, text in _highlighted(code, language) for piece in _revealed(kind, text))
    grouped = groupby(visible, key=lambda piece: piece[0])
    return tuple((kind, "".join(text for _, text in same)) for kind, same in grouped)


def _revealed(kind: str, text: str) -> Iterator[Piece]:
    end = 0
    for match in HIDDEN.finditer(text):
        yield kind, text[end : match.start()]
        yield "hidden", f"U+{ord(match[0]):04X}"
        end = match.end()
    if end < len(text):
        yield kind, text[end:]


def _highlighted(code: str, language: str) -> Iterator[Piece]:
    """Plain where Pygments does not know the language, or a lexer fails: people can still judge the code."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    position, end = 0, time.monotonic() + MAX_SECONDS
    try:
        lexer = get_lexer_by_name(_LEXERS.get(language, language), stripnl=False, ensurenl=False, **_options(language))
        for token, text in lexer.get_tokens(code[:MAX_HIGHLIGHTED]):
            if time.monotonic() > end or not code.startswith(text, position):
                break
            yield _kind(str(token)), text
            position += len(text)
    except (ClassNotFound, RecursionError):
        pass
    yield "", code[position:]


def _options(language: str) -> dict[str, bool]:
    return {"startinline": True} if language == "php" else {}


def _kind(token: str) -> str:
    name = token.removeprefix("Token.")
    return next((kind for start, kind in _KINDS if name == start or name.startswith(f"{start}.")), "")
