"""Every row of LANGUAGES: what a person reads in its sample, and what any bytes of a file may do to it.

tests/data/expected/<language>.txt, checked by hand: the sample's name, then a line `first-last kind qualified_name` for
every document, and below some of them all their fields, as `field: word | word`.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput, MissingExtra, SourceError
from ncs.extract import LANGUAGES, Language, extract, readers
from ncs.index import Index
from ncs.types import FIELDS, Document
from tests.gitrepo import write

DATA = Path(__file__).parents[1] / "data"
NESTED_CODE = {"java": ("class A { void f() { new B() { void g() { ", "} }; "), "python": ("f(lambda x: ", ")")}

# What the samples lack: a construct, and its functions as `first-last kind qualified_name`. Those of C++, C#,
# Kotlin and SQL are misread where they are not masked.
CONSTRUCTS = [
    ("c", "char *(*f(int n))(void) {\n  return 0;\n}\nint **g(void) { return 0; }", "1-3 function f; 4-4 function g"),
    (
        "cpp",
        "struct A {\n  LIB_CONSTEXPR explicit A(int n) : n_(n) {}\n  LIB_INLINE ~A() { f(); }\n};",
        "2-2 function A.A; 3-3 method A.~A",
    ),
    ("cpp", "class LIB_EXPORT A : B {\n public:\n  A() : n_(0) {}\n};", "3-3 function A.A"),
    ("cpp", "struct LIB_EXPORT(4) A {\n  void f() {}\n};", "2-2 method A.f"),
    ("cpp", "struct A {\n  int f() const\n      LOCKS_EXCLUDED(mutex_) { return 1; }\n};", "2-3 method A.f"),
    ("cpp", "void f() {\n  if CONSTEXPR20 (a()) {\n  }\n}", "1-4 function f"),
    ("cpp", 'LIB_DECLARE(int, "");\nstatic A f(int n) { return n; }', "2-2 function f"),
    (
        "cpp",
        "namespace n {\nclass A : B {\n  LIB_DEF(B, A)\n};\nclass C : B {\n  LIB_DEF(B, C)\n  LIB_INIT(C)\n};"
        "\nclass D : B {\n  LIB_INIT(D)\n  static D f() { return D(1); }\n};\n}",
        "11-11 method n.D.f",
    ),
    (
        "csharp",
        "class A : B\n#if X\n  , C\n#endif\n{\n  void F()\n#if X\n  { g(); }\n#else\n  ;\n#endif\n}",
        "6-8 method A.F",
    ),
    ("kotlin", "class A\n// b\ninternal actual constructor(n: Int) {\n  fun f() {}\n}", "4-4 function A.f"),
    ("lua", "function A.b:c(n)\n  return n\nend", "1-3 method b.c"),
    (
        "sql",
        "CREATE FUNCTION f() RETURNS void AS $$ return { } $$ LANGUAGE plv8;\nCREATE TABLE t (a int);",
        "1-1 function f; 2-2 table t",
    ),
    ("scala", "package object a {\n  def f(n: Int) = n\n}", "2-2 method a.f"),
    ("swift", "extension A {\n    static func + (a: A, b: A) -> A { return a }\n}", "2-2 function A.+"),
    ("tsx", "@observer\nclass A extends B {\n  @action\n  f() { return <b />; }\n}", "3-4 method A.f"),
    ("typescript", "function f(a: string): void;\nfunction f(a: any) {\n  g(a);\n}", "1-4 function f"),
    (
        "typescript",
        "class A {\n  read(n: number): string;\n  read(n: string): string;\n  read(n: any) {\n    f(n);\n  }\n}\n"
        "export function g(a: string): void;\nexport function g(a: any) {\n  f(a);\n}\n",
        "4-6 method A.read; 8-11 function g",
    ),
    (
        "typescript",
        "export function g(a: string): void;\n// @__NO_SIDE_EFFECTS__\nexport function g(a: any) {\n  f(a);\n}\n"
        "function h(a: string): void;\n/** Of the implementation. */\nfunction h(a: any) {\n  f(a);\n}\n",
        "1-5 function g; 8-10 function h",
    ),
]

every_language = pytest.mark.parametrize("language", sorted(LANGUAGES))


def expected(language: str) -> list[str]:
    return (DATA / "expected" / f"{language}.txt").read_text("utf-8").splitlines()


def sample(language: str) -> bytes:
    return (DATA / language / expected(language)[0]).read_bytes()


def assert_sound(documents: list[Document], source: bytes, language: str) -> None:
    """What every reader of documents relies on."""
    assert len({document.id for document in documents}) == len(documents)
    assert [d.start_line for d in documents] == sorted(d.start_line for d in documents)
    for document in documents:
        assert 1 <= document.start_line <= document.end_line <= source.count(b"\n") + source.count(b"\r") + 1
        assert document.language == language
        assert document.kind
        assert document.name
        assert document.qualified_name.endswith(document.name)
        assert document.code
        assert len(document.digest) == 16
        assert set(document.words) <= set(FIELDS)
        for words in document.words.values():
            assert isinstance(words, tuple)
            assert words
            assert all(isinstance(word, str) for word in words)


def checked(source: bytes, language: str) -> list[Document]:
    documents = list(extract(source, language, repository="r", path="p"))
    assert_sound(documents, source.replace(b"\r", b""), language)
    return documents


@every_language
def test_every_function_of_the_sample_stands_where_a_person_sees_it_with_its_words_in_their_fields(
    language: str,
) -> None:
    documents = {
        f"{d.start_line}-{d.end_line} {d.kind} {d.qualified_name}": d for d in checked(sample(language), language)
    }
    by_place: dict[str, dict[str, str]] = {}
    for line in expected(language)[1:]:
        if line[0] == " ":
            field, _, text = line.strip().partition(": ")
            by_place[list(by_place)[-1]][field] = text
        else:
            by_place[line] = {}
    assert list(documents) == list(by_place)
    assert len(list(filter(None, by_place.values()))) > 1
    for place, fields in by_place.items():
        words = {field: words for field, words in documents[place].words.items() if field not in ("name", "path")}
        joined = {field: " | ".join(words).replace("\n", "\\n").strip() for field, words in words.items()}
        assert fields in ({}, joined), place


@pytest.mark.parametrize(("language", "code", "expected"), CONSTRUCTS)
def test_a_construct_gives_the_functions_that_a_person_sees(language: str, code: str, expected: str) -> None:
    documents = checked(code.encode(), language)
    assert [f"{d.start_line}-{d.end_line} {d.kind} {d.qualified_name}" for d in documents] == expected.split("; ")


@every_language
def test_line_ends_byte_order_marks_and_encodings_change_nothing(language: str) -> None:
    source = sample(language)
    documents = checked(source, language)
    for same in (source.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + source, source.decode().encode("utf-16")):
        assert list(extract(same, language, repository="r", path="p")) == documents
    latin = checked(source.decode().encode("latin-1", "replace"), language)
    assert {d.name for d in documents if d.name.isascii()} - {d.name for d in latin} <= {"höhe"}


@every_language
def test_an_error_in_the_middle_loses_its_neighbors_at_most(language: str) -> None:
    lines = sample(language).split(b"\n")
    documents = checked(sample(language), language)
    middle = documents[len(documents) // 2].end_line  # 1-based: the line below it
    broken = b"\n".join([*lines[:middle], b"", b") = ] , ;; @@ (", b"", *lines[middle:]])
    names = {document.name for document in documents}
    assert len(names & {document.name for document in checked(broken, language)}) >= len(names) / 2


@every_language
def test_next_to_nothing_gives_no_documents(language: str) -> None:
    for source in (b"", b"\n", b" ", b"\0", b"\0" * 5000, b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\x80"):
        assert checked(source, language) == [], source


@every_language
def test_samples_with_random_bytes_within_or_cut_off_anywhere_do_no_harm(language: str) -> None:
    random_ = random.Random(3)
    for path in sorted((DATA / language).iterdir()):
        source = path.read_bytes()
        for _ in range(25):
            broken = bytearray(source)
            for _ in range(random_.randrange(1, 20)):
                broken[random_.randrange(len(broken))] = random_.choice((0, random_.randrange(256)))
            if bytes(broken[:2]) not in (b"\xff\xfe", b"\xfe\xff"):
                checked(bytes(broken), language)
        for at in range(0, len(source), 97):
            checked(source[:at], language)
            checked(source[at:], language)


@pytest.mark.slow
@every_language
def test_thousands_of_lines_give_every_function(language: str) -> None:
    source = sample(language) + b"\n"
    times = 4_000 // source.count(b"\n") + 1
    assert len(checked(source * times, language)) == times * len(checked(source, language))


@pytest.mark.slow
@every_language
@pytest.mark.parametrize("unit", [b"x", b"x ", b"1", b'"', b"'", b"#", b"/*", b"@", b"\\", b"\xc3"])
def test_a_line_of_a_megabyte_is_read(language: str, unit: bytes) -> None:
    checked(unit * (1_000_000 // len(unit)), language)


@pytest.mark.slow
@every_language
@pytest.mark.parametrize("closed", [True, False])
def test_brackets_two_thousand_deep_and_code_five_thousand_deep_are_read(language: str, closed: bool) -> None:
    nested = NESTED_CODE.get(language, ("{", "}"))
    for opening, closing, depth in (
        *((*pair, 2000) for pair in (("(", ")"), ("[", "]"), ("{", "}"), ("a(", ")"), ("-", ""))),
        (*nested, 5000),
    ):
        deep = (opening * depth + "1" + closing * depth * closed).encode()
        checked(deep, language)
        checked(b"\n".join((sample(language), deep)), language)


@pytest.mark.parametrize(
    "source",
    [
        *(unit * (1_000_000 // len(unit)) for unit in (b"(", b"{", b"[", b")", b"{ (")),
        b"{(" * 250_000 + b")}" * 250_000,
    ],
    ids=["(", "{", "[", ")", "{ (", "{()}"],
)
def test_brackets_so_deep_that_the_parser_would_hang_or_crash_are_refused(source: bytes) -> None:
    with pytest.raises(SourceError, match=r"x\.java is no program: over 20,000 brackets are open"):
        list(extract(source, "java", path="x.java"))
    assert len(checked(b"class A { void f() { " + b"g(); " * 20_001 + b"} }", "java")) == 1  # side by side


def test_reading_java_imports_no_other_grammar() -> None:
    code = (
        "import sys; from ncs.extract import extract; list(extract(b'class A { void a() {} }', 'java'));"
        "print(*sorted(name for name in sys.modules if name.startswith('tree_sitter_') and '.' not in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["tree_sitter_java"]


def test_a_grammar_that_is_not_installed_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Language("cobol", (".cob",), "tree_sitter_cobol", ("function",), ("*",))
    monkeypatch.setitem(LANGUAGES, "cobol", missing)
    with pytest.raises(
        MissingExtra, match=r"cobol .* tree_sitter_cobol: pip install 'neural-code-search\[languages\]'"
    ):
        missing.load()


@pytest.mark.slow
def test_files_without_their_grammar_are_counted_and_noted_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rust = "/// Hides it.\npub fn hide(view: &View) -> bool {\n    view.close()\n}\n"
    sources = write(tmp_path / "sources", {"a.rs": rust, "b.zig": "fn show() void { hide(); }\n"})
    monkeypatch.setattr(readers, "is_installed", lambda language: language not in ("rust", "zig"))
    install = "pip install 'neural-code-search[languages]'"
    with pytest.raises(BadInput, match=r"1 rust without a grammar, 1 zig .*; files \(1 of rust, 1 of zig\) were left"):
        Index.build(sources, tmp_path / "none", config=BuildConfig(texts=False), workers=1)
    with Index.build(sources, tmp_path / "index", workers=1) as as_text:
        assert as_text.description.counts["text_files"] == {"rust": 1, "zig": 1}
        assert [note for note in as_text.description.notes if "languages" in note] == [
            f"files (1 of rust, 1 of zig) were read as plain text; to read their functions, {install}"
        ]
        hit = as_text.search("hide", 1)[0].document
    assert (hit.name, hit.kind, hit.language, hit.start_line, hit.end_line) == ("hide", "definition", "rust", 2, 4)
    assert hit.words["doc"] == ("Hides it.",)
    (sources / "A.java").write_text("class A { void hide() { show(); } void show() { hide(); } }\n")
    with Index.build(sources, tmp_path / "index", config=BuildConfig(texts=False), workers=1) as index:
        about = index.description
    assert about.counts["skipped"] == {"rust without a grammar": 1, "zig without a grammar": 1}
    assert [note for note in about.notes if "languages" in note] == [
        f"files (1 of rust, 1 of zig) were left out; to read them, {install}"
    ]
