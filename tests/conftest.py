"""What tests of several rooms share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ncs.index import Index
from tests import corpus
from tests.browser import browser  # noqa: F401 (a fixture)

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="ncs-state-")  # a key for all tests, not the developer's
os.environ["LOCALAPPDATA"] = os.environ["XDG_STATE_HOME"]  # so on Windows
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


settings.register_profile(  # a busy machine is no fault of a test
    "ncs", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ncs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with many slow tests first: at the end, the processes wait for each other's last file."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus in `repos` and its index in `.ncs`, for tests that only read them."""
    folder = tmp_path_factory.mktemp("demo")
    Index.build(corpus.write(folder / "repos"), folder / ".ncs").close()
    return folder


@pytest.fixture(scope="session")
def demo_index(demo: Path) -> Iterator[Index]:
    """The index of the small corpus, open."""
    with Index.load(demo / ".ncs") as index:
        yield index


@pytest.fixture
def anyio_backend() -> str:
    """What tests marked `anyio` run on."""
    return "asyncio"
