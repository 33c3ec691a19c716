"""Opens and writes files in folders that a stranger may have filled: regular files only, and no link is written to."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from ncs.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

JSON_BYTES = 16 << 20
"""The largest JSON file that is read; parsed it may take twenty times as much memory."""
SMALL_BYTES = 64 << 10
"""Arrays of at most this size are read, not mapped: a mapped one keeps a file open, and systems allow 256 or 1,024."""
_HEADER = re.compile(
    rb"\x93NUMPY\x01\0.."
    rb"\{'descr': '([<|][biuf][1248])', 'fortran_order': (False|True), 'shape': \(((?:\d{1,12},? ?){0,4})\), \} *\n",
    re.DOTALL,
)
"""What np.save writes before the numbers. numpy's own reader evaluates a Python literal, and warns of odd ones."""

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_CREATE, _APPEND = _WRITE | os.O_EXCL, _WRITE | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)

LONGEST_LINE = 64 << 20
"""Characters of a line of JSON."""
BUSY, REPLACE_ATTEMPTS = (5, 32), 100
"""Windows' errors for a file that is open elsewhere, and how often its replacement is tried, every 20 ms."""
RATIO = 100
"""Characters that a byte of a gzip file may hold; those of code are 5, and of a bomb 1,000."""


def open_regular(path: Path | str, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading; never waits, as opening a pipe or a terminal would.

    follow: whether the last part of the path may be a link (to a regular file). Raises OSError for anything else.
    """
    return _regular(os.open(path, _READ if follow else _READ | getattr(os, "O_NOFOLLOW", 0)), "rb", path)


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
    code = "utf-8-sig"
    with gzip.open(path, "rt", encoding=code) if path.suffix == ".gz" else path.open(encoding=code) as file:
        while line := file.readline(LONGEST_LINE):
            left -= len(line)
            if left < 0 or len(line) == LONGEST_LINE:
                raise OSError(errno.EFBIG, "its lines are endless", str(path))
            yield line


def read_json(path: Path, *, follow: bool = True) -> Any:
    """The content of a JSON file of at most JSON_BYTES; raises OSError or ValueError."""
    try:
        return json.loads(read_regular(path, JSON_BYTES, follow=follow))
    except RecursionError:
        raise ValueError("nested too deep") from None


def map_array(path: Path, kind: type[np.generic] | None = None, dimensions: int | None = 1) -> NDArray[Any]:
    """A .npy file of numbers, memory-mapped unless it is small; raises OSError or ValueError for anything else.

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
        order: Literal["F", "C"] = "F" if header[2] == b"True" else "C"
        if size <= SMALL_BYTES:
            file.seek(header.end())
            return np.frombuffer(file.read(size), dtype).reshape(shape, order=order)
        mapped = np.memmap(file, dtype, "r", header.end(), shape, order)
        return np.asarray(mapped)  # indexing a np.memmap takes five times as long


def create_file(path: Path | str, permissions: int = 0o666) -> BinaryIO:
    """Create a file and open it for writing; a file or link of that name is removed first, never written to."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    return os.fdopen(os.open(path, _CREATE, permissions), "w+b")


def replace_file(path: Path, content: str | bytes, permissions: int = 0o666) -> None:
    """Replace a file, or a link, atomically and durably."""
    with open_replacement(path, permissions) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def open_replacement(path: Path, permissions: int = 0o666) -> Iterator[BinaryIO]:
    """A new file that replaces a file or a link when it is complete; a device or pipe is written to directly."""
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as device:
            yield device
        return
    temporary = path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")
    try:
        with create_file(temporary, permissions) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def _replace(temporary: Path, path: Path) -> None:
    """Rename a file over another; Windows refuses that while another process reads the old one: then again."""
    for _ in range(REPLACE_ATTEMPTS):
        try:
            temporary.replace(path)
            return
        except PermissionError as error:  # noqa: PERF203
            if getattr(error, "winerror", None) not in BUSY:
                raise
            time.sleep(0.02)
    temporary.replace(path)


def append_file(path: Path | str) -> BinaryIO:
    """Open a regular file, made where there is none, to read it and to write at its end; OSError for a link."""
    return _regular(os.open(path, _APPEND, 0o600), "a+b", path)


def _regular(descriptor: int, mode: str, path: Path | str) -> BinaryIO:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return cast("BinaryIO", os.fdopen(descriptor, mode))
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def save_array(path: Path, array: ArrayLike) -> None:
    """Write a .npy file. np.save given a path ignores where the last bytes could not be written."""
    import numpy as np

    with create_file(path) as file:  # not a BufferedWriter, past which numpy would write
        np.save(file, array, allow_pickle=False)


def reserve(descriptor: int, size: int) -> None:
    """Reserve disk space for a file that is written as mapped memory: on a full disk a signal would end the process."""
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)


def refuse_links(path: Path) -> None:
    """Raise BadInput where a file or folder is a link, or holds one or anything else but files and folders."""
    below = (Path(place, name) for place, folders, names in os.walk(path) for name in (*folders, *names))
    for each in (path, *below):
        with suppress(FileNotFoundError):  # another process may be removing files
            mode = each.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
                raise BadInput(f"{each} is {what}, which ncs does not write to; remove it")


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder, and need not sync it
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
