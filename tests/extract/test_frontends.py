"""tree-sitter and javalang on the same Java: where they agree, and the ways in which they do not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.extract import extract
from ncs.sources import walk
from ncs.types import FIELDS, Document

DATA = Path(__file__).parents[1] / "data"


def both(code: str) -> tuple[list[Document], list[Document]]:
    source = code.encode()
    return list(extract(source, "java")), list(extract(source, "java", frontend="javalang"))


def words(document: Document, field: str) -> Counter[str]:
    return Counter(document.words.get(field, ()))  # type: ignore[call-overload]


def test_on_java_8_both_find_the_same_functions_lines_digests_and_words() -> None:
    files = list(walk([DATA / "demo"], wanted=lambda path: path.endswith(".java")))
    assert len(files) == 2
    for file in files:
        first, second = both(file.data.decode())
        assert [d.id for d in first] == [d.id for d in second]
        assert [(d.qualified_name, d.kind, d.location, d.digest, d.code) for d in first] == [
            (d.qualified_name, d.kind, d.location, d.digest, d.code) for d in second
        ]
        for ours, theirs in zip(first, second, strict=True):
            for field in FIELDS:
                assert words(ours, field) == words(theirs, field), (ours.id, field)


@pytest.mark.parametrize(
    "code",
    [
        "class A { class B { void f() { new Runnable() { public void run() { g(); } }; } } }",
        "enum E { ONE { void m() { a(); } }, TWO; void n() { b(); } E() { c(); } }",
        "interface I { default int k() { return 1; } void abs(); static void s() { t(); } }",
        "class A { static { init(); } A(int x) throws E { this.x = x; } }",
        'class A { @Override @B({1, 2}) public String f(final String a, int... b) { return a + "ü" + b; } }',
        'class Ä { void größe() { länge("x"); } void next() { y(); } }',
    ],
)
def test_nested_anonymous_and_annotated_code_has_the_same_names_lines_and_calls(code: str) -> None:
    first, second = both(code)
    assert [(d.qualified_name, d.kind, d.code) for d in first] == [(d.qualified_name, d.kind, d.code) for d in second]
    assert first
    for ours, theirs in zip(first, second, strict=True):
        for field in ("calls", "literals", "parameters", "scope"):
            assert words(ours, field) == words(theirs, field)


@pytest.mark.parametrize(
    "code", ["record P(int x) { int f() { return x; } }", "class A { void f( { }", "class A { void f() { if ("]
)
def test_javalang_refuses_newer_java_and_errors_whole_where_tree_sitter_reads_on(code: str) -> None:
    with pytest.raises(SourceError, match="javalang"):
        list(extract(code.encode(), "java", frontend="javalang"))
    list(extract(code.encode(), "java"))


def test_the_order_within_a_field_differs_javalang_puts_arguments_before_the_chain() -> None:
    first, second = both("class A { void f() { a(b()).c(); } }")
    assert first[0].words["calls"] == ("a", "b", "c")
    assert words(first[0], "calls") == words(second[0], "calls")
