"""Source files of .zip and .tar archives; nothing is unpacked into a folder."""

from __future__ import annotations

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
from typing import IO, Any, NamedTuple, cast

from ncs.errors import SourceError
from ncs.sources.ignores import NCSIGNORE, parse
from ncs.sources.origins import Origin, Read
from ncs.sources.places import Place
from ncs.sources.skips import Folders, Limits, Sieve
from ncs.sources.streams import ForwardStream, TooMuch, unpacked

_FREE_BYTES = 64 << 20  # no archive is called a bomb below this
_SPOOLED_BYTES = 64 << 20  # contents of a tar kept in memory; more goes into a file without a name
_DAMAGED = (
    *(EOFError, OSError, ValueError, RuntimeError, MemoryError),  # what the unpackers raise on wrong bytes
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
)


class _Member(NamedTuple):
    """A regular file: its whole path in the archive, its size, and how to read it."""

    path: str
    size: int
    read: Callable[[], bytes]


def files(place: Place, sieve: Sieve, *, read: bool = True) -> Iterator[Read]:
    """Source files in bytewise path order, without the one folder that holds everything, if there is one.

    A tar's order is its own, so what is wanted of it waits in memory or in an unnamed temporary file.
    Of several members of one path the last counts, as when unpacking. Members that point outside
    (absolute, `..`) and links are counted, never followed. Raises SourceError for what is no archive,
    is damaged or cut off, or unpacks to more than the limits.
    """
    with _members(place, sieve, read) as members:
        top = _common_top(members)
        ignores = place.ignores
        if own := members.get(top + NCSIGNORE):
            ignores = ignores.with_ncs(parse(_content(own, sieve) or b"", base=place.where))
        folders = Folders(place.where, ignores, sieve)
        for member in sorted(members.values(), key=lambda member: os.fsencode(member.path)):
            below = member.path[len(top) :]
            path = place.where + below
            if not folders.enter(below) or not sieve.file(path, ignores) or not sieve.size(member.size, path):
                continue
            if not read:
                yield Read(below, member.size, b"")
            elif (content := _content(member, sieve)) is None:
                sieve.unreadable(path)
            elif (data := sieve.content(path, content, ignores)) is not None:
                yield Read(below, len(data), data, Origin(f"{place.path}/{below}"))


@contextmanager
def _members(place: Place, sieve: Sieve, read: bool) -> Iterator[dict[str, _Member]]:
    with place.path.open("rb") as file, tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as spool:
        start = file.read(6)
        file.seek(0)
        size = os.fstat(file.fileno()).st_size
        allowed = min(sieve.limits.archive_bytes, max(_FREE_BYTES, sieve.limits.archive_ratio * size))
        try:
            members: dict[str, _Member]
            if start.startswith(b"PK"):
                archive = zipfile.ZipFile(file)
                members = {member.path: member for member in _of_zip(archive, sieve, allowed)}
            else:
                members = {
                    member.path: member
                    for member in _of_tar(ForwardStream(unpacked(file, start), allowed), spool, sieve, read)
                }
        except TooMuch as error:
            raise SourceError(f"{place.path} {error}; if you trust it, unpack it and name its folder") from error
        except _DAMAGED as error:
            raise SourceError(f"{place.path} is no sound archive ({error}); fetch it again or unpack it") from error
        yield members


def _of_zip(archive: zipfile.ZipFile, sieve: Sieve, allowed: int) -> Iterator[_Member]:
    total = 0
    for n, info in enumerate(archive.infolist(), 1):
        _check_number(n, sieve.limits)
        mode = info.external_attr >> 16
        if info.is_dir():
            continue
        if stat.S_ISLNK(mode):
            sieve.skipped.add("links")
        elif (path := _inside(info.filename)) is None:
            sieve.skipped.add("unsafe archive members")
        else:
            total += info.file_size if sieve.wanted(path) and info.file_size <= sieve.limits.file_bytes else 0
            if total > allowed:
                raise TooMuch(f"unpacks to more than {allowed:,} bytes")
            yield _Member(path, info.file_size, partial(archive.read, info))


def _of_tar(stream: ForwardStream, spool: IO[bytes], sieve: Sieve, read: bool) -> Iterator[_Member]:
    with tarfile.TarFile(fileobj=cast(IO[bytes], stream)) as archive:
        n = 0
        while (info := archive.next()) is not None:
            cast(Any, archive).members.clear()  # else it keeps all of them
            _check_number(n := n + 1, sieve.limits)
            if info.isdir():
                continue
            if info.issym() or info.islnk():
                sieve.skipped.add("links")
            elif not info.isreg() or info.issparse():
                sieve.skipped.add("special files")
            elif (path := _inside(info.name)) is None:
                sieve.skipped.add("unsafe archive members")
            elif info.size > sieve.limits.file_bytes or not (sieve.wanted(path) or path.endswith(NCSIGNORE)):
                yield _Member(path, info.size, bytes)
            else:
                at = spool.tell()
                if read or path.endswith(NCSIGNORE):
                    stream.seek(info.offset_data)
                    spool.write(stream.exactly(info.size))
                yield _Member(path, info.size, partial(_piece, spool, at, info.size))
    stream.rest()


def _piece(spool: IO[bytes], at: int, size: int) -> bytes:
    spool.seek(at)
    return spool.read(size)


def _content(member: _Member, sieve: Sieve) -> bytes | None:
    if member.size > sieve.limits.file_bytes:
        return None
    try:
        return member.read()
    except _DAMAGED:
        return None


def _check_number(n: int, limits: Limits) -> None:
    if n > limits.archive_members:
        raise TooMuch(f"has more than {limits.archive_members:,} members")


def _inside(name: str) -> str | None:
    """A member's path, plain; None where it would lead out of the archive's folder."""
    if "/" not in name:
        name = name.replace("\\", "/")  # written on Windows, against the rules of zip
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or re.match("[A-Za-z]:", name):
        return None
    return "/".join(parts)


def _common_top(paths: Iterable[str]) -> str:
    """`package/` or `repo-main/` where every file lies below it, else ""."""
    tops = {path.partition("/")[0] + "/" if "/" in path else "" for path in paths}
    return tops.pop() if len(tops) == 1 else ""
