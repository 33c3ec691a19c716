"""Factors known before any query: tests, examples, stubs, thin and unfinished bodies count less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.file_roles import ASIDE, EXAMPLE, SETTINGS, SOURCE, TEST
from ncs.text.stems import stem_all
from ncs.types import FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordReader
    from ncs.text.stems import Stems
    from ncs.types import Field

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

ROLE = 0.5
"""Factor of tests, examples and the like; .3 and .7 are no better."""
OUTLINE = 0.5
BODY, THIN = 0.7, 12
"""The factor of a body of at most THIN words over many projects: a getter, a delegate, an empty method. 6 words reach
none of these, 20 and more reach what answers."""
UNFINISHED = 0.5
"""The factor of such a body that says it is not implemented."""
IN_BODY: tuple[Field, ...] = ("calls", "enums", "literals", "identifiers")
_PHRASES = "not implemented error, not implemented exception, unsupported operation exception, unimplemented"
_NOT_IMPLEMENTED = tuple(stem_all(words.split()) for words in _PHRASES.split(", "))
_FORMATS = "yaml toml ini json xml css scss makefile dockerfile docker cmake gradle bazel terraform jenkinsfile jenkins"
ASKS_FOR = {
    TEST: frozenset({"test", "tests", "testing", "tested", "mock", "mocks", "fixture", "spec", "assert", "unittest"}),
    EXAMPLE: frozenset({"example", "examples", "sample", "samples", "demo", "benchmark", "benchmarks", "tutorial"}),
    ASIDE: frozenset({"stub", "stubs", "generated", "vendor", "vendored", "compat", "compatibility"}),
    # not `configuration` or `build`: code that reads a configuration is asked for in these words
    SETTINGS: frozenset(f"{_FORMATS} stylesheet pipeline workflow deploy deployment".split()),
}
"""Role of a file -> query words that ask for it."""


def role_factors(roles: NDArray[np.int8], words: Sequence[str], *, factor: float = ROLE) -> Scores:
    """1 for the product itself and for roles that the query's words ask for, else the factor; [len(roles)].

    >>> role_factors(np.array([0, 1, 2], np.int8), ["test", "client"]).tolist()
    [1.0, 1.0, 0.5]
    """
    by_role = np.full(max(SOURCE, *ASKS_FOR) + 1, float(factor))
    by_role[SOURCE] = 1
    for role, triggers in ASKS_FOR.items():
        if not triggers.isdisjoint(words):
            by_role[role] = 1
    return by_role[roles]


def outline_factors(outlines: NDArray[np.bool_], inside: float, *, factor: float = OUTLINE) -> Scores:
    """The factor of classes and top-level code, [len(outlines)].

    Inside one project (inside = 1) it is 1: people ask for places there. Over many projects they ask how something is
    done, which an outline does not show.
    """
    return np.where(outlines, 1 - (1 - factor) * (1 - inside), 1.0)


def body_factors(
    table: WordReader,
    rows: Rows,
    outlines: NDArray[np.bool_],
    inside: float,
    name: Scores,
    *,
    factor: float = BODY,
) -> Scores:
    """The factor of functions with thin bodies, [len(rows)]. name: overlap of each name with the query.

    Inside one project (inside = 1) it is 1: there the one place is asked for, however short. Over many projects people
    ask how something is done; but the nearer a name is to the whole query, the more a short function is just what was
    asked for: `hideSoftKeyboard` may be one line.
    """
    thin = (_lengths(table, rows, IN_BODY) <= THIN) & ~outlines
    return np.where(thin, 1 - (1 - factor) * (1 - inside) * (1 - np.clip(name, 0.0, 1.0)), 1.0)


def quality_factors(table: WordReader, stems: Stems, rows: Rows, *, unfinished: float = UNFINISHED) -> Scores:
    """The factor of thin functions that are not implemented, [len(rows)]: they raise `NotImplementedError`, throw
    `UnsupportedOperationException` or say so.
    """
    result = np.ones(len(rows))
    if unfinished != 1:
        thin = np.flatnonzero(_lengths(table, rows, IN_BODY) <= THIN)
        result[thin[_containing(table, stems, rows[thin], (*IN_BODY, "types"), _NOT_IMPLEMENTED)]] *= unfinished
    return result


def _lengths(table: WordReader, rows: Rows, fields: Sequence[Field]) -> NDArray[np.int64]:
    """Number of words of the fields."""
    return np.asarray(table.lengths(rows)[:, [FIELDS.index(field) for field in fields]].sum(axis=1), np.int64)


def _containing(
    table: WordReader, stems: Stems, rows: Rows, fields: Sequence[Field], phrases: Sequence[Sequence[str]]
) -> NDArray[np.bool_]:
    """Mask of the rows with all stems of one of the phrases."""
    ids, offsets = table.select_rows(fields, rows)
    numbers, owners = stems.numbers(ids), np.repeat(np.arange(len(rows)), np.diff(offsets))
    result = np.zeros(len(rows), np.bool_)
    for phrase in phrases:
        each = [np.bincount(owners[numbers == one], minlength=len(rows)) > 0 for one in stems.of_stems(phrase)]
        result |= np.logical_and.reduce(each)
    return result
