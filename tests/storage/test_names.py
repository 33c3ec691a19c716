"""Names in queries, and the definitions that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncs.storage.names import (
    EXACT,
    FOLDED,
    PREFIX,
    QUALIFIED,
    UNCERTAIN,
    UNSCOPED,
    Definitions,
    DefinitionTable,
    Symbol,
    query_symbols,
)
from ncs.storage.snapshot import Description, Snapshot

CALLED = (
    (0, "setPadding", "View"),
    (1, "setPadding", "Table"),
    (2, "set_padding", ""),
    (3, "setPaddingLeft", "View"),
    (5, "Session", ""),
)
DECLARED = ((4, "SET_PADDING", "View"), (4, "Padding", "View"), (5, "Padding", "Session"), (5, "Session", "Session"))
ROWS = 6


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        (Symbol("setPadding"), {0: EXACT, 1: EXACT, 2: FOLDED + UNSCOPED}),
        (Symbol("set_padding"), {0: FOLDED, 1: FOLDED, 2: EXACT + UNSCOPED}),
        (Symbol("setPadding", ("View",)), {0: EXACT + QUALIFIED, 1: EXACT - QUALIFIED, 2: FOLDED - QUALIFIED}),
        (Symbol("Session", certain=False), {5: (EXACT + UNSCOPED) * UNCERTAIN}),
        (Symbol("setPaddingLe"), {3: PREFIX}),
        (Symbol("set"), {}),  # too short to be the start of anything
        (Symbol("SET_PADDING"), {0: FOLDED, 1: FOLDED, 2: FOLDED + UNSCOPED, 4: EXACT}),
        (Symbol("Padding", ("Session",)), {4: EXACT - QUALIFIED, 5: EXACT + QUALIFIED}),
        (Symbol("padding"), {}),  # what is declared matches as spelled only
        (Symbol("Paddi"), {}),
    ],
)
def test_a_symbol_matches_by_spelling_scope_and_start(
    symbol: Symbol, expected: dict[int, float], tmp_path: Path
) -> None:
    segment = tmp_path / "segments" / "000001"
    segment.mkdir(parents=True)
    (tmp_path / "statistics" / "000001").mkdir(parents=True)
    DefinitionTable.of(CALLED).save(segment / "definitions")
    DefinitionTable.of(DECLARED).save(segment / "declared")
    with Snapshot(tmp_path, Description(1, "", "000001", (("000001", ROWS),))) as snapshot:
        definitions = Definitions(snapshot)
        rows, weights = definitions.match(symbol)
        assert dict(zip(rows.tolist(), weights.tolist(), strict=True)) == expected
        rows, _ = definitions.match(symbol, allowed=np.arange(ROWS) > 0)
        assert rows.tolist() == [row for row in expected if row > 0]


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_names_that_only_code_has_are_symbols(text: str, expected: list[tuple[str, tuple[str, ...], bool]]) -> None:
    assert query_symbols(text) == [Symbol(*each) for each in expected]
