"""The compiled reader of trees captures what tree-sitter captures, of every language and of broken files."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from tree_sitter import Language as Grammar
from tree_sitter import Parser

from ncs.extract import LANGUAGES, captures
from ncs.extract.captures import Found, captures_by_query, captures_of, query_of
from ncs.extract.languages import Language
from ncs.extract.opaque import macros
from ncs.extract.patterns import compiled

tree = pytest.importorskip("ncs.extract._tree", reason="the reader of trees was not built")
DATA = Path(__file__).parent / "data"
every_language = pytest.mark.parametrize("language", LANGUAGES)


def samples(language: str) -> list[bytes]:
    names = [*(DATA / language).iterdir(), *(DATA / "documented").iterdir()]
    return [path.read_bytes() for path in sorted(names) if path.parent.name == language or _is(path, language)]


def _is(path: Path, language: str) -> bool:
    return path.suffix in LANGUAGES[language].extensions


def both(row: Language, source: bytes) -> tuple[Found, Found]:
    grammar = Grammar(row.load())
    root = Parser(grammar).parse(source).root_node
    return reader(row)(source, root.id, root.start_byte, root.end_byte, root.descendant_count), captures_by_query(
        row, grammar
    )(source, root)


def reader(row: Language, query: str = ""):  # type: ignore[no-untyped-def]
    grammar = Grammar(row.load())
    names, patterns = compiled(query or query_of(row), grammar)
    return tree.Reader(row.load(), grammar.node_kind_count, grammar.field_count, names, patterns)


@every_language
def test_samples_are_captured_the_same(language: str) -> None:
    for source in samples(language):
        ours, theirs = both(LANGUAGES[language], source)
        assert ours == theirs
        assert len(ours) > 2


@every_language
def test_broken_samples_are_captured_the_same(language: str) -> None:
    row, random_ = LANGUAGES[language], random.Random(5)
    grammar = Grammar(row.load())
    parser, read, by_query = Parser(grammar), reader(row), captures_by_query(row, grammar)
    for sample in samples(language)[:1]:
        for _ in range(20):
            source = bytearray(sample)
            for _ in range(random_.randrange(1, 12)):
                at = random_.randrange(len(source))
                source[at : at + random_.randrange(4)] = random_.choice([b"", b"(", b"}", b"\n", b"x", b'"', b"\xff"])
            root = parser.parse(bytes(source)).root_node
            found = read(bytes(source), root.id, root.start_byte, root.end_byte, root.descendant_count)
            assert (found or {}) == by_query(bytes(source), root)


# what a query says, and what it captures of `class A { int f(A a, int b) { g(); g(1); return h; } void e(); }`
QUERIES = [
    ("(method_declaration name: (identifier) @a)", ["f", "e"]),
    ("(method_declaration name: (identifier) @a body: (_))", ["f"]),
    ("(method_declaration !body name: (identifier) @a)", ["e"]),
    ("(formal_parameters (formal_parameter name: (_) @a) .)", ["b"]),
    ("(formal_parameters . (formal_parameter name: (_) @a))", ["a"]),
    ("(formal_parameters (formal_parameter name: (_) @a) . (formal_parameter))", ["a"]),
    ('((formal_parameters (formal_parameter name: (_) @a)) (#not-eq? @a "a"))', ["b"]),
    ('((formal_parameter type: (_) @_t name: (_) @a) (#any-of? @_t "A" "B"))', ["a"]),
    ('((identifier) @a (#match? @a "^[A-Gg]"))', ["A", "g", "g"]),
    ('((identifier) @a (#not-match? @a "[a-z]"))', ["A"]),
    ('(argument_list "(" . (_) @a)', ["1"]),
    ('(argument_list "(" . ")" @a)', [")"]),
    ("(return_statement _ @a)", ["return", "h", ";"]),
    ("[(return_statement (identifier) @a) (method_invocation name: (identifier) @a)]", ["g", "g", "h"]),
    ("(class_body (method_declaration) . (method_declaration name: (_) @a))", ["e"]),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=[query for query, _ in QUERIES])
def test_a_pattern_captures_what_a_person_reads_in_it(query: str, expected: list[str]) -> None:
    source = b"class A { int f(A a, int b) { g(); g(1); return h; } void e(); }"
    row = LANGUAGES["java"]
    root = Parser(Grammar(row.load())).parse(source).root_node
    found = reader(row, query)(source, root.id, root.start_byte, root.end_byte, root.descendant_count)
    assert [source[start:end].decode() for start, end in found.get("a", [])] == expected


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("(identifier)* @a", "[*] stands"),
        ("(nothing)", "no node nothing"),
        ("(class_body nothing: (_))", "no field nothing"),
        ("(class_body", "its end"),
    ],
)
def test_what_is_not_known_of_a_query_is_named(query: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compiled(query, Grammar(LANGUAGES["java"].load()))


def test_a_tree_that_is_not_what_it_was_said_to_be_is_not_read() -> None:
    row, source = LANGUAGES["java"], b" class A { }"
    root = Parser(Grammar(row.load())).parse(source).root_node
    said = root.id, root.start_byte, root.end_byte, root.descendant_count
    read = reader(row)
    assert read(source, *said) == {"class": [(1, 12)], "class.name": [(7, 8)]}
    for number in (1, 2, 3):
        assert read(source, *said[:number], said[number] + 1, *said[number + 1 :]) is None
    assert read(source[:5], *said) is None  # as if its end lay outside


def test_versions_whose_trees_were_not_looked_at_are_left_to_tree_sitter(monkeypatch: pytest.MonkeyPatch) -> None:
    row, source = LANGUAGES["java"], b"class A { void f() { g(new B()); } }"
    grammar = Grammar(row.load())
    root = Parser(grammar).parse(source).root_node
    known = captures_of(row, grammar)(source, root)
    monkeypatch.setattr(captures, "version", lambda _: "0.99.0")
    monkeypatch.setattr(captures, "_tree", object())  # which has no Reader
    assert captures_of(row, grammar)(source, root) == known
    monkeypatch.setattr(captures, "version", lambda _: "0.26.1")
    with pytest.raises(AttributeError):
        captures_of(row, grammar)


def test_a_grammar_with_other_counts_is_refused() -> None:
    row = LANGUAGES["java"]
    grammar = Grammar(row.load())
    names, patterns = compiled("(identifier) @a", grammar)
    with pytest.raises(ValueError, match="laid out"):
        tree.Reader(row.load(), grammar.node_kind_count, grammar.field_count + 1, names, patterns)
    with pytest.raises(ValueError, match="bounds"):
        tree.Reader(row.load(), grammar.node_kind_count, grammar.field_count, (), patterns)


def test_threads_that_share_a_reader_see_whole_captures() -> None:
    row = LANGUAGES["sql"]  # its literals are asked about in Python
    source = b"CREATE FUNCTION f(n int) RETURNS int AS 'SELECT n' LANGUAGE sql;\n" * 50
    grammar = Grammar(row.load())
    told = captures_of(row, grammar)
    wanted = told(source, Parser(grammar).parse(source).root_node)
    wrong: list[Found] = []

    def work() -> None:
        parser = Parser(grammar)
        for _ in range(20):
            wrong.extend([found] if (found := told(source, parser.parse(source).root_node)) != wanted else [])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(wanted["function"]) == 50


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        (b"FMT_API void f();", [(0, 7)]),
        (b"  static LIB_INLINE(x) auto f() -> int;", [(9, 22)]),
        (b"int f() const LOCKS_IT { }", [(13, 22)]),
        (b"class LIB_EXPORT A { };", [(6, 16)]),
        (b"if CONSTEXPR (a) { }", [(3, 12)]),
        (b"DEFINE_IT(a, b);", [(0, 16)]),
        (b"subclass LIB_EXPORT A;", []),
        (b"x = MAX_SIZE;", []),
    ],
)
def test_macros_where_the_grammar_knows_none_are_hidden(line: bytes, hidden: list[tuple[int, int]]) -> None:
    spans, surely = macros(line)
    assert spans == hidden
    assert surely == (b" void " in line)
    assert macros(b"\n\n" + line)[0] == [(start + 2, end + 2) for start, end in hidden]


def test_where_macros_are_sure_to_be_errors_the_parser_does_err_over_them() -> None:
    parser = Parser(Grammar(LANGUAGES["cpp"].load()))
    for declared in ("namespace a { }", "class A { };", "template <class T> void f();", "int f();"):
        for before in ("LIB_NAME", "LIB_NAME(x)", "static LIB_NAME", "struct X {\n  LIB_NAME LIB_OTHER"):
            source = f"{before} {declared}\n".encode()
            assert macros(source)[1], source
            assert parser.parse(source).root_node.has_error, source


def test_a_name_that_is_missing_at_the_start_is_captured_by_neither() -> None:
    ours, theirs = both(LANGUAGES["cpp"], b" <typename T, class U = int>\nclass A : public B<T> {\n};\nint f() {}\n")
    assert ours == theirs
    assert (0, 0) not in ours.get("types", [])
