"""The cost of a file grows as the file does, whatever is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from corpora.codesearchnet.filters import first_paragraph, without_marks
from corpora.codesearchnet.repositories import _URL
from ncs.errors import SourceError
from ncs.extract.embedded import read_scripts_in_php
from ncs.extract.readers import read
from ncs.learn.tokenization import source_words
from ncs.search.aroma import features, parse
from ncs.search.locate_source import find_lines
from ncs.search.phrases import places
from ncs.search.question import read_intent
from ncs.sources.filters import is_generated
from ncs.storage.names import query_symbols
from tests.extract.test_sections import BODY
from tests.linear import GROWTH, growth

Make = Callable[[int], str]


def reading(path: str) -> Callable[[str], object]:
    def read_text(text: str) -> None:
        with suppress(SourceError):
            read(text.encode(), "r", path, outside=True)

    return read_text


def notebook(*cells: tuple[str, object], indent: int | None = 1) -> str:
    return json.dumps({"cells": [{"cell_type": kind, "source": source} for kind, source in cells]}, indent=indent)


def code(source: object) -> str:
    return notebook(("code", source))


def text(source: str) -> str:
    return notebook(("markdown", source), ("code", "x = 1"))


KERNEL = '{"cells": [], "metadata": {"kernelspec": {"name": "%sx"}}}'


def java_comment(words: str) -> str:
    return f"class A {{\n/** {words} */\nvoid f() {{}}\n}}"


def words_of(language: str) -> Callable[[str], object]:
    return lambda code: source_words(code, language)


def scripts_in_php(source: str) -> object:
    return read_scripts_in_php(source.encode(), "r", "a.php", outside=True)


def is_marked(head: str) -> object:
    return is_generated(head.encode())


def no_such(text: str) -> object:
    return list(places(text, "no such option"))


def lines_again(source: str) -> object:
    lines = source.split("\n")
    return find_lines(lines, [*lines[: len(lines) // 2], "end"], 1)


def origin(settings: str) -> object:
    return _URL.search('[remote "origin"]' + settings)


def java_features(source: str) -> object:
    return parse(source.encode(), "java")


def javascript_features(source: str) -> object:
    return features(source, "javascript")


PROSE: dict[str, Make] = {
    "headings": lambda n: "# a\n" * n,
    "headings in headings": lambda n: "".join(f"{'#' * (1 + i % 6)} a{i}\n\n{BODY}\n" for i in range(n)),
    "space in a heading": lambda n: "# a" + " " * n + "b\n" + BODY,
    "hashes": lambda n: "#" * n + "\n" + BODY,
    "fences without an end": lambda n: "```\na `\n" * n,
    "tags without an end": lambda n: ("<a " * 40 + "\n") * (n // 10),
    "headings of pages without an end": lambda n: "<h1>\n" * n,
    "brackets without an end": lambda n: ("[a " * 40 + "\n") * (n // 10),
    "underlines": lambda n: "a\n===\n" * n,
    "one line": lambda n: "a" * n,
    "empty lines": lambda n: "# a\n" + "\n" * n + BODY,
    "directives": lambda n: ".. code-block:: py\n\n  a\n" * n,
    "listings without an end": lambda n: "----\na\n.....\n" * n,
}
CASES: dict[str, tuple[str | Callable[[str], object], int, Make]] = {
    "functions and comments in turn, Go": ("a.go", 1500, lambda n: "package a\n" + "// A\nfunc a() {}\n" * n),
    "functions and comments in turn, JavaScript": ("a.js", 1500, lambda n: "// A\nfunction a() {}\n" * n),
    "nested classes": ("A.java", 800, lambda n: "class A {\n" * n + "}\n" * n),
    "nested classes on one line": ("A.java", 500, lambda n: "class A {" * n + "}" * n),
    "flat classes": ("a.js", 6000, lambda n: "class A{}\n" * n),
    "nested functions": ("a.js", 2000, lambda n: "function a() {\n" * n + "}\n" * n),
    "nested scopes": ("a.js", 1500, lambda n: "a = {a:" * n + "1" + "}" * n),
    "comments above one function": ("a.js", 20_000, lambda n: "//A\n" * n + "function a() {}\n"),
    "functions on one line": ("a.js", 1000, lambda n: "function a(){} " * n),
    "functions on one line, behind white space": ("a.js", 1000, lambda n: " " * 14 * n + "function a(){} " * n),
    "functions on one line, with comments": ("a.js", 1000, lambda n: "/**/function a(){} " * n),
    "imports with an open bracket": ("a.py", 4000, lambda n: "import (\n" * n),
    "imports with an open brace": ("a.js", 4000, lambda n: "import {\n" * n),
    "dollar tags": ("a.sql", 1000, lambda n: "select (;" + "".join(f"$a{i}$ " for i in range(n))),
    "a tag in a comment without its end": ("A.java", 5000, lambda n: java_comment("{@" + "a" * n)),
    "a tag in a comment, then space": ("A.java", 5000, lambda n: java_comment("{@a" + " " * n + "x")),
    "a field list, then space": ("a.py", 5000, lambda n: "def f():\n  '''a\n  :a" + " " * n + "x\n  '''\n"),
    "space in the head of a method": ("a.py", 4000, lambda n: "class A:\n  def f(self," + " " * n + "x):\n    pass\n"),
    "a long attribute of a script": ("a.html", 4000, lambda n: "<script " + "a" * n + ">f()</script>"),
    "a notebook's images without an end": ("a.ipynb", 2000, lambda n: text("![a](data: " * n)),
    "a notebook's brackets without an end": ("a.ipynb", 4000, lambda n: text("[a " * n)),
    "space in a notebook's heading": ("a.ipynb", 5000, lambda n: text("# a" + " " * n + "b")),
    "brackets behind a long name in a cell": ("a.ipynb", 3000, lambda n: code("a" * n + "[]" * n)),
    "space before no assignment": ("a.ipynb", 5000, lambda n: code(" " * n + "x y")),
    "quotes of a cell without an end": ("a.ipynb", 3000, lambda n: code("'" + "\\'" * n)),
    "cells of a notebook on one line": (
        "a.ipynb", 1000, lambda n: notebook(*[("code", ["x = 1\n"])] * n, indent=None)
    ),
    "functions of a notebook on one line": (
        "a.ipynb", 1000, lambda n: notebook(("code", ["def f():\n", "  return 1\n"] * n), indent=None)
    ),
    "a kernel's name": ("a.ipynb", 5000, lambda n: KERNEL % ("1" * n)),
    "the version of a script's program": ("a", 5000, lambda n: "#!" + "1" * n + "x\n"),
    "stars in a comment": ("a.ml", 4000, lambda n: "(* a " + "*" * n + " a\n*)\nlet f x = 1\n"),
    "quotes of a text without an end": ("a.pl", 1500, lambda n: '"' + '\\"' * n + "\n"),
    **{f"{name}, {end}": (f"a.{end}", 3000, make) for name, make in PROSE.items() for end in ("md", "rst", "adoc")},
    "words of triple quotes without an end": (words_of("python"), 500, lambda n: '\\"""\n' * n),
    "words of escaped quotes without an end": (words_of("java"), 2000, lambda n: '"' + '\\"' * n),
    "words of escaped backticks without an end": (words_of("javascript"), 2000, lambda n: "`" + "\\`\n" * n),
    "words of comments without an end, Lua": (words_of("lua"), 3000, lambda n: "--[[ \n" * n),
    "words of comments without an end, Haskell": (words_of("haskell"), 3000, lambda n: "{- \n" * n),
    "PHP comments without an end": (scripts_in_php, 5000, lambda n: "<script><?php " + "/* " * n),
    "PHP quotes without an end": (scripts_in_php, 3000, lambda n: "<script><?php '" + "\\' " * n),
    "markup comments without an end": (java_features, 3000, lambda n: "<!-- " * n),
    "markup declarations without an end": (java_features, 3000, lambda n: "<?xml " * n),
    "variables of nested functions": (javascript_features, 300, lambda n: "(a)=>{a;" * n + "b;" * n + "}" * n),
    "slashes above a line that generators write": (is_marked, 250, lambda n: "/" * n + " do not x"),
    "lines that occur again": (lines_again, 4000, lambda n: "a\n" * n),
    "space in a comment of a corpus": (lambda text: without_marks([text]), 4000, lambda n: "a" + " " * n + "b"),
    "space in a paragraph of a corpus": (first_paragraph, 4000, lambda n: "a" + " " * n + "b"),
    "empty lines in git's settings": (origin, 4000, lambda n: "\n" * n),
    "names of a query": (query_symbols, 4000, lambda n: "open Aa " * n),
    "phrases of a query": (read_intent, 1000, lambda n: ' "open Aa?' * n),
    "space and lines after a word of a phrase": (no_such, 4000, lambda n: "no" + " \n" * n + "no " * n),
}  # fmt: skip
"""The file's name or what reads a text, the size of the smaller one, and the text of a size."""


def test_the_number_of_a_character_has_no_end() -> None:
    """Python refuses to read a number of 5,000 digits."""
    source = java_comment("&#" + "1" * 5_000 + "; word")
    assert read(source.encode(), "r", "A.java")[0][0].words["doc"] == ("word",)


@pytest.mark.parametrize("name", CASES)
def test_four_times_the_text_costs_four_times_as_much(name: str) -> None:
    what, n, make = CASES[name]
    function = reading(what) if isinstance(what, str) else what
    assert growth(lambda size: partial(function, make(size)), n) < GROWTH
