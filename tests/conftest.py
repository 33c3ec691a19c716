"""What tests of several rooms share."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncs.index import Index
from tests import corpus
from tests.browser import browser  # noqa: F401 (a fixture)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus in `repos` and its index in `.ncs`, for tests that only read them."""
    folder = tmp_path_factory.mktemp("demo")
    Index.build(corpus.write(folder / "repos"), folder / ".ncs").close()
    return folder


@pytest.fixture
def anyio_backend() -> str:
    """What tests marked `anyio` run on."""
    return "asyncio"
