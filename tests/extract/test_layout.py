"""Exact copies of Python functions: layout that is syntax counts, layout that is taste does not."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.extract import extract

BASE = "def f(a):\n    for b in a:\n        if b:\n            g(b, 1)\n        h(b)\n    return a\n"


def digest(source: str) -> bytes:
    """Of the first function."""
    return next(extract(source.encode(), "python")).digest


@pytest.mark.parametrize(
    "same",
    [
        BASE.replace("    ", "  "),
        BASE.replace("    ", "\t"),
        "class A:\n    class B:\n" + textwrap.indent(BASE, " " * 8),
        "class A:\n\tclass B:\n" + textwrap.indent(BASE.replace("    ", "\t"), "\t\t"),
        "if a:\n  pass\n" + textwrap.indent(BASE, "  "),
        BASE.replace("\n", "   \n"),
        BASE.replace("\n", "\n\n  \n"),
        BASE.replace("\n", "\r\n"),
        BASE.replace("\n", "  # why (\n"),
        BASE.replace("\n", "\n# less\n                    # more\n"),
        BASE.replace("g(b, 1)", "g(b,\n  1\n)"),
        BASE.replace("g(b, 1)", "g(b, # [\n\n    1)"),
        BASE.replace("return a", "return \\\n  a"),
        BASE.replace("(a):\n", '(a):\n    """Doc (\n  string."""\n'),
        BASE.replace("(a):\n", "(a):\n    'Doc'\n\n"),
        BASE + "    # the end\n",
        BASE + "\n\nx = 1\n",
        BASE.rstrip("\n"),
    ],
)  # fmt: skip
def test_layout_without_meaning_makes_no_other_function(same: str) -> None:
    assert digest(same) == digest(BASE)


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("        h(b)", "    h(b)"),
        BASE.replace("        h(b)", "            h(b)"),
        BASE.replace("    return a", "        return a"),
        BASE.replace("g(b, 1)", "g\n            (b, 1)"),
        BASE.replace("    h(b)\n    return a", "    h(b)\n        return\n    a"),
    ],
)
def test_a_line_indented_elsewhere_is_another_function(other: str) -> None:
    assert digest(other) != digest(BASE)


def test_brackets_and_quotes_in_strings_open_nothing() -> None:
    for string in ("'('", '"""[\n {"""', "'\\'('", 'r"\\"', "'\"('", "f'{a}(('", '"\\\n("'):
        one = f"def f(a):\n    b = {string}\n    if a:\n        c()\n    d()\n"
        assert digest(one) != digest(one.replace("    d()", "        d()"))
        assert digest(one) == digest(one.replace("    ", "   ")) or "\n " in string


def test_the_text_of_strings_of_several_lines_counts_as_it_stands() -> None:
    one = "def f():\n    return g('''a\n  b''')\n"
    assert digest(one) != digest(one.replace("  b", "    b"))


def test_a_decorated_function_moved_into_a_class_is_a_copy() -> None:
    one = "@a\n@b(\n  c)\nasync def f(self):\n  await self\n"
    assert digest("class A:\n" + textwrap.indent(one, "      ")) == digest(one)


Lines = list["str | Lines"]
statements = st.sampled_from(["a()", "b = 1", "(c)", "-d", "e = [1,\n 2]", "e = '''f\n(g'''"])
blocks = st.recursive(
    st.lists(statements, min_size=1, max_size=3),
    lambda inner: st.lists(statements | inner, min_size=1, max_size=4),
    max_leaves=12,
)


def written(lines: Lines, width: str, depth: int = 1) -> str:
    """As a person would who indents by `width`; a list is the block of an `if`."""
    text = ""
    for line in lines:
        if isinstance(line, str):
            text += width * depth + line + "\n"
        else:
            text += f"{width * depth}if x:\n{written(line, width, depth + 1)}"
    return text


@given(blocks, st.sampled_from([" ", "  ", "    ", "\t", "  \t"]))
def test_the_width_of_indentation_means_nothing(lines: Lines, width: str) -> None:
    assert digest("def f():\n" + written(lines, width)) == digest("def f():\n" + written(lines, "    "))


@given(blocks, st.data())
def test_two_functions_that_differ_in_indentation_are_copies_exactly_if_python_reads_the_same(
    lines: Lines, data: st.DataObject
) -> None:
    one = "def f():\n" + written(lines, "  ")
    shifts = data.draw(st.lists(st.sampled_from(["", "", "", "  ", "-"]), min_size=20, max_size=20))
    other = "\n".join(
        shift + line if shift != "-" else line.removeprefix("  ")
        for line, shift in zip(one.split("\n"), ["", "", *shifts, *[""] * 100], strict=False)
    )
    try:
        same = ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
    except SyntaxError:
        return
    assert (digest(one) == digest(other)) == same
