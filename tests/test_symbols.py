"""Names in questions, and the definitions they ask for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncs.errors import IndexDamaged
from ncs.storage.definitions import EXACT, FOLDED, PREFIX, QUALIFIED, Symbol, Symbols, query_symbols

DEFINITIONS = (
    ("setPadding", "View.setPadding", "method"),
    ("setPadding", "Table.setPadding", "method"),
    ("set_padding", "set_padding", "function"),
    ("setPaddingLeft", "View.setPaddingLeft", "method"),
    ("initializer", "View.initializer", "initializer"),
    ("Session", "Session", "class"),
)


def matches(symbol: Symbol, **options: np.ndarray) -> dict[int, float]:
    rows, weights = Symbols.of(DEFINITIONS).match(symbol, **options)
    return dict(zip(rows.tolist(), weights.tolist(), strict=True))


def test_spelled_alike_is_better_than_alike_but_for_case_and_underscores() -> None:
    assert matches(Symbol("setPadding")) == {0: EXACT, 1: EXACT, 2: FOLDED}
    assert matches(Symbol("set_padding")) == {0: FOLDED, 1: FOLDED, 2: EXACT}


def test_what_stands_before_the_name_must_enclose_it() -> None:
    found = matches(Symbol("setPadding", ("View",)))
    assert found == {0: EXACT + QUALIFIED, 1: EXACT - QUALIFIED, 2: FOLDED - QUALIFIED}


def test_the_start_of_a_name_finds_it_only_where_nothing_is_defined_by_it() -> None:
    assert matches(Symbol("setPaddingLe")) == {3: PREFIX}
    assert matches(Symbol("set")) == {}  # too short to be the start of anything


def test_a_filter_is_kept_and_what_has_no_name_is_never_found() -> None:
    allowed = np.array([False, True, True, True, True, True])
    assert matches(Symbol("setPadding"), allowed=allowed) == {1: EXACT, 2: FOLDED}
    assert matches(Symbol("initializer")) == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("View.setPadding", [("setPadding", ("View",), True)]),
        ("HttpClient::post", [("post", ("HttpClient",), True)]),
        ("parseJson(", [("parseJson", (), True)]),
        ("where is hide_soft_keyboard used", [("hide_soft_keyboard", (), True)]),
        ("session", [("session", (), True)]),
        ("how to restart an Activity", [("Activity", (), False)]),
        ("How do I close a file? Then open it", []),
        ("read and/or write", []),
    ],
)
def test_names_that_only_code_has_are_symbols(text: str, wanted: list[tuple[str, tuple[str, ...], bool]]) -> None:
    assert query_symbols(text) == [Symbol(*each) for each in wanted]


def test_what_was_saved_answers_alike_and_damage_is_told(tmp_path: Path) -> None:
    made = Symbols.of(DEFINITIONS)
    made.save(tmp_path)
    for symbol in (Symbol("setPadding", ("Table",)), Symbol("Session"), Symbol("nothing")):
        for one, other in zip(made.match(symbol), Symbols.load(tmp_path).match(symbol), strict=True):
            assert one.tolist() == other.tolist()
    (tmp_path / "symbols" / "rows.npy").write_bytes(b"x")
    with pytest.raises(IndexDamaged, match="build the index again"):
        Symbols.load(tmp_path)
