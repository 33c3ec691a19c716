"""Constructs that samples of languages (test_languages.py) lack or hide, one by one, checked by hand."""

# ruff: noqa: E501  (a construct a line)
from __future__ import annotations

import pytest

from ncs.extract import LANGUAGES, extract

# language, construct, code, its functions as `first-last kind qualified_name`
CONSTRUCTS = [
    ("java", "overload", "class A {\n  void f(int n) {}\n  void f(String s) {}\n}", "2-2 method A.f; 3-3 method A.f"),
    ("java", "nested", "class A {\n  void f() {\n    new B() {\n      void g() {}\n    };\n  }\n}", "2-6 method A.f; 4-4 method A.f.B.g"),
    ("python", "overload", "@overload\ndef f(n: int): ...\n@overload\ndef f(n: str): ...\ndef f(n): pass", "1-2 function f; 3-4 function f; 5-5 function f"),
    ("python", "operator", "class A:\n    def __add__(self, o):\n        return o", "2-3 function A.__add__"),
    ("python", "decorator", "class A:\n    @property\n    @b(1)\n    def f(self):\n        return 1", "2-5 function A.f"),
    ("go", "method", "package a\nfunc (l *List[T]) Len() int { return l.n }", "2-2 method List.Len"),
    ("go", "named closure", "package a\nvar f = func(n int) int {\n\treturn n\n}", "2-4 function f"),
    ("javascript", "nested", "function f() {\n  const g = (x) => {\n    return x;\n  };\n}", "1-5 function f; 2-4 function f.g"),
    ("javascript", "class", "class A {\n  static #b = 1;\n  get c() { return 1; }\n  async *d() {}\n}", "3-3 method A.c; 4-4 method A.d"),
    ("typescript", "overload", "function f(a: string): void;\nfunction f(a: number): void;\nfunction f(a: any) {\n  g(a);\n}", "1-5 function f"),
    ("typescript", "nested", "namespace N {\n  export function f() {\n    function g() {}\n  }\n}", "2-4 function N.f; 3-3 function N.f.g"),
    ("tsx", "component", "export const A: FC<P> = ({ b }) => {\n  return <B c={() => d(b)} />;\n};", "1-3 function A"),
    ("php", "named closure", "<?php\n$f = fn($n) => $n;", "2-2 function f"),
    ("php", "nested", "<?php\nfunction f() {\n  function g() {}\n}", "2-4 function f; 3-3 function f.g"),
    ("php", "in html", "<b>\n<?php function f() { return 1; } ?>\n</b>\n<?php function g() {} ?>", "2-2 function f; 4-4 function g"),
    ("ruby", "operator", "class A\n  def +(o)\n    o\n  end\n  def []=(k, v); end\nend", "2-4 method A.+; 5-5 method A.[]="),
    ("ruby", "endless", "def f(n) = n * 2", "1-1 method f"),
    ("c", "pointer", "char *(*f(int n))(void) {\n  return 0;\n}\nint **g(void) { return 0; }", "1-3 function f; 4-4 function g"),
    ("c", "attribute", "static inline __attribute__((unused)) int f(void)\n{\n  return 1;\n}", "1-4 function f"),
    ("c", "old style", "int f(a, b)\n  int a;\n  char b;\n{\n  return a;\n}", "1-6 function f"),
    ("c", "unicode", "int größe(void) { return 1; }", "1-1 function größe"),
    ("cpp", "operator", "struct A {\n  A& operator+=(const A& o) { return *this; }\n  bool operator()(int n) const { return n; }\n};", "2-2 method A.operator+=; 3-3 method A.operator()"),
    ("cpp", "macro before a constructor", "struct A {\n  LIB_CONSTEXPR explicit A(int n) : n_(n) {}\n  LIB_INLINE ~A() { f(); }\n};", "2-2 function A.A; 3-3 method A.~A"),
    ("cpp", "macro before a class", "class LIB_EXPORT A : B {\n public:\n  A() : n_(0) {}\n};", "3-3 function A.A"),
    ("cpp", "macro behind const", "struct A {\n  int f() const\n      LOCKS_EXCLUDED(mutex_) { return 1; }\n};", "2-3 method A.f"),
    ("cpp", "macro behind if", "void f() {\n  if CONSTEXPR20 (a) g();\n  else if (b) h();\n}\nvoid g() {}", "1-4 function f; 5-5 function g"),
    ("cpp", "macro that defines", "DEFINE_ACTION_(::std::string, \"\");\nDEFINE_ACTION_(void, );\nstruct A {\n  A() : n_(0) {}\n};", "4-4 function A.A"),
    ("cpp", "macro on its own line", "LIB_BEGIN_NAMESPACE\nLIB_DISABLE_WARNINGS(4251\n  4275)\nvoid f() {}\nLIB_END_NAMESPACE", "4-4 function f"),
    ("csharp", "operator", "class A {\n  public static A operator +(A a, A b) => a;\n}", "2-2 method A.+"),
    ("csharp", "nested", "class A {\n  void F() {\n    int G(int n) { return n; }\n  }\n}", "2-4 method A.F; 3-3 function A.F.G"),
    ("rust", "operator", "impl Add for A {\n    type Output = A;\n    fn add(self, o: A) -> A { o }\n}", "3-3 function A.add"),
    ("kotlin", "operator", "class A {\n    operator fun plus(o: A): A = o\n}", "2-2 function A.plus"),
    ("kotlin", "generic", "inline fun <reified T : Any> List<T>.f(): T = first()", "1-1 function List.f"),
    ("swift", "operator", "extension A {\n    static func + (a: A, b: A) -> A { return a }\n}", "2-2 function A.+"),
    ("scala", "operator", "class A {\n  def +(o: A): A = o\n  def unary_! : A = this\n}", "2-2 method A.+; 3-3 method A.unary_!"),
    ("lua", "method", "function A.b:c(n)\n  return n\nend", "1-3 method b.c"),
    ("lua", "table", "return {\n  f = function(n) return n end,\n}", "2-2 function f"),
    ("bash", "both spellings", "f() {\n  g\n}\nfunction h {\n  g\n}", "1-3 function f; 4-6 function h"),
    ("bash", "sub-shell", "f() (\n  cd x\n)", "1-3 function f"),
    ("bash", "nested", "f() {\n  g() { :; }\n}", "1-3 function f; 2-2 function f.g"),
    ("elixir", "clauses", "defmodule A do\n  def f([]), do: 1\n  def f([h | t]) when h > 1 do\n    2\n  end\nend", "2-5 function A.f"),
    ("elixir", "operator", "defmodule A do\n  def a <> b, do: a\nend", "2-2 function A.<>"),
    ("haskell", "equations", "f 0 = 1\nf n\n  | n > 1 = 2\n  | otherwise = 3", "1-4 function f"),
    ("haskell", "operator", "(<+>) :: A -> A -> A\na <+> b = a", "1-2 function <+>"),
    ("haskell", "nested", "f n = g n\n  where\n    g m = m", "1-3 function f; 3-3 function f.g"),
    ("zig", "generic", "fn F(comptime T: type) type {\n    return struct {\n        fn g() void {}\n    };\n}", "1-5 function F; 3-3 function F.g"),
    ("zig", "test", 'test "a b" {\n    try f();\n}', "1-3 test a b"),
    ("sql", "function", "CREATE FUNCTION f(n int) RETURNS int AS $$ SELECT n $$ LANGUAGE sql;", "1-1 function f"),
    ("sql", "with", "CREATE VIEW v AS\nWITH a AS (SELECT 1)\nSELECT * FROM a;", "1-3 view v"),
    ("go", "nested", "package a\nfunc f() {\n\tg := func(n int) int {\n\t\treturn n\n\t}\n\tg(1)\n}", "2-7 function f; 3-5 function f.g"),
    ("tsx", "decorator", "@observer\nclass A extends B {\n  @action\n  f() { return <b />; }\n}", "3-4 method A.f"),
    ("cpp", "nested", "void f() {\n  struct B {\n    void g() {}\n  };\n}", "1-5 function f; 3-3 method f.B.g"),
    ("lua", "operator", "function A.__add(a, b)\n  return a\nend", "1-3 function A.__add"),
    ("elixir", "overload", "defmodule A do\n  def f(n), do: n\n\n  def f(n, m), do: n + m\nend", "2-4 function A.f"),
    ("elixir", "nested", "defmodule A do\n  defmodule B do\n    def f, do: 1\n  end\nend", "3-3 function A.B.f"),
    ("zig", "nested", "const A = struct {\n    fn f(self: A) void {\n        g(self);\n    }\n};", "2-4 function A.f"),
    ("sql", "trigger", "CREATE TRIGGER t AFTER INSERT ON a\nFOR EACH ROW EXECUTE FUNCTION f();", "1-2 trigger t"),
]  # fmt: skip
IDS = [f"{language} {construct}" for language, construct, *_ in CONSTRUCTS]


@pytest.mark.parametrize(("language", "code", "expected"), [(row[0], *row[2:]) for row in CONSTRUCTS], ids=IDS)
def test_a_construct_gives_the_functions_that_a_person_sees(language: str, code: str, expected: str) -> None:
    for above, source in ((0, code), (0, code + "\n"), (2, "\n\n" + code)):
        documents = extract(source.encode(), language)
        places = [f"{d.start_line - above}-{d.end_line - above} {d.kind} {d.qualified_name}" for d in documents]
        assert places == expected.split("; ")


def test_every_language_has_constructs() -> None:
    assert {language for language, *_ in CONSTRUCTS} == set(LANGUAGES)
