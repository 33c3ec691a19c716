"""Fixtures of the tests of annotation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.annotating import QUERIES, Place, place


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place(tmp_path_factory.mktemp("annotate"))


@pytest.fixture
def at(standing: Place, tmp_path: Path) -> Place:
    """The same index, with a file of queries (and so a database) of the test's own."""
    queries = tmp_path / "queries.txt"
    queries.write_text("\n".join(QUERIES) + "\n")
    return Place(standing.index, queries)
