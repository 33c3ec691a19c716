"""Filters as people type them."""

from __future__ import annotations

import time
from dataclasses import asdict, replace

import pytest

from ncs.errors import BadInput
from ncs.storage.filters import Filters, at_matching_location, glob_filter, matcher
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


@pytest.mark.parametrize(
    ("globs", "inside", "outside"),
    [
        (["*.py"], "a.py src/deep/a.py", "a.pyi src/a.java"),
        (["!*.py"], "a.java src/a.java", "a.py src/a.py"),
        (["*.py", "!tests/"], "src/a.py", "tests/a.py src/tests/deep/a.py src/a.java"),
        (["!tests/", "*.py"], "src/a.py tests/a.py", "src/a.java"),  # the last one wins
        (["src/*.py"], "src/a.py", "src/deep/a.py app/src/a.py"),
        (["src/**/*.py"], "src/a.py src/deep/a.py", "lib/src/a.py"),
        (["./src"], "src/a.py src/deep/a.java", "app/src/a.py"),
        (["*.{ts,tsx}", "!{a,b}.ts"], "c.ts src/a.tsx", "a.ts src/b.ts c.js"),
        (["app/src/"], "src/a.py", "lib/a.py"),  # the repository is a folder, too
    ],
)
def test_globs_mean_what_they_do_to_ripgrep_and_the_last_one_wins(globs: list[str], inside: str, outside: str) -> None:
    passes = glob_filter(globs, several=True)
    assert [path for path in inside.split() if not passes("app", path)] == []
    assert [path for path in outside.split() if passes("app", path)] == []


def test_the_name_of_the_only_repository_is_no_folder_of_a_glob() -> None:
    assert not glob_filter(["ncs/**"], several=False)("ncs", "tests/test.py")
    assert glob_filter(["!ncs"], several=False)("ncs", "tests/test.py")


@pytest.mark.parametrize("glob", ["", "!", "#x", "[z-", "{a,b}" * 7])
def test_a_glob_of_nothing_or_of_too_much_is_refused(glob: str) -> None:
    with pytest.raises(BadInput):
        glob_filter([glob])


def test_a_hostile_glob_ends() -> None:
    start = time.monotonic()
    assert not glob_filter(["*a" * 100 + "b"])("app", "a" * 4000)
    assert time.monotonic() - start < 20


COUNTS = {"languages": {"python": 3, "rust": 1}, "kinds": {"function": 4}}


def test_languages_are_called_as_people_call_them_and_unknown_names_name_the_known_ones() -> None:
    known = Filters(language=["py", "Rust"], language_not="rs", kind="Function").known(COUNTS)
    assert (known.language, known.language_not, known.kind) == (["python", "rust"], ["rust"], "function")
    for wrong in ({"language": "klingon"}, {"language_not": ["java"]}):
        with pytest.raises(BadInput, match=r"no language '\w+' in this index; choose from python, rust"):
            Filters(**wrong).known(COUNTS)
    with pytest.raises(BadInput, match=r"no kind 'x' in this index; choose from function"):
        Filters(kind="x").known(COUNTS)


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
    passes = Filters(repository=repository, path=path).locations(several=True)
    shown = at_matching_location(DOCUMENT, passes)
    places = [DOCUMENT.location, *DOCUMENT.copies]
    places.remove(expected)
    assert (shown.location, list(shown.copies)) == (expected, places)
    assert replace(shown, **asdict(DOCUMENT.location), copies=DOCUMENT.copies) == DOCUMENT
