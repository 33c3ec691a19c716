"""Code-to-code search: functions similar to a function, by Aroma's features among those that share its words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, SourceError, check_k
from ncs.extract import extract, readers
from ncs.extract.languages import is_installed
from ncs.extract.text_files import language_called
from ncs.files import read_regular
from ncs.messages import NO_CODE, NO_PLACE
from ncs.search.aroma import cached_features, resemblance
from ncs.sources.filters import Limits
from ncs.storage.arrays import top_rows
from ncs.storage.documents import LINE
from ncs.storage.file_roles import OUTLINES
from ncs.storage.filters import at_location, at_matching_location
from ncs.text.tokens import field_tokens
from ncs.types import Document, Field, Hit, Location

if TYPE_CHECKING:
    from ncs.storage.documents import Documents
    from ncs.storage.filters import LocationFilter
    from ncs.storage.postings import Postings
    from ncs.types import Mask

POOL = 400
"""Candidates whose features are compared; over all 200,000 Android functions the best score is .008 higher."""
SHARED: tuple[Field, ...] = ("name", "calls", "types", "enums", "literals", "identifiers", "parameters")
"""Fields whose words are compared."""


def parse_place(place: str) -> tuple[Path, int]:
    """Parse FILE:LINE, FILE:LINE:COLUMN or FILE:LINE-LAST; raises BadInput.

    >>> parse_place("src/Main.java:42")
    (PosixPath('src/Main.java'), 42)
    """
    file, _, line = re.sub("(?<=[0-9])-[0-9]+$", "", place).rpartition(":")
    above, _, number = file.rpartition(":")
    if above and LINE.fullmatch(number) and re.fullmatch("[0-9]*", line):
        file, line = above, number
    if not file or "\0" in file or not LINE.fullmatch(line):
        raise BadInput(NO_PLACE.format(place=place))
    return Path(file), int(line)


def is_place(text: str) -> bool:
    """Whether it is FILE:LINE; else it is a name."""
    try:
        parse_place(text)
    except BadInput:
        return False
    return True


def function_at(file: Path, line: int, called: str = "") -> Document:
    """The innermost function of a source file at a 1-based line, with the file's absolute path.

    called: the file's name in errors. Raises SourceError for an unreadable file, BadInput without a function there.
    """
    called = called or str(file)
    if not readers.readable(file.name):
        raise BadInput(f"{called} is in no language that ncs reads; name a source file")
    try:
        source = read_regular(file, Limits().notebook_bytes)
    except OSError as error:
        raise SourceError(f"cannot read {called} ({error.strerror}); name a source file") from error
    return _innermost(readers.read(source, "", file.resolve().as_posix())[0], line, called)


def function_in(source: bytes, language: str, line: int | None, *, called: str) -> Document:
    """The innermost function at a line of source code, by default the first; raises BadInput. called: as above."""
    return _innermost(extract(source, language_called(language) or language), line, called)


def _innermost(documents: Iterable[Document], line: int | None, called: str) -> Document:
    functions = [document for document in documents if document.kind not in OUTLINES]
    if not functions:
        raise BadInput(f"no function in {called}")
    line = line or functions[0].start_line
    around = [function for function in functions if function.start_line <= line <= function.end_line]
    if around:
        return max(around, key=lambda function: (function.start_line, -function.end_line))
    nearest = min(functions, key=lambda function: abs(function.start_line - line))
    raise BadInput(
        f"no function at line {line} of {called};"
        f" the nearest is {nearest.name}, lines {nearest.start_line}-{nearest.end_line}"
    )


def similar(
    function: Document,
    postings: Postings,
    documents: Documents,
    k: int,
    *,
    passes: LocationFilter | None = None,
    allowed: Mask | None = None,
) -> list[Hit]:
    """The k functions of highest Jaccard similarity of features, ties by row, among the POOL that share most words.

    The function itself is left out by its place; its exact copies are kept. passes: location filter. Raises BadInput
    for an index without code and for k < 1.
    """
    check_k(k)
    rows = candidates(function, postings, 2 * POOL, allowed)
    functions = [pair for pair in zip(rows, documents.documents(rows), strict=True) if pair[1].kind not in OUTLINES]
    target = cached_features(function.code, function.language)
    scored: list[tuple[float, int, Document]] = []
    for row, document in functions[:POOL]:
        if not document.code:
            raise BadInput(NO_CODE)
        elsewhere = without(document, function)
        if elsewhere is None or not is_installed(elsewhere.language):
            continue
        located = at_matching_location(elsewhere, passes)
        if passes is None or passes(located.repository, located.path):
            features = cached_features(located.code, located.language)
            scored.append((-resemblance(features, target), row, located))
    scored.sort(key=itemgetter(0, 1))
    return [Hit(rank, -score, located) for rank, (score, _, located) in enumerate(scored[:k], 1) if score]


def candidates(function: Document, postings: Postings, n: int, allowed: Mask | None = None) -> list[int]:
    """The n rows that share most of a function's words by idf, ties by row; unlike BM25 without regard to length."""
    words = [word for field in SHARED for word in field_tokens(field, function.words.get(field, ()))]
    scores = np.zeros(len(postings))
    for stem in sorted({term.stem for term in postings.terms(words) if term.documents}):
        rows = postings.rows_with(stem)
        scores[rows] += np.log1p(len(postings) / max(1, len(rows)))
    if allowed is not None:
        scores[~allowed] = 0
    some = np.flatnonzero(scores)
    best: list[int] = top_rows(some, scores[some], n)[0].tolist()
    return best


def without(document: Document, function: Document) -> Document | None:
    """The document at its first location other than the function's; None if there is none."""
    places = (document.location, *document.copies)
    others = [place for place in places if not _is_at(function, place, same=document.digest == function.digest)]
    if len(others) == len(places):
        return document
    return at_location(document, others[0], tuple(others[1:])) if others else None


def _is_at(function: Document, place: Location, *, same: bool) -> bool:
    """Whether the function is at this location; lines may have changed since the build."""
    own = f"/{function.repository}/{function.path}"
    return own.endswith(f"/{place.repository}/{place.path}") and (
        function.start_line == place.start_line or (same and function.qualified_name == place.qualified_name)
    )
