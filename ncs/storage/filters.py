"""Filters of documents, as typed by users: by language, kind, repository, path, role and content."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import translate
from functools import cache
from glob import escape
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any

from ncs.errors import BadInput, unknown
from ncs.messages import BAD_GLOB, MANY_GLOBS
from ncs.types import Document, Location

if TYPE_CHECKING:
    from ncs.sources.ignore import Pattern

Matcher = Callable[[str], bool]
LocationFilter = Callable[[str, str], bool]
"""Whether a repository and a path in it pass."""
MAX_ALTERNATIVES = 100
"""Most globs that one with braces expands to."""
CONTENT = ("all", "code", "docs")
"""Everything; everything but sections of prose; sections of prose."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of hits; a document must pass all of them.

    language, language_not: names or aliases (python, py). repository, path: globs (`matcher`). glob: globs as in
    ripgrep (`glob_filter`). places: (repository, path in it) of files and folders, any of them. functions_only: no
    classes, top-level code and sections of prose. regexp: code or qualified name match (ncs.search.regexp). content:
    one of CONTENT; None: "all" for the default ranker, "code" for others.
    """

    language: str | Sequence[str] | None = None
    repository: str | None = None
    path: str | None = None
    kind: str | None = None
    functions_only: bool = False
    language_not: str | Sequence[str] | None = None
    glob: Sequence[str] | None = None
    places: Sequence[tuple[str, str]] | None = None
    no_tests: bool = False
    regexp: str | None = None
    content: str | None = None

    def __post_init__(self) -> None:
        if self.content not in (None, *CONTENT):
            raise unknown("content", self.content, CONTENT)

    def known(self, counts: Mapping[str, Any]) -> Filters:
        """The filters with an index's names of languages and kind; raises BadInput for unknown ones. counts: of the
        index."""
        languages, kinds = counts.get("languages") or {}, counts.get("kinds") or {}
        kind = self.kind and self.kind.lower()
        if kind and kind not in kinds:
            raise unknown("kind", self.kind, sorted(kinds), " in this index")
        some, others = (
            [_language(name, languages) for name in names_of(each)] for each in (self.language, self.language_not)
        )
        return replace(self, kind=kind, language=some, language_not=others)

    def locations(self, *, several: bool) -> LocationFilter | None:
        """The filter of locations; None if all pass. several: whether the index has several repositories."""
        if not (self.repository or self.path or self.glob or self.places):
            return None
        globs = [glob.replace(os.sep, "/") for glob in (self.path or "", *(self.glob or ()))]  # backslashes on Windows
        in_repository, in_path = cache(matcher(self.repository)), matcher(globs[0])
        in_globs, places = glob_filter(globs[1:], several=several), self.places

        def passes(repository: str, path: str) -> bool:
            here = not places or any(owner == repository and _is_below(path, place) for owner, place in places)
            return here and in_repository(repository) and in_path(path) and in_globs(repository, path)

        return passes


def names_of(names: str | Sequence[str] | None) -> Sequence[str]:
    """One name, several or none as a sequence."""
    return (names,) if isinstance(names, str) else names or ()


def _language(name: str, known: Mapping[str, Any]) -> str:
    """The known language of a name or alias; raises BadInput."""
    if name in known:
        return name
    from ncs.extract.text_files import language_called  # a query need not import it

    language = language_called(name)
    if language is None or language not in known:
        raise unknown("language", name, sorted(known), " in this index")
    return language


def _is_below(path: str, place: str) -> bool:
    return not place or path == place or path.startswith(f"{place}/")


def matcher(pattern: str | None) -> Matcher:
    """A filter by whole components of a path or of `owner/name`, at any level; None accepts everything.

    `*` crosses slashes, `?` and `[abc]` match one character, case matters. A leading `/` or `./` anchors the pattern;
    a pattern also matches everything in a folder of its name:

    >>> inside = matcher("src/main")
    >>> [inside(path) for path in ("src/main/A.java", "app/src/main/A.java", "src/main2/A.java")]
    [True, True, False]
    >>> inside = matcher("/src/*.java")
    >>> [inside(path) for path in ("src/main/A.java", "app/src/A.java", "src/A.java.orig")]
    [True, False, False]
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


def glob_filter(globs: Sequence[str], *, several: bool = False) -> LocationFilter:
    """A filter by globs in the syntax of .gitignore, as ripgrep's -g.

    The last glob that matches a file or a folder above decides: `!` leaves it out. Other files pass if all globs begin
    with `!`. `{a,b}` is an alternative. Paths are relative to their repository; with several repositories also
    repository/path. Raises BadInput for a glob that matches nothing.

    >>> passes = glob_filter(["*.{ts,tsx}", "!tests/"])
    >>> [passes("app", path) for path in ("src/a.ts", "src/a.py", "src/tests/a.ts")]
    [True, False, False]
    """
    if not globs:
        return lambda repository, path: True
    from ncs.sources.ignore import parse_line  # without globs a query need not import it

    patterns = [pattern for glob in globs for each in _alternatives(glob) if (pattern := parse_line(each))]
    if len(patterns) < len(globs):
        raise BadInput(BAD_GLOB.format(globs=", ".join(map(repr, globs))))
    default = not any(pattern.ignored for pattern in patterns)

    def passes(repository: str, path: str) -> bool:
        texts = (path, f"{repository}/{path}") if several else (path,)
        matching = (pattern.ignored for pattern in reversed(patterns) if any(_matches(pattern, text) for text in texts))
        return next(matching, default)

    return passes


def _alternatives(glob: str) -> list[str]:
    """The globs that one with braces expands to."""
    parts = re.split(r"\{([^{}]*)\}", re.sub(r"^(!?)\./", r"\1/", glob))
    options = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
    if math.prod(map(len, options)) > MAX_ALTERNATIVES:
        raise BadInput(MANY_GLOBS.format(glob=glob[:60], most=MAX_ALTERNATIVES))
    return list(map("".join, product(*options)))


def _matches(pattern: Pattern, path: str) -> bool:
    """Whether a pattern of `.gitignore` matches a file or one of the folders that hold it."""
    names = path.split("/")
    if pattern.folders_only:
        names.pop()
    return any(map(pattern.matches, names if pattern.of_name else accumulate(names, "{}/{}".format)))


def at_matching_location(document: Document, passes: LocationFilter | None) -> Document:
    """The document at its first location that passes, if any, with the others as copies."""
    if passes is None:
        return document
    places = (document.location, *document.copies)
    place = next((place for place in places if passes(place.repository, place.path)), document.location)
    return at_location(document, place, tuple(other for other in places if other != place))


def at_location(document: Document, place: Location, copies: tuple[Location, ...]) -> Document:
    """The document at another of its locations, with these copies."""
    return replace(document, **asdict(place), copies=copies)
