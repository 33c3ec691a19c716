"""Functions of the Python standard library against Python's own parser."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncs.extract import extract

STDLIB = Path(sysconfig.get_paths()["stdlib"])
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


def python_files() -> Iterator[tuple[Path, bytes, ast.Module]]:
    """Those of the standard library that Python itself parses, as UTF-8."""
    for path in sorted(STDLIB.rglob("*.py")):
        if {"site-packages", "test", "tests"} & set(path.parts):
            continue
        data = path.read_bytes()
        try:
            data.decode()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield path, data, ast.parse(data)
        except (SyntaxError, ValueError, RecursionError):
            continue


def but_comments(data: bytes, places: Iterator[Place], ends: dict[tuple[str, int], int]) -> Iterator[Place]:
    """With Python's last line where only comments follow it: these belong to the block they are indented like."""
    lines = data.splitlines()
    for name, start, end in places:
        pythons = ends.get((name, start), end)
        rest = [line.strip() for line in lines[pythons:end]]
        yield name, start, pythons if all(not line or line.startswith(b"#") for line in rest) and rest else end


@pytest.mark.slow
def test_functions_names_and_lines_are_those_of_pythons_own_parser() -> None:
    wanted: Counter[tuple[Path, Place]] = Counter()
    found: Counter[tuple[Path, Place]] = Counter()
    files = commented = 0
    for path, data, tree in python_files():
        files += 1
        pythons = list(by_ast(tree))
        ours = [(d.qualified_name, d.start_line, d.end_line) for d in extract(data, "python")]
        commented += len(set(ours) - set(pythons))
        ends = {(name, start): end for name, start, end in pythons}
        wanted.update((path, place) for place in pythons)
        found.update((path, place) for place in but_comments(data, iter(ours), ends))
    missed, invented = wanted - found, found - wanted
    print(f"{files} files, {wanted.total()} functions, {missed.total()} missed, {invented.total()} invented,")
    print(f"{commented - invented.total()} end with a comment")
    for what, places in (("missed", missed), ("invented", invented)):
        for path, place in sorted(places)[:40]:
            print(what, path.relative_to(STDLIB), *place)
    assert wanted.total() > 10_000
    assert not missed
    assert not invented
