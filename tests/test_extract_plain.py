"""Java read by its tokens gives the documents that the query gives, and leaves to it what tokens do not tell."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ncs.extract import treesitter
from ncs.extract.languages import LANGUAGES
from ncs.types import Document

compiled = pytest.importorskip("ncs.extract._java", reason="the reader of tokens was not built")
SAMPLES = Path(__file__).parent / "data" / "java"

TYPES = """\
package a.b;
import java.util.*;
@GET("x") class K<URL, V extends URI & IO> extends a.b.LinkedList<URL> implements X1, Y1<URI> {
  URL[] urls = {null}, more[]; static final int MAX = 3, MIN = MAX << 2;
  <KEY, VAL extends Map<KEY, ? super URL>> KEY get(final URL url, URI[] uris, VAL[]... rest) throws IOE, java.io.IOX {
    URL a = (URL) url, b = (java.net.URL) (url), c[] = (URL[]) x;
    java.util.List<URL> l = new java.util.ArrayList<URL>(MAX); List<? extends URI>[] g = new List[MAX];
    for (int i = 0; i < MAX; i++) { if (a < MIN && c > MAX || (x) * 1 > (MAX) * 2) continue; }
    for (URL u : urls) { URL.class.cast(u); int[].class.cast(u); java.net.URL.class.cast(u); }
    try (IO io = open()) { } catch (final IOE | java.io.IOX e) { throw e; }
    if (a instanceof URL && !(b instanceof final URI[] uri)) return this.<URL>of(a).x; this.new IN(); a.new IN<URL>();
    Supplier<URL> s = URL::new; s = List<URL>::new; f = URL::of; f = this::<URI>of; f = int[]::new; f = b.URL::new;
    f = x -> x.y; f = (x, MAX) -> { return x; }; f = (URL x, final int... y) -> (URI) x; f = () -> (A & B) c;
    outer: do { @Sup("x") final URL local = ~(MAX) ^ -(x); var v = MAX >= MIN ? a : b; } while (a != b);
    switch (a) { case MAX: break; case 'x': default: Object o = (Runnable & IO) () -> MAX; }
    synchronized (a) { assert (x) != null : "no"; } return (x) == null ? (KEY) null : (x).y;
  }
}
"""
NESTED = '''\
public enum E implements I { @Old A(1) { int a(URL u) { return 1; } }, B { void b() { } }, C(MAX), D;
  static { int x; } E(int i) { } E() { } void m() { enum L { P(1) { void p() { } }, Q; void q() { } } }
  enum Inner { R; int r(int x[]) { return x[0]; } class Deep { Deep(int... x) { } void d() { } } } ; void last() { } }
@interface An { int value() default 1; String[] names() default {"a", "b"}; class In { void in() { } } }
interface I { default void d(URL u) { } void abstracted(int x); static <T> T s(T t) { return t; } class C { } }
class A { { int instance; } Object o = new Object() { void o() { } int p = 1; }, q = f(new B<URL>(x) { B b() {
    return new B() { void c() { class Local<T> { Local() { } void l() { Runnable r = () -> {
    new C() { void z() { } }; }; } } } }; } });
  @An({1, 2}) @a.b.Other(x = @An) <T> void g(@An(1) final Map<K, V> m, @An URL[] n, List<int[]>[] o) { /* in */ }
  /** Javadoc. */ native int n(int x); // end
  String s() { return "a\\"b" + 'c' + '"' + "//no" + "\\u0041" + """
    text "with" quotes \\""" end""" + 0x1F + 1.5e-3f + .5 + 1_000L; } }
'''
LEFT = {
    "a record": "record P(int x) { }",
    "arrows": "class A { int f(int x) { return switch (x) { case 1 -> 2; default -> 3; }; } }",
    "a cast or a sum": "class A { int f(int x) { return (x) - 1; } }",
    "generics or a comparison": "class A<K> { void f() { MAX<K> x; } }",
    "letters beyond ASCII": "class A { int größe() { return 1; } }",
    "an annotation within a type": "class A { List<@N String> f() { return null; } }",
    "methods outside of classes": "void main() { }",
    "a keyword as a name": "class A { void f() { Enumeration enum = x; } }",
}


def read(source: bytes) -> list[Document]:
    return treesitter.read(source, LANGUAGES["java"], "r", "A.java")[0]


def by_query(source: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Document]:
    with monkeypatch.context() as without:
        without.setattr(treesitter, "plain", lambda *_: None)
        return read(source)


@pytest.mark.parametrize("source", [TYPES, NESTED], ids=["types", "nested"])
def test_tokens_tell_what_the_query_tells(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled.tokens(source.encode()) is not None
    assert read(source.encode()) == by_query(source.encode(), monkeypatch) != []


def test_samples_are_read_the_same_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [path.read_bytes() for path in sorted(SAMPLES.glob("*.java"))]
    assert len(sources) > 1
    for source in sources:
        assert read(source) == by_query(source, monkeypatch)


def test_types_parameters_and_calls_are_told_from_constants_and_variables() -> None:
    (f,) = read(b"class A { URL f(URI x, int MAX) throws IO { y = (URL) x < LIMIT ? new GET<ID>(MAX) : Q::r; } }")
    assert f.words["types"] == ("URL", "URI", "IO", "URL", "ID", "Q")
    assert f.words["enums"] == ("LIMIT", "MAX")
    assert f.words["parameters"] == ("x", "MAX")
    assert f.words["calls"] == ("GET", "r")


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_what_tokens_do_not_tell_is_left_to_the_query(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled.tokens(source.encode()) is None
    assert read(source.encode()) == by_query(source.encode(), monkeypatch)


def test_a_file_with_errors_is_left_to_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    source = b"class A { void f() { URL x = ; } void g() { } }"
    assert [document.name for document in read(source)] == ["f", "g"]
    assert read(source) == by_query(source, monkeypatch)


def test_any_bytes_are_read_or_left() -> None:
    draw = random.Random(1)
    for _ in range(300):
        pieces = draw.choices(TYPES.split(" ") + list("(){}[]<>.,;@\"'/*\\\0") + ["new", "::", "case", "\n"], k=60)
        found = compiled.tokens(" ".join(pieces).encode())
        assert found is None or len(found) == 2


def test_many_nested_comparisons_take_no_time_that_grows_with_the_square() -> None:
    assert compiled.tokens(b"class A { int f() { return " + b"a<" * 200_000 + b"b; } }") is None
