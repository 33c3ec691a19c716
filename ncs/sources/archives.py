"""Source files of .zip and .tar archives; nothing is unpacked into a folder."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, Protocol, cast

from ncs.errors import SourceError
from ncs.files import open_regular
from ncs.sources import ignore
from ncs.sources.files import LONGEST_PATH, Origin, RawFile, file_origin
from ncs.sources.filters import Filter, FolderFilter, Limits
from ncs.sources.ignore import NCSIGNORE
from ncs.sources.repositories import Repository

_SPOOLED_BYTES = 64 << 20  # contents of a tar held in memory; more goes into an unnamed file
_HEADER_BYTES = 1 << 16  # of one member of a tar; real headers have some kilobytes
_NAME_BYTES = 256  # of one member of a tar; a longer name counts as several members
_DIRECTORY_BYTES = 128  # of one member of a zip, on average; real ones have less than a hundred
_XZ = b"\xfd7zXZ\0"
_XZ_BYTES = 128 << 20  # memory; `xz -9` takes half of it
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile unpacks others whole, however much that is
_DIGITS = re.compile(rb"\d{64}")
_CHUNK = 1 << 18
_DAMAGED = (
    *(EOFError, OSError, ValueError, LookupError, RuntimeError, MemoryError),  # of decompressors and tarfile
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
)


class _Member(NamedTuple):
    """A regular file: its path in the archive, its size, and how to read it."""

    path: str
    size: int
    read: Callable[[], bytes]


def files(repository: Repository, filter: Filter) -> Iterator[RawFile]:
    """Source files in bytewise path order, without the one folder that holds everything, if there is one.

    A tar has an order of its own, so its files are spooled in memory or in an unnamed temporary file.
    Of several members of one path the last counts, as when unpacking. Members that point outside (absolute, `..`) and
    links are counted, never followed. Raises SourceError for what is no archive, is damaged or truncated, or unpacks
    to more than the limits.
    """
    with _opened(repository.path) as file, _members(repository, file, filter) as members:
        _, stamp = file_origin(str(repository.path), os.fstat(file.fileno()))
        top = _common_top(members)
        ignores = repository.ignores
        if ncsignore := members.get(top + NCSIGNORE):
            rules = filter.rules(ignore.parse, _content(ncsignore, filter), repository.prefix)
            ignores = ignores.with_ncs(rules)
        folders = FolderFilter(repository.prefix, ignores, filter)
        for member in sorted(members.values(), key=lambda member: os.fsencode(member.path)):
            below = member.path[len(top) :]
            path = repository.prefix + below
            if not folders.enter(below) or not filter.file(path, ignores) or not filter.size(member.size, path):
                continue
            origin = Origin.within(repository.path, below, stamp)
            if filter.is_unchanged(origin):
                yield RawFile(below, member.size, b"", origin, unchanged=True)
            elif (content := _content(member, filter)) is None:
                filter.skipped.add_unreadable(path)
            elif (data := filter.content(path, content, ignores)) is not None:
                yield RawFile(below, len(data), data, origin)


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path, follow=False)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}; name an archive that you may read") from error


@contextmanager
def _members(repository: Repository, file: IO[bytes], filter: Filter) -> Iterator[dict[str, _Member]]:
    with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as spool:
        start = file.read(6)
        file.seek(0)
        size = os.fstat(file.fileno()).st_size
        allowed = min(filter.limits.archive_bytes, filter.limits.unpacked(size))
        try:
            if start.startswith(b"PK"):
                archive = zipfile.ZipFile(cast(IO[bytes], _Directory(file, filter.limits)))
                archive.fp = file
                members_in_order = _zip_members(archive, filter, allowed)
            else:
                stream = ForwardStream(_decompress(file, start), allowed)
                members_in_order = _tar_members(stream, spool, filter)
            members = {member.path: member for member in members_in_order}
        except TooLarge as error:
            raise SourceError(f"{repository.path} {error}; if you trust it, unpack it and name its folder") from error
        except _DAMAGED as error:
            raise SourceError(f"{repository.path} is not a valid archive ({error}); fetch or unpack it") from error
        yield members


def _zip_members(archive: zipfile.ZipFile, filter: Filter, allowed: int) -> Iterator[_Member]:
    total = 0
    for n, info in enumerate(archive.infolist(), 1):
        _check_count(n, filter.limits)
        mode = info.external_attr >> 16
        if info.filename.endswith("/"):
            continue
        if stat.S_ISLNK(mode):
            filter.skipped.add("links")
        elif (path := _safe_path(info.filename)) is None:
            filter.skipped.add("unsafe archive members")
        else:
            total += info.file_size if filter.readable(path) and info.file_size <= filter.limits.of(path) else 0
            if total > allowed:
                raise TooLarge(f"unpacks to more than {allowed:,} bytes")
            yield _Member(path, info.file_size, partial(_unpack, archive, info))


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member's content; zipfile's own `read` takes no bound, and unpacks more than the size that it then checks."""
    if info.compress_type not in ZIP_METHODS:
        raise ValueError("packed by a method that has no bounds")
    with archive.open(info) as member:
        return member.read(info.file_size + 1)


def _tar_members(stream: ForwardStream, spool: IO[bytes], filter: Filter) -> Iterator[_Member]:
    with tarfile.TarFile(fileobj=cast(IO[bytes], stream)) as archive:
        n = 0
        while (info := archive.next()) is not None:
            cast(Any, archive).members.clear()  # else it holds all of them
            archive.pax_headers = {}  # global headers, which would add up
            stream.header_bytes = 0
            _check_count(n := n + 1 + len(info.name) // _NAME_BYTES, filter.limits)
            if info.isdir():
                continue
            if info.issym() or info.islnk():
                filter.skipped.add("links")
            elif not info.isreg() or info.issparse():
                filter.skipped.add("special files")
            elif (path := _safe_path(info.name)) is None:
                filter.skipped.add("unsafe archive members")
            elif info.size > filter.limits.of(path) or not (filter.readable(path) or path.endswith(NCSIGNORE)):
                yield _Member(path, info.size, bytes)
            else:
                at = spool.tell()
                stream.seek(info.offset_data)
                spool.write(stream.read_exactly(info.size))
                yield _Member(path, info.size, partial(_slice, spool, at, info.size))
    stream.check_end()


def _slice(spool: IO[bytes], at: int, size: int) -> bytes:
    spool.seek(at)
    return spool.read(size)


def _content(member: _Member, filter: Filter) -> bytes | None:
    if member.size > filter.limits.of(member.path):
        return None
    try:
        return member.read()
    except _DAMAGED:
        return None


def _check_count(n: int, limits: Limits) -> None:
    if n > limits.archive_members:
        raise TooLarge(f"has more than {limits.archive_members:,} members")


def _safe_path(name: str) -> str | None:
    """A member's path, normalized; None where it would lead out of the archive's folder."""
    if "/" not in name:
        name = name.replace("\\", "/")  # written on Windows, against the specification
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or re.match("[A-Za-z]:", name):
        return None
    return "/".join(parts) if len(name) <= LONGEST_PATH else None


def _common_top(paths: Iterable[str]) -> str:
    """`package/` or `repo-main/` where every file lies below it, else ""."""
    tops = {path.partition("/")[0] + "/" if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class TooLarge(ValueError):
    """An archive holds more than the limits allow."""


def _decompress(file: IO[bytes], start: bytes) -> _Stream:
    """A file that starts so, decompressed: gzip, bzip2, xz, or as it is."""
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if start.startswith(_XZ):
        return _XzStream(file)
    return file


class _XzStream:
    """An xz file, decompressed in bounded memory: its header may ask for 4 GiB."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._decompressor = file, self._start()

    @staticmethod
    def _start() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_BYTES)

    def read(self, size: int) -> bytes:
        """The next bytes; fewer at the end only."""
        pieces = []
        while size > 0:
            packed = b""
            if self._decompressor.eof:
                packed = self._decompressor.unused_data + self._file.read(_CHUNK)
                if not packed.startswith(_XZ):  # padding
                    break
                self._decompressor = self._start()
            elif self._decompressor.needs_input and not (packed := self._file.read(_CHUNK)):
                raise EOFError("truncated")
            pieces.append(self._decompressor.decompress(packed, size))
            size -= len(pieces[-1])
        return b"".join(pieces)


class _Directory:
    """What zipfile reads its list of members from; it would hold any number of them."""

    def __init__(self, file: IO[bytes], limits: Limits) -> None:
        self._file, self._limits = file, limits
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """The end of the archive, or its list of members."""
        most = self._limits.archive_members
        if size <= most * _DIRECTORY_BYTES:
            data = self._file.read(size)
            _check_count(data.count(b"PK\1\2"), self._limits)
            return data
        raise TooLarge(f"has more than {most:,} members")


class ForwardStream:
    """The bytes of a tar, forward only, never more than allowed: what tarfile reads from.

    Python's own streams would hold a header of gigabytes in memory, and read a bomb to its end. header_bytes: of the
    headers since this was set to 0.
    """

    def __init__(self, file: _Stream, allowed: int) -> None:
        self._file, self._allowed, self._at, self.header_bytes = file, allowed, 0, 0

    def tell(self) -> int:
        """Bytes read or skipped."""
        return self._at

    def read(self, size: int) -> bytes:
        """A header, or padding."""
        self.header_bytes += size
        if self.header_bytes > _HEADER_BYTES:
            raise ValueError("a header too long")
        header = self._read(size)
        if size > tarfile.BLOCKSIZE and _DIGITS.search(header):  # tarfile takes minutes for them (CVE-2024-6232)
            raise ValueError("a damaged header")
        return header

    def read_exactly(self, size: int) -> bytes:
        """A file's content; EOFError where the archive is truncated."""
        content = self._read(size)
        if len(content) < size:
            raise EOFError("truncated")
        return content

    def seek(self, to: int) -> None:
        """Skip the bytes before `to`."""
        if to < self._at:
            raise ValueError("members overlap")
        while self._at < to and self._read(min(to - self._at, _CHUNK)):
            pass

    def check_end(self) -> None:
        """Read what follows the last member, so that checksums are checked: anything but padding is damage."""
        while piece := self._read(_CHUNK):
            if piece.strip(b"\0"):
                raise ValueError("damaged between two members")

    def _read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._at += len(piece)
        if self._at > self._allowed:
            raise TooLarge(f"unpacks to more than {self._allowed:,} bytes")
        return piece
