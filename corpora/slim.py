"""A downloaded archive reduced to its source files, as an archive still: nothing is unpacked into a folder."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from corpora.client import NotFetched
from corpora.fetch import place
from ncs.errors import BadInput

UNPACKED = 4 << 30
"""Bytes: no repository's wanted files are larger than this together; what claims to be is a bomb."""


def slim(path: Path, wanted: Callable[[str], bool], *, limit: int = UNPACKED) -> None:
    """Keep of a .zip only the files that are wanted by their path; links and paths that lead outside go.

    The archive is replaced at once. Raises NotFetched, and removes it, where it is no archive or over the limit.
    """
    part = path.with_name(path.name + ".slim")
    try:
        with zipfile.ZipFile(path) as whole, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as kept:
            left = limit
            for member in whole.infolist():
                if not _is_kept(member, wanted):
                    continue
                left -= member.file_size
                if left < 0:
                    raise NotFetched(f"{path.name} holds over {limit} bytes of source files", final=True)
                entry = zipfile.ZipInfo(member.filename, member.date_time)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with whole.open(member) as source, kept.open(entry, "w") as target:
                    shutil.copyfileobj(source, target)  # zipfile reads no more than the size it names, and checks it
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        path.unlink()
        raise NotFetched(f"{path.name} is damaged or no archive ({error})", final=False) from error
    except NotFetched:
        path.unlink()
        raise
    else:
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _is_kept(member: zipfile.ZipInfo, wanted: Callable[[str], bool]) -> bool:
    if member.is_dir() or stat.S_ISLNK(member.external_attr >> 16) or not wanted(member.filename):
        return False
    try:
        place(Path(), member.filename)
    except BadInput:
        return False
    return True
