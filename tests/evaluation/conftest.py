"""Fixtures of the tests of annotation."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.annotation.command import Request
from tests.evaluation.annotating import build_index, with_queries


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Request:
    root = tmp_path_factory.mktemp("annotate")
    return with_queries(build_index(root), root)


@pytest.fixture
def at(standing: Request, tmp_path: Path) -> Request:
    """The same index, with a file of queries (and so a database) of the test's own."""
    return with_queries(standing.index, tmp_path)
