"""The compiled loops of extraction do what those in Python do, on any bytes and on real files."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.extract import bytewise, documents, layout, words
from ncs.extract.languages import LANGUAGES

compiled = pytest.importorskip("ncs.extract._words", reason="the compiled loops were not built")
compiled_documents = pytest.importorskip("ncs.extract._documents", reason="the compiled loops were not built")
compiled_layout = pytest.importorskip("ncs.extract._layout", reason="the compiled loops were not built")
LIBRARY = Path(random.__file__).parent

names_and_tags = st.lists(
    st.sampled_from([b"a", b"Foo", b"MAX_SIZE", b"_x", b"9", b"$", b"if", b"\xc3\xa9t\xc3\xa9", b"\xff", b" ", b"  "])
    | st.sampled_from([b"\1", b"\2", b"\3", b"\4", b"\5", b"\6"])
).map(b"".join)
code = st.lists(
    st.sampled_from(
        [b"\n    ", b"\n", b"\n\t", b" ", b"foo", b"(", b" (", b"\xc3\xa9", b"\xff", b"\0", b"\r\n", b"\x0b"]
    )
).map(b"".join)


def both(language: str) -> tuple[words.Names, words.Names]:
    row = LANGUAGES[language]
    return compiled.Names(words.place_of(row), row.ignored), words.NamesInPython(words.place_of(row))


@given(names_and_tags, st.data())
def test_names_of_any_range_are_the_same(tagged: bytes, data: st.DataObject) -> None:
    tagged += b" "
    start = data.draw(st.integers(0, len(tagged)))
    end = data.draw(st.integers(start, len(tagged)))
    fast, slow = both("java")
    assert fast(tagged, start, end) == slow(tagged, start, end)
    assert list(fast(tagged, start, end)) == list(slow(tagged, start, end))


def test_names_go_to_the_field_that_their_tag_or_case_says() -> None:
    tagged = b"own\5 run\1Foo\2 x\3 MAX if\1own\5 List \xc3\xa9t\xc3\xa9 Deep\4 9 "
    for names in both("java"):
        found = names(tagged, 0, len(tagged))
        assert found == {
            "calls": ("run",),
            "enums": ("MAX", "Deep"),
            "identifiers": ("été", "own"),
            "types": ("Foo", "List"),
            "parameters": ("x",),
        }


def test_more_spellings_than_are_remembered_are_all_found() -> None:
    many = [f"name{number}" for number in range(450_000)]
    fast, _ = both("python")
    for first in range(0, len(many), 150_000):
        tagged = " ".join(many[first : first + 150_000]).encode() + b" "
        assert fast(tagged, 0, len(tagged)) == {"identifiers": tuple(many[first : first + 150_000])}


@given(code, st.booleans(), st.lists(st.tuples(st.integers(1, 6), st.lists(st.integers(1, 40)))))
def test_tags_are_set_at_the_same_places(source: bytes, calls: bool, marks: list[tuple[int, list[int]]]) -> None:
    letters = words.LETTERS_AND_CALLS if calls else words.LETTERS
    spans = [(tag, [(end - 1, end) for end in ends if end <= len(source)]) for tag, ends in marks]
    fast = compiled.tagged(bytearray(source), letters, spans)
    assert fast == words.tagged_in_python(bytearray(source), letters, spans)


@given(code, st.data())
def test_code_is_cut_the_same(source: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, len(source)))
    without = source.replace(b"foo", b"\0\0\0")
    assert compiled_documents.cut(source, without, start, end) == documents.cut_in_python(source, without, start, end)


def test_code_of_real_files_is_cut_the_same_from_every_line() -> None:
    for path in sorted(LIBRARY.glob("*.py"))[:40]:
        source = path.read_bytes()
        at = 0
        for line in source.splitlines(keepends=True)[:400]:
            start = at + len(line) - len(line.lstrip())
            end = min(len(source), start + 900)
            assert compiled_documents.cut(source, source, start, end) == documents.cut_in_python(
                source, source, start, end
            )
            at += len(line)


layouts = st.lists(
    st.sampled_from([b"\n", b"\n    ", b"\n\t", b"\n        ", b" ", b"\r", b"\0\0", b"\\\n", b"\\", b"x", b"if a:"])
    | st.sampled_from([b'"', b"'", b'"""', b"'''", b"(", b")", b"[", b"]", b"{", b"}", b'\\"', b"#", b"\x0c"])
).map(b"".join)


@given(layouts)
def test_layout_is_marked_the_same(source: bytes) -> None:
    assert compiled_layout.marked(source) == layout.marked_in_python(source)


def test_layout_of_real_files_and_of_deep_nesting_is_marked_the_same() -> None:
    deep = b"\n".join(b" " * depth + b"if a:" for depth in range(300)) + b"\nb\n"
    for source in [deep, *(path.read_bytes() for path in sorted(LIBRARY.glob("*.py"))[:60])]:
        assert compiled_layout.marked(source) == layout.marked_in_python(source)


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 99)])
def test_ranges_outside_the_code_are_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        compiled_documents.cut(b"abc", b"abc", start, end)
    with pytest.raises(ValueError, match="outside"):
        both("java")[0](b"abc ", start, end)


def test_what_is_no_tag_or_node_is_an_error_and_no_crash() -> None:
    with pytest.raises(ValueError, match="outside"):
        compiled.tagged(b"abc", words.LETTERS, [(1, [(8, 9)])])
    with pytest.raises(ValueError, match="256"):
        compiled.tagged(b"abc", b"abc", [])
    with pytest.raises(ValueError, match="outside"):
        compiled.tagged(b"abc", words.LETTERS, [(1, [object()])])
    with pytest.raises(ValueError, match="list"):
        compiled.Names(lambda spelling: (99, "x"))(b"abc ", 0, 4)
    with pytest.raises(ZeroDivisionError):
        compiled.Names(lambda spelling: 1 // 0)(b"abc ", 0, 4)


@pytest.mark.slow
def test_without_the_compiled_loops_the_documents_are_the_same() -> None:
    script = """
import sys
for name in ("_words", "_documents", "_layout", "_tree") if sys.argv[1] == "python" else ():
    sys.modules[f"ncs.extract.{name}"] = None
from pathlib import Path
from hashlib import sha256
from ncs.extract import extract, words
assert (words._words is None) == (sys.argv[1] == "python")
for path in sys.argv[2:]:
    for document in extract(Path(path).read_bytes(), "python", path=path, outside=True):
        print(document.id, sha256(repr(document).encode("utf-8", "replace")).hexdigest())
"""
    paths = [str(path) for path in sorted(LIBRARY.glob("*.py"))[:60]]
    runs = [
        subprocess.run([sys.executable, "-c", script, how, *paths], capture_output=True, text=True, check=True).stdout
        for how in ("compiled", "python")
    ]
    assert runs[0] == runs[1]
    assert runs[0].count("\n") > 500


@given(code, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40))))
def test_ranges_are_blanked_the_same(source: bytes, ranges: list[tuple[int, int]]) -> None:
    spans = [(min(span), max(span)) for span in ranges if max(span) <= len(source)]
    for blank in (b"\0", b" "):
        assert compiled.blanked(source, spans, blank) == bytewise.blanked_in_python(source, spans, blank)
    with pytest.raises(ValueError, match="outside"):
        compiled.blanked(source, [(0, len(source) + 1)], b" ")
