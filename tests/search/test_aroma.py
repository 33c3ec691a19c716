"""Aroma's features, counted by hand, of whatever people paste."""

from __future__ import annotations

import random

import pytest

from ncs.errors import BadInput
from ncs.extract.languages import LANGUAGES, is_installed
from ncs.search.aroma import features, similarity


def names(code: str, language: str = "java") -> set[object]:
    """What stands as a token, whatever is around it."""
    return {feature[0] for feature in features(code, language) if len(feature) == 1}


def test_features_are_those_counted_by_hand_and_uses_of_a_declared_name_are_linked() -> None:
    assert features("A a = f(); a.run(); b.run();", "java") == {
        ("A",): 1, ("A", 0, "##;"): 1, ("A", 0, "###"): 1,
        ("#VAR",): 2, ("#VAR", 0, "#=#"): 1, ("#VAR", 1, "##;"): 1, ("#VAR", 0, "###"): 1,
        ("f",): 1, ("f", 0, "##"): 1, ("f", 1, "#=#"): 1, ("f", 1, "##;"): 1,
        ("#VAR", 0, "#.##"): 1, ("#VAR", 0, "#;"): 1, ("#VAR", 1, "###"): 1,
        ("run",): 2, ("run", 1, "#.##"): 2, ("run", 0, "#;"): 2, ("run", 1, "###"): 1, ("run", 2, "###"): 1,
        ("b",): 1, ("b", 0, "#.##"): 1, ("b", 0, "#;"): 1, ("b", 2, "###"): 1,
        ("A", "->", "#VAR"): 1, ("#VAR", "->", "f"): 1, ("f", "->", "#VAR"): 1,
        ("#VAR", "->", "run"): 1, ("run", "->", "b"): 1, ("b", "->", "run"): 1,
        ("use", (0, "#=#"), (0, "#.##")): 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "variables", "others", "language"),
    [
        ("void f(int a, B... c) { for (D d : e) g(a, c, d); }", {"a", "c", "d"}, {"f", "B", "D", "e", "g"}, "java"),
        ("try (R r = s()) { } catch (E x) { log(x); }", {"r", "x"}, {"R", "s", "E", "log"}, "java"),
        ("list.map(x -> x.y()); list.map((p, q) -> p);", {"x", "p", "q"}, {"list", "map", "y"}, "java"),
        ("if (o instanceof View v) v.hide();", {"v"}, {"o", "View", "hide"}, "java"),
        ("void set(int size) { this.size = size; size(); a.size(); }", set(), {"set", "size", "a"}, "java"),
        ("class A { int count; void f() { int n = count; use(n); } }", {"n"}, {"A", "count", "f", "use"}, "java"),
        ("int size; void f() { size = 1; }", set(), {"size", "f"}, "java"),
        ("class A { void f(int x) {} void g() { h(x); } }", set(), {"A", "f", "x", "g", "h"}, "java"),
        ("final int n = 1; f(new A() { void run() { go(n); } });", {"n"}, {"f", "A", "run", "go"}, "java"),
        ("def f(a=1, *c, d: int = 2, **e): return (a, c, d, e)", {"a", "c", "d", "e"}, {"f", "int"}, "python"),
        ("x, (y, z) = g()\nx.y = z", {"x", "z"}, {"g", "y"}, "python"),
        ("for i, j in pairs: print(i, j)", {"i", "j"}, {"pairs", "print"}, "python"),
        ("with open(p) as f:\n    f.read()", {"f"}, {"open", "p", "read"}, "python"),
        ("try:\n    a()\nexcept E as e:\n    log(e)", {"e"}, {"a", "E", "log"}, "python"),
        ("[k for k in keys if (n := k)]", {"k", "n"}, {"keys"}, "python"),
        ("call(size=1)", set(), {"call", "size"}, "python"),
        ("f(lambda q: q.r)", {"q"}, {"f", "r"}, "python"),
        ("class A:\n    limit = 1\n    def f(self):\n        return limit", {"self"}, {"A", "limit", "f"}, "python"),
    ],
)
def test_locals_and_parameters_are_variables_and_fields_and_methods_are_not(
    code: str, variables: set[str], others: set[str], language: str
) -> None:
    tokens = names(code, language)
    assert others <= tokens
    assert not variables & tokens


def test_comments_layout_and_values_of_literals_make_no_difference() -> None:
    one = features("f(\"a\", 1, 2.5f, 'c'); // now", "java")
    assert one == features("/* then */ f ( \"b\\n\",\n 0x10, 1e3, 'd' ) ;", "java")
    assert features('def f():\n    """What f does."""\n    g()', "python") == features("def f():\n    g()", "python")
    assert names('f("a", 1);') == {"f", "#STR", "#NUM"}
    assert names("f(f'{x} and {y}', 'z')", "python") == {"f", "#STR", "x", "y"}


def test_keywords_shape_labels_and_are_no_tokens() -> None:
    found = features("this.a = super.b(null);", "java")
    assert found[("a", 0, "this.#")] == 1
    assert found[("b", 0, "super.##")] == 1
    assert not {"this", "super", ";"} & names("this.a = super.b(null);")


@pytest.mark.parametrize(
    ("around", "code"),
    [
        ("class Z {%s}", "public void f() { g(); }"),
        ("class Z {%s}", "static { f(); }"),
        ("class f {%s}", "f(int x) { super(x); }"),
        ("class Z { void z() { if (q) {%s} } }", "return f();"),
        ("class Z { void z() { switch (q) {%s} } }", "case 1: f(); break;"),
        ("class Z { void z() {%s} }", "f(new G() { @Override public void g() { h(); } });"),
    ],
)
def test_members_and_statements_parse_as_where_they_belong(around: str, code: str) -> None:
    fragment = features(code, "java")
    assert ("f",) in fragment
    assert similarity(features(around % code, "java"), fragment) == 1


def test_whole_files_and_several_fragments_parse() -> None:
    assert {"a", "b", "C", "D", "f"} <= names("import a.b.C; class D { int x = f(); }")
    assert {"Override", "f", "g", "B"} <= names("@Override protected void f() { g(); } private B g() { return 1; }")
    assert {"f", "g", "h"} <= names("f(); @Override public void g() { } public class A { void h() {} }")


def test_what_is_pasted_around_code_is_left_out() -> None:
    code = "Intent i = new Intent(); startActivity(i);"
    plain = features(code, "java")
    layout = '<?xml version="1.0"?>\n<LinearLayout android:id="@+id/a">\n</LinearLayout>\n'
    assert features(layout + code, "java") == plain
    assert features("...\n" + code + "\n…", "java") == plain
    assert features("void f() { ... }", "java") == features("void f() { }", "java")
    assert "args" not in names("void f(String... args) { g(args); }")
    indented = "    x = f()\n    g(x)\n"
    assert features(indented, "python") == features("x = f()\ng(x)\n", "python")


def test_garbage_has_fewer_features_than_code_and_raises_nothing() -> None:
    prose = "You should never do this because it is wrong, as @someone said: see the docs (or ask) & good luck!"
    assert sum(features(prose, "java").values()) < 2 * len(prose.split())  # code has five a word
    noise = random.Random(0).randbytes(1000)
    for language in (language for language in LANGUAGES if is_installed(language)):
        for code in (noise, noise[:10], b"a = b.c(d, 'e')\n", bytes(range(256))):
            features(code, language)
    assert features(b"", "java") == features(b"\0", "java") == {}
    assert ("f",) in features("f('\ud800');", "java")
    cut_off = "public void onCreate(Bundle b) { super.onCreate(b); setContentView(1);"
    assert {"onCreate", "setContentView"} <= names(cut_off)
    with pytest.raises(BadInput, match="cobol"):
        features(b"x", "cobol")


def test_nesting_of_any_depth_is_walked() -> None:
    assert features(b"x = " + b"(" * 5000 + b"1" + b")" * 5000 + b";", "java")[("#NUM",)] == 1
    assert features("x = " + "[" * 2000 + "1" + "]" * 2000, "python")[("#NUM",)] == 1


def test_the_share_is_the_answers_as_multisets() -> None:
    assert similarity({("a",): 1, ("b",): 5}, {("a",): 2, ("b",): 1, ("c",): 1}) == 0.5
    assert similarity({("a",): 1}, {}) == 0


# f(a) { b = c(a); return b.d }: a and b are a local variable each, used twice
LOCALS = {
    "java": "int f(A a) { B b = c(a); return b.d; }",
    "python": "def f(a):\n    b = c(a)\n    return b.d",
    "go": "func f(a A) B { b := c(a); return b.d }",
    "javascript": "function f(a) { const b = c(a); return b.d }",
    "typescript": "function f(a: A): B { const b = c(a); return b.d }",
    "tsx": "function f(a: A): B { const b = c(a); return b.d }",
    "php": "function f($a) { $b = c($a); return $b->d; }",
    "ruby": "def f(a)\n  b = c(a)\n  b.d\nend",
    "kotlin": "fun f(a: A): B { val b = c(a); return b.d }",
    "c": "int f(struct A *a) { struct B *b = c(a); return b->d; }",
    "cpp": "int f(const A& a) { auto b = c(a); return b.d; }",
    "csharp": "int f(A a) { var b = c(a); return b.d; }",
    "rust": "fn f(a: A) -> B { let b = c(a); b.d }",
    "swift": "func f(a: A) -> B { let b = c(a); return b.d }",
    "scala": "def f(a: A): B = { val b = c(a); b.d }",
    "lua": "function f(a)\n local b = c(a)\n return b.d\nend",
    "zig": "fn f(a: A) B { const b = c(a); return b.d; }",
}


@pytest.mark.parametrize("language", sorted(language for language in LOCALS if is_installed(language)))
def test_every_language_tells_locals_and_parameters_from_other_names(language: str) -> None:
    found = features(LOCALS[language], language)
    assert found[("#VAR",)] == 4
    assert {"f", "c", "d"} <= names(LOCALS[language], language)
    assert not {"a", "b"} & names(LOCALS[language], language)
    assert found[("c", "->", "#VAR")] == 1
    assert any(feature[0] == "use" for feature in found)
