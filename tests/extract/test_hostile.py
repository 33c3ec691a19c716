"""Whatever bytes a file holds, every language gives well-formed documents and no exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.extract import LANGUAGES, extract
from ncs.types import FIELDS, Document

DATA = Path(__file__).parents[1] / "data"

NESTED_CODE = {
    "java": ("class A { void f() { new B() { void g() { ", "} }; "),
    "python": ("f(lambda x: ", ")"),
}


def samples(language: str) -> list[bytes]:
    files = [DATA / language / path.name for path in sorted((DATA / language).iterdir()) if path.is_file()]
    assert files
    return [file.read_bytes() for file in files]


def checked(source: bytes, language: str) -> list[Document]:
    """The documents, after a look at what every reader of documents relies on."""
    documents = list(extract(source, language, repository="r", path="p"))
    lines = source.count(b"\n") + 1
    assert len({document.id for document in documents}) == len(documents)
    starts = [document.start_line for document in documents]
    assert starts == sorted(starts)
    for document in documents:
        assert 1 <= document.start_line <= document.end_line <= lines
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
    return documents


every_language = pytest.mark.parametrize("language", LANGUAGES)


@every_language
def test_next_to_nothing_gives_no_documents(language: str) -> None:
    for source in (b"", b"\n", b" ", b"\0", b"\0" * 5000, b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\x80"):
        assert checked(source, language) == [], source


@pytest.mark.slow
@every_language
def test_twenty_thousand_lines_give_every_function(language: str) -> None:
    sample = samples(language)[0] + b"\n"
    times = 20_000 // sample.count(b"\n") + 1
    assert len(checked(sample * times, language)) == times * len(checked(sample, language))


@pytest.mark.slow
@every_language
@pytest.mark.parametrize("unit", [b"x", b"x ", b"1", b'"', b"'", b"#", b"/*", b"@", b"\\", b"\xc3"])
def test_a_line_of_a_megabyte_is_read(language: str, unit: bytes) -> None:
    checked(unit * (1_000_000 // len(unit)), language)


@pytest.mark.slow
@every_language
@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("[", "]"), ("{", "}"), ("a(", ")"), ("-", "")])
@pytest.mark.parametrize("closed", [True, False])
def test_brackets_two_thousand_deep_are_read(language: str, opening: str, closing: str, closed: bool) -> None:
    deep = opening * 2000 + "1" + closing * 2000 * closed
    checked(deep.encode(), language)
    checked(b"\n".join((samples(language)[0], deep.encode())), language)


@pytest.mark.slow
@every_language
@pytest.mark.parametrize("closed", [True, False])
def test_code_nested_five_thousand_deep_is_read(language: str, closed: bool) -> None:
    opening, closing = NESTED_CODE.get(language, ("{", "}"))
    checked((opening * 5000 + closing * 5000 * closed).encode(), language)


def test_python_functions_nested_as_deep_as_python_allows_are_found() -> None:
    source = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(99)) + " " * 99 + "pass\n"
    documents = checked(source.encode(), "python")
    assert [document.name for document in documents[:3]] == ["f0", "f1", "f2"]


@every_language
def test_samples_with_random_bytes_within_do_no_harm(language: str) -> None:
    random_ = random.Random(3)
    for sample in samples(language):
        for _ in range(25):
            broken = bytearray(sample)
            for _ in range(random_.randrange(1, 20)):
                broken[random_.randrange(len(broken))] = random_.choice((0, random_.randrange(256)))
            if bytes(broken[:2]) not in (b"\xff\xfe", b"\xfe\xff"):
                checked(bytes(broken), language)


@every_language
def test_samples_cut_off_anywhere_give_what_is_left(language: str) -> None:
    for sample in samples(language):
        for end in range(0, len(sample), 53):
            checked(sample[:end], language)
        for start in range(0, len(sample), 97):
            checked(sample[start:], language)


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


def test_many_brackets_side_by_side_are_no_depth() -> None:
    assert len(checked(b"class A { void f() { " + b"g(); " * 50_000 + b"} }", "java")) == 1
