"""Which words of a question stand in a hit, and which lines are shown."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ncs.search.highlight import excerpt, matched_words
from ncs.types import Document


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
def test_an_excerpt_starts_at_the_first_line_stays_short_and_shows_the_first_marked_line(
    lines: int, marked: list[int]
) -> None:
    inside = [line for line in marked if line < lines]
    ranges = excerpt(lines, inside, 14)
    shown = [line for start, end in ranges for line in range(start, end)]
    assert shown[0] == 0
    assert shown == sorted(set(shown))
    assert shown[-1] < lines
    assert len(shown) <= 14 + 4
    assert all(line in shown for line in inside[:1])
    assert all(later[0] - earlier[1] >= 2 for earlier, later in pairwise(ranges))
