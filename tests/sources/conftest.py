"""A deadline for every test of what strangers may have made."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """A test that waits for ever fails."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it takes more than two minutes"))
    signal.alarm(120)
    yield
    signal.alarm(0)
