"""tree-sitter against other parsers: javalang on Java, Python's own on the standard library."""

from __future__ import annotations

import ast
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.extract import extract
from ncs.types import FIELDS

DATA = Path(__file__).parents[1] / "data"


SAMPLES = [path.read_text("utf-8") for path in sorted(DATA.glob("demo/**/*.java"))]
SNIPPETS = [
    "class A { class B { void f() { new Runnable() { public void run() { g(); } }; } } }",
    "enum E { ONE { void m() { a(); } }, TWO; void n() { b(); } E() { c(); } }",
    "interface I { default int k() { return 1; } void abs(); static void s() { t(); } }",
    "class A { static { init(); } A(int x) throws E { this.x = x; } }",
    'class A { @Override @B({1, 2}) public String f(final String a, int... b) { return a + "ü" + b; } }',
    'class Ä { void größe() { länge("x"); } void next() { y(); } }',
]


@pytest.mark.parametrize("code", SAMPLES + SNIPPETS)
def test_on_java_8_both_give_the_same_documents_but_for_the_order_of_words(code: str) -> None:
    fields = FIELDS if code in SAMPLES else ("calls", "literals", "parameters", "scope")
    ours, theirs = (
        [(replace(d, words={}), [sorted(d.words.get(field, ())) for field in fields]) for d in documents]
        for documents in (extract(code.encode(), "java"), extract(code.encode(), "java", frontend="javalang"))
    )
    assert ours == theirs != []


def test_javalang_refuses_newer_java_and_errors_whole_where_tree_sitter_reads_on() -> None:
    for code in ("record P(int x) { int f() { return x; } }", "class A { void f( { }", "class A { void f() { if ("):
        with pytest.raises(SourceError, match="javalang"):
            list(extract(code.encode(), "java", frontend="javalang"))
        list(extract(code.encode(), "java"))


Place = tuple[str, int, int]


def by_ast(tree: ast.Module) -> Iterator[Place]:
    """Qualified name without `<locals>`, line of the first decorator, last line."""
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = f"{scope}.{node.name}" if scope else node.name
            if not isinstance(node, ast.ClassDef):
                start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                yield scope, start, node.end_lineno or 0
        todo += [(child, scope) for child in ast.iter_child_nodes(node)]


def without_last_comments(data: bytes, places: Iterator[Place], ends: dict[tuple[str, int], int]) -> Iterator[Place]:
    """Python's last line where only comments follow it: these belong to the block they are indented like."""
    lines = data.splitlines()
    for name, start, end in places:
        last = ends.get((name, start), end)
        rest = [line.strip() for line in lines[last:end]]
        yield name, start, last if all(not line or line.startswith(b"#") for line in rest) else end


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_functions_names_and_lines_are_those_of_pythons_own_parser() -> None:
    functions = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[::2]:
        data = path.read_bytes()
        expected = list(by_ast(ast.parse(data)))
        functions += len(expected)
        ends = {(name, start): end for name, start, end in expected}
        places = ((d.qualified_name, d.start_line, d.end_line) for d in extract(data, "python"))
        assert Counter(without_last_comments(data, places, ends)) == Counter(expected)
    assert functions > 2_500
