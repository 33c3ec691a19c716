"""What a document is worth before any question: tests, examples, stubs stand back unless asked for, and so do bodies
that do next to nothing or say themselves that they are not done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.file_roles import ASIDE, EXAMPLE, SETTINGS, SOURCE, TEST
from ncs.storage.postings import stem_all
from ncs.types import FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.text.stems import Stems
    from ncs.types import Field

FACTOR = 0.5
"""What a score is multiplied by. Measured inside repositories, where tests outnumber what they test; .3 and .7 are
no better. Over many repositories it changes nothing beyond chance."""
OUTLINE = 0.5
BODY, THIN = 0.7, 12
"""What a body of at most so many words is worth over many projects: a getter, a delegate, an empty method. 6 words
reach none of these, 20 and more reach what answers."""
UNFINISHED = 0.5
"""What such a body is worth anywhere that says it is not written yet."""
MARKED = 1.0
"""What a function is worth whose comments say TODO. 1: such functions are longer, and answer more often."""
IN_BODY: tuple[Field, ...] = ("calls", "enums", "literals", "identifiers")
_SAID = "not implemented error, not implemented exception, unsupported operation exception, unimplemented"
_NOT_YET = tuple(stem_all(words.split()) for words in _SAID.split(", "))
_TO_DO = tuple(stem_all([word]) for word in ("todo", "fixme", "hack", "xxx"))
_KINDS = "yaml toml ini json xml css scss makefile dockerfile docker cmake gradle bazel terraform jenkinsfile jenkins"
_SETTINGS = frozenset(f"{_KINDS} stylesheet pipeline workflow deploy deployment".split())
"""Not `configuration` or `build`: code that reads a configuration is asked for in these words."""
ASKS_FOR = {
    TEST: frozenset({"test", "tests", "testing", "tested", "mock", "mocks", "fixture", "spec", "assert", "unittest"}),
    EXAMPLE: frozenset({"example", "examples", "sample", "samples", "demo", "benchmark", "benchmarks", "tutorial"}),
    ASIDE: frozenset({"stub", "stubs", "generated", "vendor", "vendored", "compat", "compatibility"}),
    SETTINGS: _SETTINGS,
}


def factors(roles: NDArray[np.int8], words: Sequence[str], *, factor: float = FACTOR) -> NDArray[np.float64]:
    """1 for the product itself and for what the question's words ask for, else the factor; [len(roles)].

    >>> factors(np.array([0, 1, 2], np.int8), ["test", "client"]).tolist()
    [1.0, 1.0, 0.5]
    """
    by_role = np.full(max(SOURCE, *ASKS_FOR) + 1, float(factor))
    by_role[SOURCE] = 1
    for role, asking in ASKS_FOR.items():
        if not asking.isdisjoint(words):
            by_role[role] = 1
    return by_role[roles]


def outlines(outline: NDArray[np.bool_], inside: float, *, factor: float = OUTLINE) -> NDArray[np.float64]:
    """What classes and top-level code are worth beside functions, [len(outline)].

    Inside one project (`inside` = 1) as much: people ask for places there. Over many projects they ask how something
    is done, which an outline does not show.
    """
    return np.where(outline, 1 - (1 - factor) * (1 - inside), 1.0)


def bodies(
    table: WordTable,
    rows: NDArray[np.int64],
    outline: NDArray[np.bool_],
    inside: float,
    named: NDArray[np.float64],
    *,
    factor: float = BODY,
) -> NDArray[np.float64]:
    """What functions that do next to nothing are worth beside those that do something, [len(rows)].

    Inside one project (`inside` = 1) as much: there the one place is asked for, however short. Over many projects
    people ask how something is done; but the nearer a name is to the whole question (named, 1), the more a short
    function is just what was asked for: `hideSoftKeyboard` may be one line.
    """
    thin = (_lengths(table, rows, IN_BODY) <= THIN) & ~outline
    return np.where(thin, 1 - (1 - factor) * (1 - inside) * (1 - np.clip(named, 0.0, 1.0)), 1.0)


def quality(
    table: WordTable, stems: Stems, rows: NDArray[np.int64], *, unfinished: float = UNFINISHED, marked: float = MARKED
) -> NDArray[np.float64]:
    """What is left of functions that say they are not done, [len(rows)]: small ones that raise `NotImplementedError`,
    throw `UnsupportedOperationException` or say so, times those with a TODO in a comment."""
    found = np.ones(len(rows))
    if unfinished != 1:
        small = np.flatnonzero(_lengths(table, rows, IN_BODY) <= THIN)
        found[small[_holding(table, stems, rows[small], (*IN_BODY, "types"), _NOT_YET)]] *= unfinished
    if marked != 1:
        found[_holding(table, stems, rows, ("comments",), _TO_DO)] *= marked
    return found


def _lengths(table: WordTable, rows: NDArray[np.int64], fields: Sequence[Field]) -> NDArray[np.int64]:
    """Words of the fields together."""
    return np.asarray(table.lengths(rows)[:, [FIELDS.index(field) for field in fields]].sum(axis=1), np.int64)


def _holding(
    table: WordTable, stems: Stems, rows: NDArray[np.int64], fields: Sequence[Field], wanted: Sequence[Sequence[str]]
) -> NDArray[np.bool_]:
    """Which rows have all stems of one of those wanted."""
    ids, offsets = table.select_rows(fields, rows)
    numbers, owners = stems.numbers(ids), np.repeat(np.arange(len(rows)), np.diff(offsets))
    found = np.zeros(len(rows), np.bool_)
    for group in wanted:
        held = [np.bincount(owners[numbers == one], minlength=len(rows)) > 0 for one in stems.of_stems(group)]
        found |= np.logical_and.reduce(held)
    return found
