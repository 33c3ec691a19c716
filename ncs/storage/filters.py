"""Filters by repository and path, as people type them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import translate
from glob import escape

from ncs.types import Document, Location

Matcher = Callable[[str], bool]


def matcher(pattern: str | None) -> Matcher:
    """A filter by name: whole parts of a path or of `owner/name`, from any level; None lets everything pass.

    Parts are what stands between slashes. `*` crosses slashes, `?` and `[abc]` are one character, case counts.
    A leading `/` or `./` pins the pattern to the top, and a pattern without wildcards may name a folder:

    >>> inside = matcher("src/main")
    >>> [inside(path) for path in ("src/main/A.java", "app/src/main/A.java", "src/main2/A.java")]
    [True, True, False]
    >>> inside = matcher("/src/*.java")
    >>> [inside(path) for path in ("src/main/A.java", "app/src/A.java", "src/A.java.orig")]
    [True, False, False]
    >>> inside = matcher("cordova-*")
    >>> [inside(name) for name in ("apache/cordova-android", "not-cordova-at-all")]
    [True, False]
    """
    core = (pattern or "").removeprefix("./").strip("/")
    if pattern is None or core in ("", "."):
        return lambda name: True
    before = ("",) if pattern.startswith(("/", "./")) else ("", "*/")
    # Names may hold brackets ([id].tsx): a pattern is tried as it stands, too.
    globs = [
        start + body + end for body in dict.fromkeys((core, escape(core))) for start in before for end in ("", "/*")
    ]
    matches = re.compile("|".join(map(translate, globs))).match
    return lambda name: matches(name) is not None


def matching_location(document: Document, repository: str | None = None, path: str | None = None) -> Location:
    """Where a document meets the filters: itself, or the first copy that does; itself where none does."""
    in_repository, in_path = matcher(repository), matcher(path)
    for location in (document.location, *document.copies):
        if in_repository(location.repository) and in_path(location.path):
            return location
    return document.location


def shown_at(document: Document, repository: str | None = None, path: str | None = None) -> Document:
    """The document as it stands where it meets the filters; the place it leaves becomes the first of its copies."""
    shown = matching_location(document, repository, path)
    if shown == document.location:
        return document
    return moved(document, shown, (document.location, *(copy for copy in document.copies if copy != shown)))


def moved(document: Document, place: Location, copies: tuple[Location, ...]) -> Document:
    """The document as it stands at another of its places, with these copies."""
    return replace(
        document,
        repository=place.repository,
        path=place.path,
        start_line=place.start_line,
        end_line=place.end_line,
        qualified_name=place.qualified_name,
        copies=copies,
    )
