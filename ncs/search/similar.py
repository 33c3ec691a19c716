"""Functions like one function: code to code, by Aroma's features after a cheap search for its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ncs.errors import BadInput, SourceError
from ncs.extract import extract, readers
from ncs.search.aroma import cached_features, readable, similarity
from ncs.storage.file_roles import OUTLINES
from ncs.storage.filters import matcher, moved, shown_at
from ncs.storage.postings import top
from ncs.text.tokens import field_tokens
from ncs.types import Document, Field, Location

if TYPE_CHECKING:
    from ncs.storage.documents import Documents
    from ncs.storage.postings import Postings
    from ncs.types import Mask

POOL = 400
"""Functions that share most words, of which the features are compared: the best of them has .008 less than the best of
all 200,000 Android functions, on average (of 1,000 .006; of 400 by BM25 instead of `candidates` .03)."""
SHARED: tuple[Field, ...] = ("name", "calls", "types", "enums", "literals", "identifiers", "parameters")
"""Fields whose words are looked for."""


class Similar(NamedTuple):
    """A function like the given one."""

    document: Document
    share: float
    """Which share of the given function's features it has."""
    reverse: float
    """Which share of its features the given function has."""


def parse_place(place: str) -> tuple[Path, int]:
    """FILE:LINE as people type it; BadInput for what is none.

    >>> parse_place("src/Main.java:42")
    (PosixPath('src/Main.java'), 42)
    """
    file, _, line = place.rpartition(":")
    if not file or not line.isascii() or not line.isdigit() or int(line) < 1:
        raise BadInput(f"{place!r} is not FILE:LINE; name a line of a function, as src/Main.java:42")
    return Path(file), int(line)


def function_at(file: Path, line: int) -> Document:
    """The innermost function of a source file at a line, 1-based; its path is the file's whole path.

    Raises SourceError where the file cannot be read, BadInput where no function is at the line.
    """
    if not readers.readable(file.name):
        raise BadInput(f"{file} is in no language that ncs reads; name a source file")
    try:
        source = file.read_bytes()
    except OSError as error:
        raise SourceError(f"cannot read {file} ({error.strerror}); name a source file") from error
    return _innermost(readers.read(source, "", file.resolve().as_posix())[0], line, called=str(file))


def function_in(source: bytes, language: str, line: int, *, path: str, called: str) -> Document:
    """The innermost function at a line of source code; `called` is what errors call it. Raises BadInput for none."""
    return _innermost(extract(source, language, path=path), line, called)


def _innermost(documents: Iterable[Document], line: int, called: str) -> Document:
    functions = [document for document in documents if document.kind not in OUTLINES]
    around = [function for function in functions if function.start_line <= line <= function.end_line]
    if around:
        return max(around, key=lambda function: (function.start_line, -function.end_line))
    if not functions:
        raise BadInput(f"no function in {called}")
    near = min(functions, key=lambda function: abs(function.start_line - line))
    raise BadInput(
        f"no function at line {line} of {called}; the nearest is {near.name}, lines {near.start_line}-{near.end_line}"
    )


def similar(
    function: Document,
    postings: Postings,
    documents: Documents,
    k: int,
    *,
    language: str | None = None,
    repository: str | None = None,
    path: str | None = None,
    kind: str | None = None,
    pool: int = POOL,
) -> list[Similar]:
    """The k functions that have most of this one's features, best first: by (-share, -reverse, row).

    language, repository, path and kind filter, as in `Index.search`. Only the `pool` documents that share most of its
    words are compared. The function itself, known by its place, is left out; its exact copies are shown.
    Raises BadInput for an index without code and for k < 1.
    """
    if k < 1:
        raise BadInput(f"k is {k}; it must be at least 1")
    allowed = documents.mask(language, repository, path, kind)
    rows = candidates(function, postings, 2 * pool, allowed)
    functions = [pair for pair in zip(rows, documents.documents(rows), strict=True) if pair[1].kind not in OUTLINES]
    wanted = cached_features(function.code, function.language)
    likes: list[tuple[float, float, int, Document]] = []
    for row, document in functions[:pool]:
        if not document.code:
            raise BadInput("the index keeps no code to compare; build it without --no-store-code")
        left = without(document, function)
        other = at_filters(left, repository, path) if left is not None else None
        if other is not None and readable(other.language):
            features = cached_features(other.code, other.language)
            likes.append((-similarity(features, wanted), -similarity(wanted, features), row, other))
    likes.sort(key=lambda entry: entry[:3])
    return [Similar(document, -share, -reverse) for share, reverse, _, document in likes[:k] if share]


def at_filters(document: Document, repository: str | None, path: str | None) -> Document | None:
    """The document at the first of its places that passes the filters; None where none does."""
    shown = shown_at(document, repository, path)
    return shown if matcher(repository)(shown.repository) and matcher(path)(shown.path) else None


def candidates(function: Document, postings: Postings, n: int, allowed: Mask | None = None) -> list[int]:
    """The n rows that share most of a function's words, each counted once with its idf; best first, ties by row.

    Length does not matter, as it does to BM25: a function that holds this one may be long.
    """
    words = [word for field in SHARED for word in field_tokens(field, function.words.get(field, ()))]
    scores = np.zeros(len(postings))
    for stem in sorted({term.stem for term in postings.terms(words) if term.documents}):
        rows = postings.rows_with(stem)
        scores[rows] += np.log1p(len(postings) / max(1, len(rows)))
    if allowed is not None:
        scores[~allowed] = 0
    some = np.flatnonzero(scores)
    return [row for row, _ in top(some, scores[some], n)]


def without(document: Document, function: Document) -> Document | None:
    """The document where it is not the function itself: at its first other place; None where there is none."""
    places: Sequence[Location] = (document.location, *document.copies)
    same = document.digest == function.digest
    left = [place for place in places if not _is_at(function, place, same)]
    if len(left) == len(places):
        return document
    if not left:
        return None
    return moved(document, left[0], tuple(left[1:]))


def _is_at(function: Document, place: Location, same: bool) -> bool:
    """Whether the function is at this place; lines may have moved since the index was built."""
    own = f"{function.repository}/{function.path}"
    if not own.endswith(f"/{place.repository}/{place.path}") and own != f"{place.repository}/{place.path}":
        return False
    return function.start_line == place.start_line or (same and function.qualified_name == place.qualified_name)
