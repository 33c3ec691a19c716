"""What people write in each language, a construct at a time: which documents it gives, on which lines, checked by hand.

tests/test_languages.py reads whole samples; here every construct stands alone, so that what fails has a name.
"""

# ruff: noqa: E501  (a construct a line)
from __future__ import annotations

import pytest

from ncs.extract import LANGUAGES, extract

# language, construct, code, its functions as `first-last kind qualified_name`
CONSTRUCTS = [
    ("java", "closure", "class A {\n  Runnable f(int n) {\n    return () -> g(n);\n  }\n}", "2-4 method A.f"),
    ("java", "overload", "class A {\n  void f(int n) {}\n  void f(String s) {}\n}", "2-2 method A.f; 3-3 method A.f"),
    ("java", "generic", "class A<T> {\n  <U extends T> U f(Map<U, T> m) {\n    return null;\n  }\n}", "2-4 method A.f"),
    ("java", "decorator", "class A {\n  @Override\n  @B(c = 1)\n  public int f() {\n    return 1;\n  }\n}", "2-6 method A.f"),
    ("java", "nested", "class A {\n  void f() {\n    new B() {\n      void g() {}\n    };\n  }\n}", "2-6 method A.f; 4-4 method A.f.B.g"),
    ("java", "unicode", "class Größe {\n  int höhe() { return 1; }\n}", "2-2 method Größe.höhe"),
    ("python", "closure", "def f(n):\n    def g():\n        return n\n    return g", "1-4 function f; 2-3 function f.g"),
    ("python", "overload", "@overload\ndef f(n: int): ...\n@overload\ndef f(n: str): ...\ndef f(n): pass", "1-2 function f; 3-4 function f; 5-5 function f"),
    ("python", "operator", "class A:\n    def __add__(self, o):\n        return o", "2-3 function A.__add__"),
    ("python", "generic", "def f[T: int](n: T) -> list[T]:\n    return [n]", "1-2 function f"),
    ("python", "decorator", "class A:\n    @property\n    @b(1)\n    def f(self):\n        return 1", "2-5 function A.f"),
    ("python", "async", "async def f():\n    async for x in y: pass", "1-2 function f"),
    ("python", "unicode", "def größe(höhe): return höhe", "1-1 function größe"),
    ("go", "closure", "package a\nfunc f(n int) func() int {\n\treturn func() int { return n }\n}", "2-4 function f"),
    ("go", "generic", "package a\nfunc F[T any, U ~int](t T) (u U) {\n\treturn\n}", "2-4 function F"),
    ("go", "method", "package a\nfunc (l *List[T]) Len() int { return l.n }", "2-2 method List.Len"),
    ("go", "named closure", "package a\nvar f = func(n int) int {\n\treturn n\n}", "2-4 function f"),
    ("go", "unicode", "package a\nfunc größe() {}", "2-2 function größe"),
    ("javascript", "closure", "function f(n) {\n  return () => n;\n}", "1-3 function f"),
    ("javascript", "generator", "function* f() {\n  yield 1;\n}\nasync function g() {}", "1-3 function f; 4-4 function g"),
    ("javascript", "nested", "function f() {\n  const g = (x) => {\n    return x;\n  };\n}", "1-5 function f; 2-4 function f.g"),
    ("javascript", "class", "class A {\n  static #b = 1;\n  get c() { return 1; }\n  async *d() {}\n}", "3-3 method A.c; 4-4 method A.d"),
    ("javascript", "decorator", "class A {\n  @log\n  f() {}\n}", "2-3 method A.f"),
    ("javascript", "unicode", "const größe = (höhe) => höhe;", "1-1 function größe"),
    ("typescript", "overload", "function f(a: string): void;\nfunction f(a: number): void;\nfunction f(a: any) {\n  g(a);\n}", "1-5 function f"),
    ("typescript", "generic", "export const f = <T extends object>(a: T): T => a;", "1-1 function f"),
    ("typescript", "decorator", "class A {\n  @Input()\n  f(): void {}\n}", "2-3 method A.f"),
    ("typescript", "nested", "namespace N {\n  export function f() {\n    function g() {}\n  }\n}", "2-4 function N.f; 3-3 function N.f.g"),
    ("typescript", "unicode", "function größe(): void {}", "1-1 function größe"),
    ("tsx", "component", "export const A: FC<P> = ({ b }) => {\n  return <B c={() => d(b)} />;\n};", "1-3 function A"),
    ("tsx", "generic", "function A<T,>(p: P<T>) {\n  return <b>{p.c}</b>;\n}", "1-3 function A"),
    ("php", "closure", "<?php\nfunction f($n) {\n  return function () use ($n) { return $n; };\n}", "2-4 function f"),
    ("php", "named closure", "<?php\n$f = fn($n) => $n;", "2-2 function f"),
    ("php", "attribute", "<?php\nclass A {\n  #[Route('/')]\n  public static function f(): ?int { return 1; }\n}", "3-4 method A.f"),
    ("php", "nested", "<?php\nfunction f() {\n  function g() {}\n}", "2-4 function f; 3-3 function f.g"),
    ("php", "in html", "<b>\n<?php function f() { return 1; } ?>\n</b>\n<?php function g() {} ?>", "2-2 function f; 4-4 function g"),
    ("php", "unicode", "<?php\nfunction größe() {}", "2-2 function größe"),
    ("ruby", "closure", "def f(n)\n  -> { n }\nend", "1-3 method f"),
    ("ruby", "operator", "class A\n  def +(o)\n    o\n  end\n  def []=(k, v); end\nend", "2-4 method A.+; 5-5 method A.[]="),
    ("ruby", "endless", "def f(n) = n * 2", "1-1 method f"),
    ("ruby", "nested", "module M\n  class A\n    def self.f\n      1\n    end\n  end\nend", "3-5 method M.A.f"),
    ("ruby", "unicode", "def größe = 1", "1-1 method größe"),
    ("c", "pointer", "char *(*f(int n))(void) {\n  return 0;\n}\nint **g(void) { return 0; }", "1-3 function f; 4-4 function g"),
    ("c", "attribute", "static inline __attribute__((unused)) int f(void)\n{\n  return 1;\n}", "1-4 function f"),
    ("c", "old style", "int f(a, b)\n  int a;\n  char b;\n{\n  return a;\n}", "1-6 function f"),
    ("c", "unicode", "int größe(void) { return 1; }", "1-1 function größe"),
    ("cpp", "closure", "int f(int n) {\n  auto g = [n](int m) { return n; };\n  return g(1);\n}", "1-4 function f; 2-2 function f.g"),
    ("cpp", "overload", "int f(int n) { return n; }\nint f(double n) { return 1; }", "1-1 function f; 2-2 function f"),
    ("cpp", "operator", "struct A {\n  A& operator+=(const A& o) { return *this; }\n  bool operator()(int n) const { return n; }\n};", "2-2 method A.operator+=; 3-3 method A.operator()"),
    ("cpp", "generic", "template <typename T, int N>\nT f(T (&a)[N]) {\n  return a[0];\n}", "1-4 function f"),
    ("cpp", "attribute", "[[nodiscard]] constexpr auto f() noexcept -> int { return 1; }", "1-1 function f"),
    ("cpp", "concept", "template <class T> requires C<T>\nvoid f(T t) {}", "1-2 function f"),
    ("cpp", "macro before a constructor", "struct A {\n  LIB_CONSTEXPR explicit A(int n) : n_(n) {}\n  LIB_INLINE ~A() { f(); }\n};", "2-2 function A.A; 3-3 method A.~A"),
    ("cpp", "macro before a class", "class LIB_EXPORT A : B {\n public:\n  A() : n_(0) {}\n};", "3-3 function A.A"),
    ("cpp", "macro behind const", "struct A {\n  int f() const\n      LOCKS_EXCLUDED(mutex_) { return 1; }\n};", "2-3 method A.f"),
    ("cpp", "macro behind if", "void f() {\n  if CONSTEXPR20 (a) g();\n  else if (b) h();\n}\nvoid g() {}", "1-4 function f; 5-5 function g"),
    ("cpp", "macro that defines", "DEFINE_ACTION_(::std::string, \"\");\nDEFINE_ACTION_(void, );\nstruct A {\n  A() : n_(0) {}\n};", "4-4 function A.A"),
    ("cpp", "macro on its own line", "LIB_BEGIN_NAMESPACE\nLIB_DISABLE_WARNINGS(4251\n  4275)\nvoid f() {}\nLIB_END_NAMESPACE", "4-4 function f"),
    ("cpp", "unicode", "int größe() { return 1; }", "1-1 function größe"),
    ("csharp", "closure", "class A {\n  Func<int> F(int n) {\n    return () => n;\n  }\n}", "2-4 method A.F"),
    ("csharp", "overload", "class A {\n  void F(int n) {}\n  void F(string s) => G();\n}", "2-2 method A.F; 3-3 method A.F"),
    ("csharp", "operator", "class A {\n  public static A operator +(A a, A b) => a;\n}", "2-2 method A.+"),
    ("csharp", "generic", "class A<T> {\n  public U F<U>(T t) where U : class {\n    return null;\n  }\n}", "2-4 method A.F"),
    ("csharp", "attribute", "class A {\n  [Test]\n  public async Task F() { await G(); }\n}", "2-3 method A.F"),
    ("csharp", "nested", "class A {\n  void F() {\n    int G(int n) { return n; }\n  }\n}", "2-4 method A.F; 3-3 function A.F.G"),
    ("csharp", "unicode", "class A { int Größe() { return 1; } }", "1-1 method A.Größe"),
    ("rust", "closure", "fn f(n: i32) -> impl Fn() -> i32 {\n    move || n\n}", "1-3 function f"),
    ("rust", "operator", "impl Add for A {\n    type Output = A;\n    fn add(self, o: A) -> A { o }\n}", "3-3 function A.add"),
    ("rust", "generic", "fn f<'a, T: Clone>(t: &'a T) -> T\nwhere\n    T: B,\n{\n    t.clone()\n}", "1-6 function f"),
    ("rust", "attribute", "#[test]\n#[ignore]\nfn f() {}", "1-3 function f"),
    ("rust", "nested", "fn f() {\n    fn g() {}\n}", "1-3 function f; 2-2 function f.g"),
    ("rust", "trait", "trait A {\n    fn f(&self);\n    fn g(&self) { self.f() }\n}", "3-3 function A.g"),
    ("rust", "unicode", "fn größe() {}", "1-1 function größe"),
    ("kotlin", "closure", "fun f(n: Int): () -> Int {\n    return { n }\n}", "1-3 function f"),
    ("kotlin", "operator", "class A {\n    operator fun plus(o: A): A = o\n}", "2-2 function A.plus"),
    ("kotlin", "generic", "inline fun <reified T : Any> List<T>.f(): T = first()", "1-1 function List.f"),
    ("kotlin", "annotation", "class A {\n    @Test\n    fun f() {\n    }\n}", "2-4 function A.f"),
    ("kotlin", "nested", "fun f() {\n    fun g() = 1\n}", "1-3 function f; 2-2 function f.g"),
    ("kotlin", "suspend", "suspend fun f(): Int {\n    return g()\n}", "1-3 function f"),
    ("kotlin", "unicode", "fun größe() = 1", "1-1 function größe"),
    ("swift", "closure", "func f(n: Int) -> () -> Int {\n    return { n }\n}", "1-3 function f"),
    ("swift", "overload", "func f(n: Int) {}\nfunc f(s: String) {}", "1-1 function f; 2-2 function f"),
    ("swift", "operator", "extension A {\n    static func + (a: A, b: A) -> A { return a }\n}", "2-2 function A.+"),
    ("swift", "generic", "func f<T: Equatable>(_ t: T) -> T where T: Hashable {\n    return t\n}", "1-3 function f"),
    ("swift", "attribute", "class A {\n    @discardableResult\n    func f() -> Int { 1 }\n}", "2-3 function A.f"),
    ("swift", "nested", "func f() {\n    func g() {}\n}", "1-3 function f; 2-2 function f.g"),
    ("swift", "unicode", "func größe() {}", "1-1 function größe"),
    ("scala", "closure", "object A {\n  def f(n: Int) = () => n\n}", "2-2 method A.f"),
    ("scala", "operator", "class A {\n  def +(o: A): A = o\n  def unary_! : A = this\n}", "2-2 method A.+; 3-3 method A.unary_!"),
    ("scala", "generic", "def f[F[_]: Monad, A <: B](fa: F[A])(implicit x: X): F[A] =\n  fa", "1-2 method f"),
    ("scala", "annotation", "class A {\n  @tailrec\n  final def f(n: Int): Int = f(n)\n}", "2-3 method A.f"),
    ("scala", "nested", "def f = {\n  def g = 1\n  g\n}", "1-4 method f; 2-2 method f.g"),
    ("scala", "unicode", "def größe = 1", "1-1 method größe"),
    ("lua", "closure", "function f(n)\n  return function() return n end\nend", "1-3 function f"),
    ("lua", "nested", "local function f()\n  local function g() end\nend", "1-3 function f; 2-2 function f.g"),
    ("lua", "method", "function A.b:c(n)\n  return n\nend", "1-3 method b.c"),
    ("lua", "table", "return {\n  f = function(n) return n end,\n}", "2-2 function f"),
    ("bash", "both spellings", "f() {\n  g\n}\nfunction h {\n  g\n}", "1-3 function f; 4-6 function h"),
    ("bash", "sub-shell", "f() (\n  cd x\n)", "1-3 function f"),
    ("bash", "nested", "f() {\n  g() { :; }\n}", "1-3 function f; 2-2 function f.g"),
    ("bash", "unicode", "größe() { :; }", "1-1 function größe"),
    ("elixir", "closure", "defmodule A do\n  def f(n), do: fn -> n end\nend", "2-2 function A.f"),
    ("elixir", "clauses", "defmodule A do\n  def f([]), do: 1\n  def f([h | t]) when h > 1 do\n    2\n  end\nend", "2-5 function A.f"),
    ("elixir", "operator", "defmodule A do\n  def a <> b, do: a\nend", "2-2 function A.<>"),
    ("elixir", "macro", "defmodule A do\n  defmacro f(n) do\n    quote do: n\n  end\nend", "2-4 function A.f"),
    ("elixir", "unicode", "defmodule A do\n  def größe, do: 1\nend", "2-2 function A.größe"),
    ("haskell", "closure", "f :: Int -> Int -> Int\nf n = \\m -> n", "1-2 function f"),
    ("haskell", "equations", "f 0 = 1\nf n\n  | n > 1 = 2\n  | otherwise = 3", "1-4 function f"),
    ("haskell", "operator", "(<+>) :: A -> A -> A\na <+> b = a", "1-2 function <+>"),
    ("haskell", "generic", "f :: (Monad m, Show a) => a -> m a\nf = pure", "1-2 function f"),
    ("haskell", "nested", "f n = g n\n  where\n    g m = m", "1-3 function f; 3-3 function f.g"),
    ("haskell", "instance", "instance Show A where\n  show a = b", "2-2 function Show.show"),
    ("haskell", "unicode", "größe höhe = höhe", "1-1 function größe"),
    ("zig", "generic", "fn F(comptime T: type) type {\n    return struct {\n        fn g() void {}\n    };\n}", "1-5 function F; 3-3 function F.g"),
    ("zig", "error", "pub fn f() !void {\n    try g();\n}", "1-3 function f"),
    ("zig", "test", 'test "a b" {\n    try f();\n}', "1-3 test a b"),
    ("sql", "function", "CREATE FUNCTION f(n int) RETURNS int AS $$ SELECT n $$ LANGUAGE sql;", "1-1 function f"),
    ("sql", "with", "CREATE VIEW v AS\nWITH a AS (SELECT 1)\nSELECT * FROM a;", "1-3 view v"),
    ("sql", "unicode", "CREATE TABLE größe (id int);", "1-1 table größe"),
]  # fmt: skip
ERRORS = [f"{language} {what}" for language, what, _, _ in CONSTRUCTS]


@pytest.mark.parametrize(("language", "what", "code", "expected"), CONSTRUCTS, ids=ERRORS)
def test_a_construct_gives_the_functions_that_a_person_sees(language: str, what: str, code: str, expected: str) -> None:
    for source in (code, code + "\n", "\n\n" + code):
        shift = 2 if source.startswith("\n") else 0
        found = [
            f"{d.start_line - shift}-{d.end_line - shift} {d.kind} {d.qualified_name}"
            for d in extract(source.encode(), language)
        ]
        assert found == expected.split("; "), what


def test_every_language_is_looked_at() -> None:
    assert {language for language, *_ in CONSTRUCTS} == set(LANGUAGES)
