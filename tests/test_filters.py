"""Filters as people type them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ncs.storage.filters import matcher, matching_location, shown_at
from ncs.types import Document, Location


@pytest.mark.parametrize(
    ("pattern", "path", "inside"),
    [
        ("src/main", "src/main", True),
        ("src/main", "src/main/java/A.java", True),
        ("src/main", "app/src/main/A.java", True),
        ("src/main", "app/src/mainline/A.java", False),
        ("src/main", "app/mysrc/main/A.java", False),
        ("src/main/", "src/main/A.java", True),
        ("./src", "src/A.java", True),
        ("./src", "app/src/A.java", False),
        ("/src", "src/A.java", True),
        ("/src", "app/src/A.java", False),
        ("A.java", "app/src/A.java", True),
        ("A.java", "app/src/BA.java", False),
        ("a.java", "app/src/A.java", False),
        ("src/*", "src/main/java/A.java", True),
        ("src/*", "app/src/main/A.java", True),
        ("src/*", "mysrc/main/A.java", False),
        ("*.java", "app/src/A.java", True),
        ("*.java", "app/src/A.javascript", False),
        ("*/test/*", "app/src/test/A.java", True),
        ("*Test*", "app/src/main/KeyboardTest.java", True),
        ("src/?.java", "src/A.java", True),
        ("src/?.java", "src/AB.java", False),
        ("[AB].java", "src/B.java", True),
        ("pages/[id].tsx", "web/pages/[id].tsx", True),
        ("pages/[id].tsx", "web/pages/i.tsx", True),
        ("a+b(c)", "src/a+b(c)/A.java", True),
        (".", "src/A.java", True),
        ("./", "src/A.java", True),
        ("/", "src/A.java", True),
        ("", "src/A.java", True),
        ("nowhere/*", "src/A.java", False),
    ],
)
def test_a_path_pattern_means_whole_parts_from_any_level(pattern: str, path: str, inside: bool) -> None:
    assert matcher(pattern)(path) is inside


@pytest.mark.parametrize(
    ("pattern", "repository", "inside"),
    [
        ("apache/cordova-android", "apache/cordova-android", True),
        ("cordova-android", "apache/cordova-android", True),
        ("cordova", "apache/cordova-android", False),
        ("cordova-*", "apache/cordova-android", True),
        ("apache/*", "apache/cordova-android", True),
        ("*android*", "apache/cordova-android", True),
        ("apache", "apache/cordova-android", True),
        ("Apache", "apache/cordova-android", False),
    ],
)
def test_a_repository_pattern_means_the_whole_name_the_owner_or_the_name_alone(
    pattern: str, repository: str, inside: bool
) -> None:
    assert matcher(pattern)(repository) is inside


def test_without_a_pattern_everything_passes() -> None:
    assert matcher(None)("anything")


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
def test_the_place_that_meets_the_filters_is_the_one_shown(
    repository: str | None, path: str | None, expected: Location
) -> None:
    assert matching_location(DOCUMENT, repository, path) == expected
    assert shown_at(DOCUMENT, repository, path).location == expected


def test_the_place_left_becomes_the_first_copy() -> None:
    shown = shown_at(DOCUMENT, "lib", "test")
    assert shown == replace(
        DOCUMENT,
        repository="lib",
        path="test/C.java",
        start_line=21,
        end_line=23,
        qualified_name="C.f",
        copies=(FIRST, COPY),
    )
    assert shown_at(DOCUMENT, "app", None) is DOCUMENT
