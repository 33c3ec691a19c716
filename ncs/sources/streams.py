"""Packed bytes as a stream that only goes forward and ends where a bomb begins."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import IO, Protocol

_LONGEST_HEADER = 1 << 20  # the most that tarfile may ask for at once; real headers are some kilobytes
_CHUNK = 1 << 18


class TooMuch(ValueError):
    """An archive holds more than the limits allow."""


class Bytes(Protocol):
    """What can be read."""

    def read(self, size: int, /) -> bytes: ...


def unpacked(file: IO[bytes], start: bytes) -> Bytes:
    """A file that begins so, unpacked: gzip, bzip2, xz, or as it is."""
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if start.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(file)
    return file


class ForwardStream:
    """The bytes of a tar, forward only, never more than allowed: what tarfile reads from.

    Python's own streams would hold a header of gigabytes in memory, and follow a bomb to its end.
    """

    def __init__(self, file: Bytes, allowed: int) -> None:
        self._file, self._allowed, self._at = file, allowed, 0

    def tell(self) -> int:
        """Bytes read or passed over."""
        return self._at

    def read(self, size: int) -> bytes:
        """A header, or padding."""
        if size > _LONGEST_HEADER:
            raise ValueError("a header too long")
        return self._read(size)

    def exactly(self, size: int) -> bytes:
        """A file's content; EOFError where the archive ends within it."""
        pieces = []
        while size > 0:
            if not (piece := self._read(min(size, _CHUNK))):
                raise EOFError("cut off")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def seek(self, to: int) -> None:
        """Pass over what lies before `to`."""
        if to < self._at:
            raise ValueError("members overlap")
        while self._at < to and self._read(min(to - self._at, _CHUNK)):
            pass

    def rest(self) -> None:
        """What follows the last member: checksums are checked, and anything but padding is damage."""
        while piece := self._read(_CHUNK):
            if piece.strip(b"\0"):
                raise ValueError("damaged between two members")

    def _read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._at += len(piece)
        if self._at > self._allowed:
            raise TooMuch(f"unpacks to more than {self._allowed:,} bytes")
        return piece
