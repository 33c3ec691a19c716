"""Documents of Java and Python: names, fields, overloads, outlines and which of them are exact copies."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.errors import BadInput
from ncs.extract import extract
from ncs.types import Document


def java(source: str) -> list[Document]:
    return list(extract(source.encode(), "java"))


def python(source: str) -> list[Document]:
    return list(extract(source.encode(), "python"))


def test_a_name_before_a_round_bracket_is_a_call_only_where_it_is_one() -> None:
    (f,) = java("class A { void f(int i) { a[(i)] = b (c(i)); for (T t : LIST) (x).y(); return i > 1 ? (i) : (z); } }")
    assert f.words["calls"] == ("b", "c", "y")
    assert f.words["enums"] == ("LIST",)
    assert f.words["identifiers"] == ("a", "i", "i", "t", "x", "i", "i", "z")
    f, g = python(
        "class A(b):\n  @c(1)\n  def f(self, d):\n    class E(d): g = f(x=(y))\n    return d in (1, h (2))\ndef g(): 1"
    )
    assert f.words["calls"] == ("c", "f", "h")
    assert f.words["types"] == ("E",)
    assert g.words.keys() == {"name", "path"}


def test_the_letter_after_a_function_is_none_of_its_words() -> None:
    f, g = java("class A{int f(){return a;}void g(){b(c);}int d;}")
    assert f.words.get("identifiers") == ("a",)
    assert (g.words["calls"], g.words["identifiers"]) == (("b",), ("c",))
    (last,) = python("def f(): return g.a")
    assert last.words["identifiers"] == ("g", "a")
    assert [(d.qualified_name, d.id.rpartition(":")[2]) for d in (f, g)] == [("A.f", "1"), ("A.g", "1.2")]


def test_annotations_records_and_patterns_with_brackets_are_no_calls() -> None:
    (f,) = java(
        'class A { @Size(max = 2) @a.Late(1) int f(@Named("x") Object o) {'
        " record Pair(int a, int b) {} enum E { ONE(1), two(2); }"
        " return switch (o) { case Pair(int a, int b) -> g(a); default -> super.h(this); }; } }"
    )
    assert f.words["calls"] == ("g", "h")
    assert f.words["types"] == ("Size", "Late", "Named", "Object", "Pair", "E", "Pair")
    assert f.words["enums"] == ("ONE",)
    (f,) = python("def f(a):\n    match a:\n        case Point(x=0): return g(a)\n        case b.Line(): pass\n")
    assert f.words["calls"] == ("g",)
    assert f.words["types"] == ("Point", "Line")


def test_a_type_in_capitals_is_no_constant_and_the_prefix_of_a_string_no_name() -> None:
    (load,) = java("class A { void load(URL url) { open(url); } }")
    assert (load.words["types"], load.words.get("enums")) == (("URL",), None)
    (f,) = python("def f(x):\n    return rb'one' + b'two' + f'{x}'\n")
    assert f.words["identifiers"] == ("x",)


def test_a_docstring_documents_the_function_it_opens_and_no_other() -> None:
    outer, inner = python('def outer():\n    """Out."""\n    def inner():\n        """In."""\n')
    assert (outer.words["doc"], inner.words["doc"]) == (("Out.",), ("In.",))
    assert "literals" not in outer.words
    (late,) = python('def f():\n    x = 1\n    "no docstring"\n')
    assert "doc" not in late.words


@pytest.mark.parametrize(
    ("above", "doc"),
    [
        ("# One.\n# Two.\n", ("One.", "Two.")),
        ("x = 1  # about x\n", ()),
        ("# a heading\n\n", ()),
        ("# other\nx = 1\n# One.\n@a\n", ("One.",)),
    ],
)
def test_the_comments_directly_above_a_function_are_its_own(above: str, doc: tuple[str, ...]) -> None:
    (f,) = python(above + "def f(): pass\n")
    assert (f.words.get("doc", ()), "comments" in f.words) == (doc, False)


def test_the_code_of_a_method_is_less_indented() -> None:
    (tabs,) = python("class A:\n\tdef f(self):\n\t\treturn g()\n")
    assert (tabs.code, tabs.start_line, tabs.end_line) == ("def f(self):\n\treturn g()", 2, 3)


def test_a_class_is_an_outline_and_the_top_level_a_module() -> None:
    source = (
        'import os\n\n"""Keyboards."""\nMAX = 3\n\n# Shown at once.\nclass Keyboard:\n    """A keyboard."""\n'
        '    size = "small"\n\n    # Hides it.\n    def hide(self):\n        close(self)\n'
    )
    hide, module, keyboard = extract(source.encode(), "python", path="a/keys.py", outside=True)
    assert (hide.kind, hide.words["doc"]) == ("function", ("Hides it.",))
    assert (module.kind, module.name, module.start_line, module.end_line) == ("module", "keys", 3, 4)
    assert module.code == '"""Keyboards."""\nMAX = 3'
    assert (module.words["enums"], module.words["doc"]) == (("MAX",), ("Keyboards.",))
    assert (keyboard.kind, keyboard.name, keyboard.start_line, keyboard.end_line) == ("class", "Keyboard", 7, 13)
    assert keyboard.code.endswith("# Hides it.\n    def hide(self) ...\n")
    assert keyboard.words["doc"] == ("Shown at once.", "A keyboard.")
    assert keyboard.words["literals"] == ("small",)
    assert "close" not in str(keyboard.words)


STUBS = """
@overload
def read(path: str) -> str: ...  # one
@typing.overload
def read(path: bytes) -> bytes:
    '''Reads bytes.'''
@t.overload
async def read(path: int) -> int:
    pass
"""
METHODS = """
class File:
    size = 1
    @overload
    def read(self, n: int) -> str:
        '''Reads some.'''
        ...
    @staticmethod
    @typing_extensions.overload
    def read(n: None) -> bytes: ...
"""
BODY = "def read(path):\n    return open(path)\n"
MEMBER = "    def read(self, n):\n        return self.file.read(n)\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (STUBS + BODY, ["10 read"]),
        (STUBS, ["2 read"]),
        (STUBS + METHODS + BODY + "class Other:\n" + MEMBER, ["13 File.read", "20 read", "23 Other.read"]),
        (METHODS + MEMBER, ["11 File.read"]),
        # a library that dispatches by types has bodies, another `overload` arguments
        ("@overload\ndef f(x: int):\n    return x\n@dispatch\ndef f(x): ...\n", ["1 f", "4 f"]),
        ("@overload(np.sum)\ndef f(x): ...\ndef f(x): ...\n", ["1 f", "3 f"]),
    ],
)
def test_overloads_of_python_fold_into_their_implementation_or_into_the_first(code: str, expected: list[str]) -> None:
    assert [f"{each.start_line} {each.qualified_name}" for each in python(code)] == expected


def test_words_of_overloads_do_not_become_those_of_the_class_or_module_around_them() -> None:
    documents = list(extract((METHODS + MEMBER + STUBS + BODY + "LIMIT = 1\n").encode(), "python", outside=True))
    outlines = {each.kind: each for each in documents if each.kind != "function"}
    assert outlines["class"].words["identifiers"] == ("size",)
    assert "parameters" not in outlines["class"].words
    assert outlines["module"].code.strip() == "LIMIT = 1"


def test_an_unknown_language_or_front_end_is_refused() -> None:
    with pytest.raises(BadInput, match="no language 'cobol'; choose from java, python"):
        list(extract(b"", "cobol"))
    with pytest.raises(BadInput, match="no front end 'antlr'; choose from tree-sitter, javalang"):
        list(extract(b"", "java", frontend="antlr"))


def digest(source: str, language: str = "python") -> bytes:
    """The digest of the first function."""
    return next(iter(extract(source.encode(), language))).digest


def test_comments_and_layout_of_java_make_no_other_function_and_names_and_strings_do() -> None:
    one = 'class A { int f(int a) { return g(a, "x"); } }'
    for same in (
        'class A {\n\n  int f(int a)\n  {\n\treturn g( a , "x" ) ;\n  }\n}',
        'class A { /** Doc. */ int f(int a) { // why\n return /* b */ g(a, "x"); } }',
    ):
        assert digest(same, "java") == digest(one, "java")
    for part, other in (("x", "y"), ("x", "x "), ("g", "h"), ("(int a", "(int b"), (" f", " e"), ("x", "//x")):
        assert digest(one.replace(part, other), "java") != digest(one, "java")


BASE = "def f(a):\n    for b in a:\n        if b:\n            g(b, 1)\n        h(b)\n    return a\n"
DECORATED = "@a\n@b(\n  c)\nasync def f(self):\n  await self\n"


@pytest.mark.parametrize(
    "same",
    [
        "class A:\n    class B:\n" + textwrap.indent(BASE, " " * 8),
        "class A:\n\tclass B:\n" + textwrap.indent(BASE.replace("    ", "\t"), "\t\t"),
        BASE.replace("    ", "\t").replace("\t\t\t", "\t" + " " * 16),
        BASE.replace("\n", "   \n"),
        BASE.replace("\n", "\n\n  \n"),
        BASE.replace("\n", "  # why (\n"),
        BASE.replace("\n", "\n# less\n                    # more\n"),
        BASE.replace("g(b, 1)", "g(b,\n  1\n)"),
        BASE.replace("g(b, 1)", "g(b, # [\n\n    1)"),
        BASE.replace("return a", "return \\\n  a"),
        BASE.replace("(a):\n", '(a):\n    """Doc (\n  string."""\n'),
        BASE.rstrip("\n"),
        "class A:\n" + textwrap.indent(DECORATED, "      "),
    ],
)
def test_layout_without_meaning_makes_no_other_function_of_python(same: str) -> None:
    assert digest(same) == digest(DECORATED if "@" in same else BASE)


def test_brackets_and_quotes_in_strings_open_nothing_and_their_lines_count_as_they_stand() -> None:
    for string in ("'('", '"""[\n {"""', "'\\'('", 'r"\\"', "'\"('", "f'{a}(('", '"\\\n("'):
        one = f"def f(a):\n    b = {string}\n    if a:\n        c()\n    d()\n"
        assert digest(one) != digest(one.replace("    d()", "        d()"))
        assert digest(one) == digest(one.replace("    ", "   ")) or "\n " in string
    assert digest("def f():\n    g('''a\n  b''')\n") != digest("def f():\n    g('''a\n    b''')\n")


Lines = list["str | Lines"]
statements = st.sampled_from(["a()", "b = 1", "(c)", "-d", "e = [1,\n 2]", "e = '''f\n(g'''"])
blocks = st.recursive(
    st.lists(statements, min_size=1, max_size=3),
    lambda inner: st.lists(statements | inner, min_size=1, max_size=4),
    max_leaves=12,
)


def written(lines: Lines, width: str, depth: int = 1) -> str:
    """As a person would who indents by `width`; a list is the block of an `if`."""
    blocks = (line if isinstance(line, str) else f"if x:\n{written(line, width, depth + 1)}".rstrip() for line in lines)
    return "".join(f"{width * depth}{block}\n" for block in blocks)


@given(blocks, st.sampled_from([" ", "  ", "    ", "\t", "  \t"]), st.data())
def test_functions_that_differ_in_indentation_are_copies_exactly_if_python_reads_the_same(
    lines: Lines, width: str, data: st.DataObject
) -> None:
    one, other = ("def f():\n" + written(lines, each) for each in ("  ", width))
    assert digest(one) == digest(other)
    rows = other.split("\n")
    row = data.draw(st.integers(1, len(rows) - 1))
    rows[row] = width + rows[row] if data.draw(st.booleans()) else rows[row].removeprefix(width)
    other = "\n".join(rows)
    try:
        same = ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
    except SyntaxError:
        return
    assert (digest(one) == digest(other)) == same
