"""Filters as people type them."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from ncs.storage.filters import at_matching_location, matcher
from ncs.types import Document, Location


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("src/main", "src/main src/main/java/A.java app/src/main/A.java", "app/src/mainline/A.java app/mysrc/main/A"),
        ("src/main/", "src/main/A.java", "src/main2/A.java"),
        ("./src", "src/A.java", "app/src/A.java"),
        ("/src", "src/A.java", "app/src/A.java"),
        ("A.java", "app/src/A.java", "app/src/BA.java"),
        ("a.java", "a.java", "app/src/A.java"),
        ("src/*", "src/main/java/A.java app/src/main/A.java", "mysrc/main/A.java"),
        ("*.java", "app/src/A.java", "app/src/A.javascript"),
        ("*/test/*", "app/src/test/A.java", "test/A.java"),
        ("*Test*", "app/src/main/KeyboardTest.java", "app/Latest.java"),
        ("src/?.java", "src/A.java", "src/AB.java"),
        ("[AB].java", "src/B.java", "src/C.java"),
        ("pages/[id].tsx", "web/pages/[id].tsx web/pages/i.tsx", "web/pages/x.tsx"),
        ("a+b(c)", "src/a+b(c)/A.java", "src/aab(c)/A.java"),
        ("nowhere/*", "nowhere/A.java", "src/A.java"),
        ("apache/cordova-android", "apache/cordova-android", "apache/cordova"),
        ("cordova-*", "apache/cordova-android", "not-cordova-at-all"),
        ("apache", "apache/cordova-android", "Apache/cordova"),
        *((everything, "src/A.java", "") for everything in (None, "", ".", "./", "/")),
    ],
)
def test_a_pattern_means_whole_parts_from_any_level(pattern: str | None, inside: str, outside: str) -> None:
    assert [path for path in inside.split() if not matcher(pattern)(path)] == []
    assert [path for path in outside.split() if matcher(pattern)(path)] == []


FIRST = Location("app", "src/A.java", 1, 3, "A.f")
COPY = Location("lib", "src/B.java", 11, 13, "B.f")
OTHER = Location("lib", "test/C.java", 21, 23, "C.f")
DOCUMENT = Document("app/src/A.java:1", "app", "src/A.java", 1, 3, "java", "method", "f", "A.f", copies=(COPY, OTHER))


@pytest.mark.parametrize(
    ("repository", "path", "expected"),
    [
        (None, None, FIRST),
        (None, "src", FIRST),
        ("lib", None, COPY),
        ("lib", "test", OTHER),
        (None, "C.java", OTHER),
        ("app", "test", FIRST),  # no place meets both
    ],
)
def test_a_document_is_shown_at_the_place_that_matches_and_the_place_left_becomes_its_first_copy(
    repository: str | None, path: str | None, expected: Location
) -> None:
    shown = at_matching_location(DOCUMENT, repository, path)
    places = [DOCUMENT.location, *DOCUMENT.copies]
    places.remove(expected)
    assert (shown.location, list(shown.copies)) == (expected, places)
    assert replace(shown, **asdict(DOCUMENT.location), copies=DOCUMENT.copies) == DOCUMENT
