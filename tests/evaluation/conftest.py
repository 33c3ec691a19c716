"""Fixtures of the tests of annotation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.annotating import Place, build_index, with_queries


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("annotate")
    return with_queries(build_index(root), root)


@pytest.fixture
def at(standing: Place, tmp_path: Path) -> Place:
    """The same index, with a file of queries (and so a database) of the test's own."""
    return with_queries(standing.index, tmp_path)
