"""What a document is worth before any question: tests, examples, stubs stand back unless asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncs.places import ASIDE, EXAMPLE, SETTINGS, SOURCE, TEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

FACTOR = 0.5
"""What a score is multiplied by. Measured inside repositories, where tests outnumber what they test; .3 and .7 are
no better. Over many repositories it changes nothing beyond chance."""
OUTLINE = 0.5
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
