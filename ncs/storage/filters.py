"""Filters by repository and path, as typed by users."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from fnmatch import translate
from glob import escape

from ncs.types import Document, Location

Matcher = Callable[[str], bool]


def matcher(pattern: str | None) -> Matcher:
    """A filter by name: whole components of a path or of `owner/name`, at any level; None accepts everything.

    `*` crosses slashes, `?` and `[abc]` match one character, case matters.
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
    # Names may contain brackets ([id].tsx): a pattern is also tried literally.
    globs = [
        start + body + end for body in dict.fromkeys((core, escape(core))) for start in before for end in ("", "/*")
    ]
    matches = re.compile("|".join(map(translate, globs))).match
    return lambda name: matches(name) is not None


def at_matching_location(document: Document, repository: str | None = None, path: str | None = None) -> Document:
    """The document at its first location that matches the filters, if any; the others are its copies."""
    repository_matches, path_matches = matcher(repository), matcher(path)
    places = (document.location, *document.copies)
    matching = (place for place in places if repository_matches(place.repository) and path_matches(place.path))
    place = next(matching, document.location)
    return at_location(document, place, tuple(other for other in places if other != place))


def at_location(document: Document, place: Location, copies: tuple[Location, ...]) -> Document:
    """The document at another of its locations, with these copies."""
    return replace(document, **asdict(place), copies=copies)
