"""What users may not do, and files that only some systems have, for tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def without_rights() -> Iterator[None]:
    """Root may read and write anywhere; nobody may not."""
    if sys.platform == "win32":
        pytest.skip("Windows has other rights")
    root = os.geteuid() == 0
    if root:
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def make_pipe(path: Path) -> None:
    """A named pipe."""
    if sys.platform == "win32":
        pytest.skip("Windows has no pipes of this kind")
    os.mkfifo(path)
