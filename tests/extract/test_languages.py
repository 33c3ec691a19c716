"""Every row of LANGUAGES: what a person reads in its sample, and what any file may do to it.

tests/data/expected/<language>.txt, checked by hand: the sample's name, then a line `first-last kind qualified_name` for
every document, and below some of them all their fields, as `field: word | word`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tree_sitter import Language as Grammar
from tree_sitter import Parser, Query, QueryCursor

from ncs.config import BuildConfig
from ncs.errors import BadInput, MissingExtra
from ncs.extract import LANGUAGES, extract, readers
from ncs.extract import languages as rows
from ncs.index import Index
from ncs.types import Document

DATA = Path(__file__).parents[1] / "data"
EXPECTED = DATA / "expected"

every_language = pytest.mark.parametrize("language", sorted(LANGUAGES))


def sample(language: str) -> tuple[str, bytes]:
    name = (EXPECTED / f"{language}.txt").read_text("utf-8").split("\n")[0]
    return name, (DATA / language / name).read_bytes()


def read(source: bytes, language: str) -> list[Document]:
    return list(extract(source, language, repository="r", path=sample(language)[0]))


def expected(language: str) -> list[tuple[str, dict[str, str]]]:
    """Place lines, and the fields that stand below them."""
    places: list[tuple[str, dict[str, str]]] = []
    for line in (EXPECTED / f"{language}.txt").read_text("utf-8").splitlines()[1:]:
        if line[0] == " ":
            field, _, words = line.strip().partition(": ")
            places[-1][1][field] = words
        else:
            places.append((line, {}))
    return places


def place(document: Document) -> str:
    return f"{document.start_line}-{document.end_line} {document.kind} {document.qualified_name}"


@every_language
def test_every_function_of_the_sample_stands_where_a_person_sees_it(language: str) -> None:
    assert [place(document) for document in read(sample(language)[1], language)] == [
        line for line, _ in expected(language)
    ]


@every_language
def test_the_words_of_some_functions_are_in_their_fields(language: str) -> None:
    looked_at = 0
    for document, (_, fields) in zip(read(sample(language)[1], language), expected(language), strict=True):
        if fields:
            looked_at += 1
            words = {
                field: " | ".join(words) for field, words in document.words.items() if field not in ("name", "path")
            }
            assert {field: text.replace("\n", "\\n").strip() for field, text in words.items()} == fields, document.name
    assert looked_at > 1


@every_language
def test_windows_line_ends_and_a_byte_order_mark_change_nothing(language: str) -> None:
    source = sample(language)[1]
    unix = read(source, language)
    for other in (source.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + source):
        assert read(other, language) == unix


@every_language
def test_latin_1_keeps_names_in_ascii(language: str) -> None:
    name, source = sample(language)
    latin = source.decode().encode("latin-1", "replace")
    wanted = [document.name for document in read(source, language) if document.name.isascii()]
    assert set(wanted) - {document.name for document in read(latin, language)} <= {"höhe"}, name


@every_language
def test_an_error_in_the_middle_loses_its_neighbours_at_most(language: str) -> None:
    lines = sample(language)[1].split(b"\n")
    whole = {document.name for document in read(sample(language)[1], language)}
    documents = read(sample(language)[1], language)
    middle = documents[len(documents) // 2].end_line  # 1-based: the line below it
    broken = b"\n".join([*lines[:middle], b"", b") = ] , ;; @@ (", b"", *lines[middle:]])
    left = {document.name for document in read(broken, language)}
    assert len(whole & left) >= len(whole) / 2


@every_language
def test_captures_are_those_of_whole_matches(language: str) -> None:
    """tree-sitter may give away captures of a pattern that fails later on; names would slip to other functions."""
    row = LANGUAGES[language]
    grammar = Grammar(row.load())
    folder = Path(rows.__file__).parent
    query = Query(grammar, "\n".join((folder / f"{name}.scm").read_text("utf-8") for name in row.queries))
    root = Parser(grammar).parse(sample(language)[1]).root_node
    captures = {
        what: sorted(node.byte_range for node in nodes) for what, nodes in QueryCursor(query).captures(root).items()
    }
    matches: dict[str, list[tuple[int, int]]] = {}
    for _, found in QueryCursor(query).matches(root):
        for what, nodes in found.items():
            matches.setdefault(what, []).extend(node.byte_range for node in nodes)
    for what in captures.keys() | matches.keys():
        assert sorted(set(captures.get(what, []))) == sorted(set(matches.get(what, []))), what
    for kind in (*row.kinds, "class", "scope"):
        assert captures.get(kind, []) == sorted(matches.get(kind, [])), kind
        assert len(captures.get(kind, [])) == len(set(captures.get(kind, []))), kind


def test_reading_java_imports_no_other_grammar() -> None:
    code = (
        "import sys; from ncs.extract import extract; list(extract(b'class A { void a() {} }', 'java'));"
        "print(*sorted(name for name in sys.modules if name.startswith('tree_sitter_') and '.' not in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["tree_sitter_java"]


def test_a_grammar_that_is_not_installed_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = rows._row("cobol", ".cob", "tree_sitter_cobol", "function", ("*",))
    monkeypatch.setattr(rows, "LANGUAGES", {**LANGUAGES, "cobol": missing})
    with pytest.raises(
        MissingExtra, match=r"cobol .* tree_sitter_cobol: pip install 'neural-code-search\[languages\]'"
    ):
        missing.load()


@pytest.mark.slow
def test_files_without_their_grammar_are_counted_and_noted_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "a.rs").write_text("fn hide() { show(); }\n")
    (sources / "b.rs").write_text("fn show() { hide(); }\n")
    (sources / "c.zig").write_text("fn show() void { hide(); }\n")
    monkeypatch.setattr(readers, "installed", lambda language: language not in ("rust", "zig"))
    with pytest.raises(
        BadInput, match=r"2 rust without a grammar, 1 zig .*; files \(2 of rust, 1 of zig\) were left out"
    ):
        Index.build(sources, tmp_path / "none", config=BuildConfig(texts=False), workers=1)
    (sources / "A.java").write_text("class A { void hide() { show(); } void show() { hide(); } }\n")
    about = Index.build(sources, tmp_path / "index", config=BuildConfig(texts=False), workers=1).description
    assert about.counts["skipped"] == {"rust without a grammar": 2, "zig without a grammar": 1}
    assert [note for note in about.notes if "languages" in note] == [
        "files (2 of rust, 1 of zig) were left out; to read them, pip install 'neural-code-search[languages]'"
    ]


@pytest.mark.slow
def test_without_their_grammar_files_are_read_as_text_and_one_note_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.rs").write_text("/// Hides it.\npub fn hide(view: &View) -> bool {\n    view.close()\n}\n")
    (tmp_path / "b.kt").write_text("fun show(view: View) {\n    view.open()\n    view.draw()\n}\n")
    monkeypatch.setattr(readers, "installed", lambda language: language not in ("rust", "kotlin"))
    with Index.build(tmp_path, tmp_path / "index", config=BuildConfig(), workers=1) as built:
        assert built.description.counts["text_files"] == {"kotlin": 1, "rust": 1}
        assert [note for note in built.description.notes if "languages" in note] == [
            "files (1 of kotlin, 1 of rust) were read as plain text; to read their functions,"
            " pip install 'neural-code-search[languages]'"
        ]
        hit = built.search("hide", 1)[0].document
    assert (hit.name, hit.kind, hit.language, hit.start_line, hit.end_line) == ("hide", "definition", "rust", 2, 4)
    assert hit.words["doc"] == ("Hides it.",)
