"""A deadline for every test of what strangers may have made."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """A test that waits for ever fails; Windows has no such alarm."""
    if sys.platform == "win32":
        yield
        return
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it takes more than two minutes"))
    signal.alarm(120)
    yield
    signal.alarm(0)
