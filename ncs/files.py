"""Opens and writes files in folders that a stranger may have filled: regular files only, and no link is written to."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

JSON_BYTES = 16 << 20
"""The largest JSON file that is read; parsed it may take twenty times as much memory."""
_HEADER = re.compile(
    rb"\x93NUMPY\x01\0.."
    rb"\{'descr': '([<|][biuf][1248])', 'fortran_order': (False|True), 'shape': \(((?:\d{1,12},? ?){0,4})\), \} *\n",
    re.DOTALL,
)
"""What np.save writes before the numbers. numpy's own reader evaluates a Python literal, and warns of odd ones."""

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


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


def read_json(path: Path, *, follow: bool = True) -> Any:
    """The content of a JSON file of at most JSON_BYTES; raises OSError or ValueError."""
    try:
        return json.loads(read_regular(path, JSON_BYTES, follow=follow))
    except RecursionError:
        raise ValueError("nested too deep") from None


def map_array(path: Path, kind: type[np.generic] | None = None, dimensions: int | None = 1) -> NDArray[Any]:
    """A .npy file of numbers, memory-mapped; raises OSError or ValueError for anything else.

    kind, dimensions: None for any.
    """
    import numpy as np

    with open_regular(path) as file:
        header = _HEADER.match(file.read(1024))
        if header is None:
            raise ValueError("not an array of numbers")
        dtype: np.dtype[Any] = np.dtype(header[1].decode())
        shape = tuple(map(int, header[3].replace(b",", b" ").split()))
        size = os.fstat(file.fileno()).st_size - header.end()
        if dtype != (kind or dtype) or len(shape) != (dimensions or len(shape)):
            raise ValueError(f"holds {dtype.name} {shape}")
        if prod(shape) * dtype.itemsize != size or max(shape, default=1) > max(size, 1 << 16):
            raise ValueError(f"{size:,} bytes are too few or too many for {shape}")
        if not size:  # which cannot be mapped
            return np.zeros(shape, dtype)
        array: NDArray[Any] = np.memmap(file, dtype, "r", header.end(), shape, "F" if header[2] == b"True" else "C")
        return array


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
