"""Fixtures of the tests of corpora."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.webserver import Site, serving


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as site:
        yield site
