"""Functions, their names, lines and words, against what a person reads in the samples."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

from ncs.errors import BadInput
from ncs.extract import extract, language_of
from ncs.types import Document

DATA = Path(__file__).parent / "data"
SAMPLES = ("java/Keyboard.java", "java/Shapes.java", "python/keyboard.py")


def read(sample: str) -> list[Document]:
    language = language_of(sample)
    assert language
    return list(extract((DATA / sample).read_bytes(), language, repository="r", path=sample))


def one(sample: str, qualified_name: str, start_line: int = 0) -> Document:
    (document,) = [
        document
        for document in read(sample)
        if document.qualified_name == qualified_name and start_line in (0, document.start_line)
    ]
    return document


def java(source: str) -> list[Document]:
    return list(extract(source.encode(), "java"))


def python(source: str) -> list[Document]:
    return list(extract(source.encode(), "python"))


def places(sample: str) -> list[tuple[str, str, int, int]]:
    return [(d.kind, d.qualified_name, d.start_line, d.end_line) for d in read(sample)]


def test_every_function_of_a_java_class_stands_where_a_person_sees_it() -> None:
    assert places("java/Keyboard.java") == [
        ("initializer", "Keyboard.initializer", 13, 15),
        ("constructor", "Keyboard.Keyboard", 24, 27),
        ("constructor", "Keyboard.Keyboard", 29, 31),
        ("method", "Keyboard.hide", 39, 46),
        ("method", "Keyboard.hide", 48, 55),
        ("method", "Keyboard.group", 61, 63),
        ("method", "Keyboard.sort", 65, 69),
        ("method", "Keyboard.listen", 71, 80),
        ("method", "Keyboard.listen.OnClickListener.onClick", 73, 76),
        ("method", "Keyboard.help", 82, 87),
        ("method", "Keyboard.days", 89, 98),
        ("method", "Keyboard.größe", 100, 102),
        ("method", "Keyboard.Row.width", 105, 107),
        ("method", "Keyboard.Row.Key.label", 110, 112),
        ("method", "Keyboard.local", 116, 123),
        ("method", "Keyboard.local.Counter.next", 118, 120),
    ]


def test_records_enums_and_interfaces_give_their_methods_with_bodies() -> None:
    assert places("java/Shapes.java") == [
        ("constructor", "Point.Point", 5, 9),
        ("method", "Point.origin", 11, 13),
        ("method", "Point.distance", 15, 17),
        ("method", "Operation.PLUS.apply", 22, 25),
        ("method", "Operation.MINUS.apply", 28, 31),
        ("constructor", "Operation.Operation", 36, 38),
        ("method", "Operation.of", 42, 49),
        ("method", "Shape.isEmpty", 55, 57),
        ("method", "Shape.square", 59, 61),
    ]


def test_every_python_function_stands_where_a_person_sees_it() -> None:
    assert places("python/keyboard.py") == [
        ("function", "Keyboard.__init__", 14, 16),
        ("function", "Keyboard.visible", 18, 20),
        ("function", "Keyboard.layout", 22, 26),
        ("function", "Keyboard.hide", 28, 37),
        ("function", "Keyboard.Row.width", 40, 41),
        ("function", "retry", 46, 54),
        ("function", "retry.decorate", 47, 52),
        ("function", "retry.decorate.wrapper", 48, 50),
        ("function", "make", 57, 62),
        ("function", "make.Local.method", 59, 60),
        ("function", "describe", 65, 72),
        ("function", "pick", 75, 76),
        ("function", "größe", 79, 81),
        ("function", "nothing", 84, 84),
    ]


def test_the_words_of_a_java_method_are_in_their_fields() -> None:
    hide = one("java/Keyboard.java", "Keyboard.hide", 39)
    assert (hide.id, hide.repository, hide.path) == ("r/java/Keyboard.java:39", "r", "java/Keyboard.java")
    assert (hide.language, hide.kind, hide.name) == ("java", "method", "hide")
    assert hide.words["name"] == ("hide",)
    assert hide.words["scope"] == ("Keyboard",)
    assert hide.words["calls"] == ("getSystemService", "hideSoftInputFromWindow", "getWindowToken")
    assert hide.words["enums"] == ("INPUT_METHOD_SERVICE",)
    assert hide.words["literals"] == ("unchecked",)
    assert hide.words["parameters"] == ("view",)
    assert hide.words["comments"] == ("ask the system", "zero means no flags")
    assert hide.words["identifiers"] == ("manager", "context", "manager", "view")
    assert {"View", "InputMethodManager"} <= set(hide.words["types"])
    assert hide.words["path"] == ("java/Keyboard.java",)
    assert hide.code.splitlines()[0] == "@Override"
    assert hide.code.splitlines()[-1] == "}"


def test_javadoc_is_read_without_tags_and_html() -> None:
    assert one("java/Keyboard.java", "Keyboard.hide", 39).words["doc"] == (
        "Hides the soft keyboard of a View, at once.\nview the view that has the focus\ntrue if it was hidden",
    )
    assert one("java/Keyboard.java", "Keyboard.Keyboard", 24).words["doc"] == (
        "Makes one for a Context.\ncontext where it is shown",
    )
    assert "doc" not in one("java/Keyboard.java", "Keyboard.hide", 48).words


def test_constructed_classes_and_method_references_are_calls() -> None:
    assert one("java/Keyboard.java", "Keyboard.hide", 48).words["calls"] == ("hide", "IllegalStateException")
    assert one("java/Keyboard.java", "Keyboard.sort").words["calls"] == (
        "sort", "compareTo", "forEach", "print", "stream", "map", "StringBuilder", "toArray",
    )  # fmt: skip
    listen = one("java/Keyboard.java", "Keyboard.listen").words
    assert listen["calls"] == ("setOnClickListener", "OnClickListener", "log", "performClick", "run")
    assert listen["literals"] == ("clicked",)


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


def test_a_document_from_extraction_is_like_any_other() -> None:
    (found,) = java("class A { void f() {} }")
    made = Document(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})
    assert type(found) is Document
    assert found == made
    assert repr(found) == repr(made)
    assert pickle.loads(pickle.dumps(found)) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.name = "g"  # type: ignore[misc]


def test_the_words_of_an_anonymous_class_are_also_its_methods_own() -> None:
    click = one("java/Keyboard.java", "Keyboard.listen.OnClickListener.onClick").words
    assert click["scope"] == ("Keyboard", "listen", "OnClickListener")
    assert click["calls"] == ("log",)
    assert click["literals"] == ("clicked",)
    assert click["parameters"] == ("clicked",)


def test_text_blocks_and_java_strings_are_literals_without_quotes() -> None:
    (block,) = one("java/Keyboard.java", "Keyboard.help").words["literals"]
    assert block.split() == ["Press", '"any"', "key", "to", "go", "on"]
    assert one("java/Keyboard.java", "Keyboard.hide", 48).words["literals"] == ("not hidden after ",)
    assert one("java/Keyboard.java", "Keyboard.initializer").words["literals"] == ("small",)
    assert one("java/Shapes.java", "Point.Point").words["literals"] == ("negative",)


def test_labels_of_switch_expressions_and_constants_are_enums() -> None:
    days = one("java/Keyboard.java", "Keyboard.days").words
    assert days["enums"] == ("FEBRUARY", "APRIL", "JUNE")
    assert days["calls"] == ("log",)
    assert days["literals"] == ("long",)
    assert one("java/Keyboard.java", "Keyboard.hide", 48).words["enums"] == ("MAX_TRIES",)
    assert one("java/Keyboard.java", "Keyboard.größe").words["enums"] == ("PI",)
    assert one("java/Shapes.java", "Operation.of").words["enums"] == ("PLUS",)


def test_type_variables_and_types_in_capitals_are_no_constants() -> None:
    group = one("java/Keyboard.java", "Keyboard.group").words
    assert "enums" not in group
    assert {"Map", "List", "Supplier", "K", "V"} <= set(group["types"])
    (load,) = java("class A { void load(URL url) { open(url); } }")
    assert load.words["types"] == ("URL",)
    assert "enums" not in load.words


def test_a_character_is_no_identifier() -> None:
    assert "identifiers" not in one("java/Keyboard.java", "Keyboard.Row.Key.label").words


def test_unicode_names_stay_whole() -> None:
    document = one("java/Keyboard.java", "Keyboard.größe")
    assert document.words["parameters"] == ("höhe",)
    assert document.words["identifiers"] == ("höhe",)
    document = one("python/keyboard.py", "größe")
    assert document.words["parameters"] == ("höhe",)
    assert document.words["enums"] == ("FAKTOR",)


def test_the_words_of_an_async_python_method_are_in_their_fields() -> None:
    hide = one("python/keyboard.py", "Keyboard.hide")
    assert hide.words["calls"] == ("get_system_service", "sleep", "hide_soft_input")
    assert hide.words["enums"] == ("MAX_TRIES",)
    assert hide.words["literals"] == ("input_method",)
    assert hide.words["comments"] == ("ask the system",)
    (doc,) = hide.words["doc"]
    assert doc.splitlines()[0] == "Hides the soft keyboard."
    assert doc.split()[-4:] == ["whether", "it", "was", "hidden"]
    assert doc.splitlines()[-1] == "whether it was hidden"


def test_self_says_nothing() -> None:
    assert one("python/keyboard.py", "Keyboard.hide").words["parameters"] == ("view", "tries")
    assert one("python/keyboard.py", "Keyboard.__init__").words["parameters"] == ("context", "size")


def test_docstrings_are_doc_and_no_literals() -> None:
    words = one("python/keyboard.py", "größe").words
    assert words["doc"] == ("Die Größe.",)
    assert "literals" not in words
    assert "comments" not in words
    (late,) = python('def f():\n    x = 1\n    "no docstring"\n')
    assert "doc" not in late.words


def test_a_docstring_documents_its_own_function_only() -> None:
    outer, inner = python('def outer():\n    """Out."""\n    def inner():\n        """In."""\n')
    assert outer.words["doc"] == ("Out.",)
    assert inner.words["doc"] == ("In.",)


def test_comments_directly_above_a_python_function_are_its_doc() -> None:
    assert one("python/keyboard.py", "retry").words["doc"] == ("Runs it again", "until it succeeds.")
    assert "doc" not in one("python/keyboard.py", "make").words


def test_type_hints_and_decorators_are_words() -> None:
    layout = one("python/keyboard.py", "Keyboard.layout").words
    assert {"str", "dict", "Key"} <= set(layout["types"])
    assert layout["calls"] == ("staticmethod", "lru_cache", "parse", "open_file")
    assert layout["literals"] == ("rb",)
    assert layout["comments"] == ("rows come from the file",)
    assert one("python/keyboard.py", "Keyboard.visible").words["enums"] == ("VISIBLE",)


def test_words_of_nested_functions_are_also_their_parents() -> None:
    for name in ("retry", "retry.decorate", "retry.decorate.wrapper"):
        words = one("python/keyboard.py", name).words
        assert words["calls"] == ("wraps", "function")
        assert words["literals"] == ("again",)
    assert one("python/keyboard.py", "retry.decorate.wrapper").words["scope"] == ("retry", "decorate")


def test_the_text_of_f_strings_is_literal_and_their_expressions_are_not() -> None:
    words = one("python/keyboard.py", "describe").words
    assert " ".join(" ".join(words["literals"]).split()) == "key key of is pressed nothing much"
    assert "len" in words["calls"]
    assert not {"f", "match", "case", "_", "r"} & set(words["identifiers"])


def test_lambdas_make_no_documents_but_their_parameters_are_words() -> None:
    pick = one("python/keyboard.py", "pick").words
    assert pick["parameters"] == ("keys", "entry")
    assert pick["calls"] == ("sorted",)
    assert one("java/Keyboard.java", "Keyboard.group").words["parameters"] == ("items", "key", "item")


def test_strings_prefixes_are_no_identifiers() -> None:
    (document,) = python("def f(x):\n    return rb'one' + b'two' + f'{x}'\n")
    assert document.words["identifiers"] == ("x",)


def test_line_numbers_are_the_same_with_windows_line_ends() -> None:
    for sample in SAMPLES:
        data = (DATA / sample).read_bytes().replace(b"\n", b"\r\n")
        documents = list(extract(data, language_of(sample) or "", repository="r", path=sample))
        for windows, unix in zip(documents, read(sample), strict=True):
            assert windows.location == unix.location
            assert windows.digest == unix.digest
            assert windows.code == unix.code


def test_a_byte_order_mark_and_utf_16_change_nothing() -> None:
    for sample in SAMPLES:
        text = (DATA / sample).read_text("utf-8")
        for encoding in ("utf-8-sig", "utf-16"):
            documents = list(extract(text.encode(encoding), language_of(sample) or "", repository="r", path=sample))
            assert documents == read(sample)


def test_tabs_and_latin_1_are_read() -> None:
    (tabs,) = python("class A:\n\tdef f(self):\n\t\treturn g()\n")
    assert (tabs.qualified_name, tabs.start_line, tabs.end_line) == ("A.f", 2, 3)
    assert tabs.code == "def f(self):\n\treturn g()"
    (latin,) = extract('class A { // Größe\n void f() { g("Maß"); } }'.encode("latin-1"), "java")
    assert (latin.qualified_name, latin.start_line, latin.words["calls"]) == ("A.f", 2, ("g",))


def test_a_file_with_an_error_gives_what_parsed() -> None:
    names = [d.qualified_name for d in java("class A {\n void a() { b(); }\n void c( { }\n void d() { e(); }\n}")]
    assert names[0] == "A.a"
    assert "A.d" in names
    names = [d.qualified_name for d in python("def a():\n    return 1\n\nx = = 2\n\ndef b():\n    return 2\n")]
    assert names == ["a", "b"]


def test_two_functions_on_one_line_have_two_ids() -> None:
    documents = list(extract(b"class A { void a() {} void b() {} }", "java", repository="r", path="A.java"))
    assert [d.id for d in documents] == ["r/A.java:1", "r/A.java:1.2"]


@pytest.mark.parametrize(
    "same",
    [
        'class A { int f(int a) { return g(a, "x"); } }',
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


def test_python_digests_forget_comments_docstrings_and_blank_lines_only() -> None:
    (plain,) = python("def f(a):\n    return g(a, 'x')\n")
    (spoken,) = python('def f(a):  # why\n    """Doc."""\n\n    return g(a,  # what\n             \'x\')\n')
    (string,) = python("def f(a):\n    return g(a, 'y')\n")
    (name,) = python("def f(a):\n    return g(b, 'x')\n")
    assert plain.digest == spoken.digest
    assert len({plain.digest, string.digest, name.digest}) == 3


def test_an_unknown_language_or_front_end_is_refused() -> None:
    with pytest.raises(BadInput, match="there are: java, python"):
        list(extract(b"", "cobol"))
    with pytest.raises(BadInput, match="tree-sitter, javalang"):
        list(extract(b"", "java", frontend="antlr"))
