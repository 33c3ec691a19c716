"""What a disk says when it cannot be written, in one line; and bringing files to it for sure."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from ncs.errors import NcsError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_SPACE_LEFT = 1 << 20
"""Bytes."""
SYNCED = 16
"""Files that are brought to the disk at a time."""


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Say in one line that a folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise cannot_write(folder, error) from error


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Say in one line that the disk is full, whoever found out; other errors pass.

    numpy and faiss report a failed write without the system's error number: then the space left tells.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in FULL or (number is None and _free(folder) < NO_SPACE_LEFT):
            raise cannot_write(folder, OSError(errno.ENOSPC, "")) from error
        raise


def cannot_write(folder: Path, error: OSError) -> NcsError:
    """The error that says so, with its remedy."""
    if error.errno in FULL:
        return NcsError(f"the disk of {folder} is full; free some space or choose another folder with -i")
    return NcsError(f"cannot write to {folder}: {error.strerror or error}; choose another folder with -i")


def _free(folder: Path) -> float:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return float("inf")


def sync(path: Path) -> None:
    """Bring a file or a folder's list of names to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # there a folder cannot be opened, and need not
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(paths: Sequence[Path]) -> None:
    """Bring them to the disk together: a file system that keeps a journal writes it once for many that wait."""
    with ThreadPoolExecutor(SYNCED) as pool:
        for _ in pool.map(sync, paths):  # raises what one of them did
            pass
