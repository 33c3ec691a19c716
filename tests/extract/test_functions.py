"""Functions of Java and Python: names, fields, encodings, errors and digests, a rule at a time."""

from __future__ import annotations

import pytest

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


def test_a_type_in_capitals_is_no_constant() -> None:
    (load,) = java("class A { void load(URL url) { open(url); } }")
    assert load.words["types"] == ("URL",)
    assert "enums" not in load.words


def test_the_prefix_of_a_string_is_no_identifier() -> None:
    (document,) = python("def f(x):\n    return rb'one' + b'two' + f'{x}'\n")
    assert document.words["identifiers"] == ("x",)


def test_a_docstring_documents_the_function_it_opens_and_no_other() -> None:
    outer, inner = python('def outer():\n    """Out."""\n    def inner():\n        """In."""\n')
    assert (outer.words["doc"], inner.words["doc"]) == (("Out.",), ("In.",))
    assert "literals" not in outer.words
    (late,) = python('def f():\n    x = 1\n    "no docstring"\n')
    assert "doc" not in late.words


def test_tabs_utf_16_and_latin_1_are_read() -> None:
    (tabs,) = python("class A:\n\tdef f(self):\n\t\treturn g()\n")
    assert (tabs.qualified_name, tabs.start_line, tabs.end_line) == ("A.f", 2, 3)
    assert tabs.code == "def f(self):\n\treturn g()"
    source = 'class A { // Größe\n void f() { g("Maß"); } }'
    for encoding in ("latin-1", "utf-16", "utf-8-sig"):
        assert list(extract(source.encode(encoding), "java")) == java(source)


def test_two_functions_on_one_line_have_two_ids() -> None:
    documents = list(extract(b"class A { void a() {} void b() {} }", "java", repository="r", path="A.java"))
    assert [d.id for d in documents] == ["r/A.java:1", "r/A.java:1.2"]


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
    assert keyboard.code.endswith("# Hides it.\n    def hide(self) ...")
    assert keyboard.words["doc"] == ("Shown at once.", "A keyboard.")
    assert keyboard.words["literals"] == ("small",)
    assert "close" not in str(keyboard.words)


@pytest.mark.parametrize(
    "same",
    [
        'class A {\n\n  int f(int a)\n  {\n\treturn g( a , "x" ) ;\n  }\n}',
        'class A { /** Doc. */ int f(int a) { // why\n return /* b */ g(a, "x"); } }',
    ],
)
def test_comments_and_layout_do_not_change_the_digest(same: str) -> None:
    (document,) = java('class A { int f(int a) { return g(a, "x"); } }')
    assert java(same)[0].digest == document.digest


@pytest.mark.parametrize(
    "other",
    [
        'class A { int f(int a) { return g(a, "y"); } }',
        'class A { int f(int a) { return g(a, "x "); } }',
        'class A { int f(int a) { return h(a, "x"); } }',
        'class A { int f(int b) { return g(b, "x"); } }',
        'class A { int e(int a) { return g(a, "x"); } }',
        'class A { int f(int a) { return g(a, "//x"); } }',
    ],
)
def test_another_name_or_string_changes_the_digest(other: str) -> None:
    (document,) = java('class A { int f(int a) { return g(a, "x"); } }')
    assert java(other)[0].digest != document.digest


def test_an_unknown_language_or_front_end_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown language 'cobol'; known: java, python"):
        list(extract(b"", "cobol"))
    with pytest.raises(BadInput, match="unknown front end 'antlr'; known: tree-sitter, javalang"):
        list(extract(b"", "java", frontend="antlr"))
