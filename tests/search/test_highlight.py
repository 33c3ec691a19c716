"""Which words of a question stand in a hit, and which lines are shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from ncs.extract import extract
from ncs.search.highlight import EXCERPT_LINES, excerpt, matched_words
from ncs.types import Document
from tests.linear import GROWTH, growth


def document(**words: tuple[str, ...]) -> Document:
    return Document("r/A.java:1", "r", "A.java", 1, 3, "java", "method", "f", "A.f", words, "int f() {}")  # type: ignore[arg-type]


def test_matched_words_are_the_questions_own_by_stem_in_its_order() -> None:
    hit = document(name=("hideSoftKeyboard",), calls=("getSystemService",), doc=("Hides it.",))
    assert matched_words(hit, "how to hide the keyboards programmatically, softly") == ["hide", "keyboards", "softly"]
    assert matched_words(hit, "getting a service") == ["getting", "service"]
    assert matched_words(hit, "nothing here") == []
    assert matched_words(document(), "int f") == ["int", "f"]  # without stored words: of the code and the name


@pytest.mark.parametrize("lines", [1, 5, 17, 18, 40, 500])
@pytest.mark.parametrize("marked", [[], [0], [3], [20, 24], list(range(0, 500, 7))])
def test_an_excerpt_starts_at_the_signature_stays_short_and_shows_the_first_marked_line(
    lines: int, marked: list[int]
) -> None:
    code = "\n".join(f"key({at})" if at in marked else f"x({at})" for at in range(lines))
    ranges = excerpt(code, "python", "f", {"key": 2.0})
    shown = [line for start, end in ranges for line in range(start, end)]
    assert shown[0] == 0
    assert shown == sorted(set(shown))
    assert shown[-1] < lines
    assert len(shown) <= EXCERPT_LINES + 4
    assert all(line in shown for line in marked[:1] if line < lines)
    assert all(later[0] - earlier[1] >= 2 for earlier, later in pairwise(ranges))


DECODER = [
    "@final",
    "def decode(self, text):",
    '    """Decodes json.',
    *["    | JSON | object |" for _ in range(20)],
    '    surrogate pairs: see above."""',
    *["    json.load(text)  # unpaired" for _ in range(15)],
    "    end = surrogate(text)",
    "    return end",
]


def shown_lines(code: list[str], words: dict[str, float], first: tuple[int, ...] = ()) -> list[int]:
    ranges = excerpt("\n".join(code), "python", "decode", words, first)
    return [line for start, end in ranges for line in range(start, end)]


def test_a_rare_word_is_shown_before_the_second_line_of_a_common_one_and_code_before_its_docstring() -> None:
    at, docstring = len(DECODER) - 2, range(2, 24)
    shown = shown_lines(DECODER, {"json": 1.0, "surrog": 5.0})
    assert {0, 1, at, 24} <= set(shown)
    assert not set(shown).intersection(docstring)
    only_there = shown_lines(DECODER, {"json": 1.0, "pair": 5.0})
    assert set(only_there).intersection(docstring) == {23}
    assert 30 in shown_lines(DECODER, {"json": 1.0, "surrog": 5.0}, (30,))


def test_lines_are_added_around_a_match_and_without_one_at_the_beginning() -> None:
    code = ["" if line in (1, 39, 41) else f"x({line})" for line in range(60)]
    assert shown_lines(code, {}, (40,)) == [0, 1, 2, *range(32, 48)]
    assert shown_lines(code, {}) == list(range(EXCERPT_LINES + 1))


def test_empty_lines_of_a_docstring_are_no_lines_to_show() -> None:
    doc = ['    """Make it.', *["", "    Say how it is made.", "    Say more."] * 6, '    """']
    code = "\n".join(["def f(", "    a,", ") -> str:", *doc, "    return a", "    # end"])

    ranges = excerpt(code, "python", "f", {})

    assert ranges == [(0, 3), (23, 24)]


def test_a_line_of_an_outline_keeps_its_number() -> None:
    source = (
        "class A:\n    x = 1\n\n    @property\n    def f(self):\n" + 40 * "        go()\n" + "\n    stop = 2\nY = 3\n"
    )
    by_kind = {each.kind: each for each in extract(source.encode(), "python", outside=True)}
    outline, module = by_kind["class"], by_kind["module"]
    code = outline.code.split("\n")
    outline_line = source.split("\n").index("    stop = 2")
    assert code[outline_line] == "    stop = 2"
    assert (code[4], code[5]) == ("    def f(self) ...", "")
    assert excerpt(outline.code, "python", "A", {"stop": 1.0}) == [(0, 5), (outline_line, outline_line + 1)]
    assert (module.code, module.start_line) == ("Y = 3", outline_line + 2)


@pytest.mark.parametrize("language", ["python", "java", "lua", "ruby", "haskell"])
@pytest.mark.parametrize("text", ['"', "'", '"""\n', "/*", "`", "--[[", "{-", "=begin\n", '\\"', "key "])
def test_code_without_an_end_takes_no_more_than_its_length(language: str, text: str) -> None:
    def work(n: int) -> Callable[[], object]:
        return partial(excerpt, text * n, language, "f", {"key": 1.0})

    assert growth(work, 20_000 // len(text)) < GROWTH
