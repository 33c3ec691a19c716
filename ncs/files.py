"""Opens and writes files in folders that a stranger may have filled: regular files only, and no link is written to."""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

LONGEST_LINE = 64 << 20
"""Characters of a line of JSON."""
RATIO = 100
"""Characters that a byte of a gzip file may hold; those of code are 5, and of a bomb 1,000."""


def open_regular(path: Path | str, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading; never waits, as opening a pipe or a terminal would.

    follow: whether the last part of the path may be a link (to a regular file). Raises OSError for anything else.
    """
    file = os.open(path, _READ if follow else _READ | getattr(os, "O_NOFOLLOW", 0))
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path | str, limit: int, *, follow: bool = True) -> bytes:
    """The content of a regular file of at most `limit` bytes; raises OSError (EFBIG) for a larger one."""
    with open_regular(path, follow=follow) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return data


def text_lines(path: Path) -> Iterator[str]:
    """Lines of a file in UTF-8, gzip by its name; raises OSError (EFBIG) for endless ones, as of a gzip bomb."""
    left = max(LONGEST_LINE, RATIO * path.stat().st_size)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        while line := file.readline(LONGEST_LINE):
            left -= len(line)
            if left < 0 or len(line) == LONGEST_LINE:
                raise OSError(errno.EFBIG, "its lines are endless", str(path))
            yield line


def create_file(path: Path | str) -> BinaryIO:
    """Create a file and open it for writing; a file or link of that name is removed first, never written to."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    return os.fdopen(os.open(path, _CREATE, 0o666), "w+b")


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a file, or a link, atomically and durably."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with create_file(temporary) as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder, and need not sync it
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
