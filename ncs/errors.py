"""The errors, each with its remedy in the message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ncs.messages import OUT_OF_RANGE, UNKNOWN, UNUSABLE


class NcsError(Exception):
    """The base of all: its message is one line and names the remedy."""


class BadInput(NcsError):
    """A wrong argument, query or option."""


class SourceError(NcsError):
    """A folder, git repository or archive that cannot be read."""


class MissingExtra(NcsError):
    """An optional part is not installed."""


class StoreLost(NcsError):
    """The store of an index (Milvus) does not answer."""


class IndexFolderError(NcsError):
    """An index folder that cannot be used."""


class IndexNotFound(IndexFolderError):
    """There is no index in that folder."""


class IndexDamaged(IndexFolderError):
    """Files are missing, truncated, altered or not ours."""


class IndexVersion(IndexFolderError):
    """Written in another format."""


class IndexBusy(IndexFolderError):
    """Another process is writing to the index."""


BROKEN = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
    *(EOFError, MemoryError, RecursionError),
)
"""What wrong bytes raise somewhere."""


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Raise IndexDamaged, with the remedy, for files of an index that are missing, damaged or inconsistent."""
    try:
        yield
    except (*BROKEN, OSError, BadInput, IndexDamaged) as error:
        reason = str(error).partition(";")[0]
        raise damaged(f"cannot read {what} ({reason})") from error


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Raise MissingExtra, with the remedy, where a library that is imported here is not installed."""
    try:
        yield
    except ImportError as error:
        if str(error.name).startswith("ncs"):
            raise
        raise MissingExtra(f"{what} needs {error.name}; pip install 'neural-code-search[{extra}]'") from error


def damaged(what: str, folder: object = "FOLDER") -> IndexDamaged:
    """The error for an index folder with something that cannot be used."""
    return IndexDamaged(UNUSABLE.format(what=what, folder=folder))


def check_k(k: int) -> None:
    """Raise BadInput for a search for fewer than one hit."""
    if k < 1:
        raise BadInput(OUT_OF_RANGE.format(name="k", value=k, bound="at least 1"))


def unknown(what: str, name: object, known: Iterable[str], where: str = "") -> BadInput:
    """The error for a name that is none of those known."""
    return BadInput(UNKNOWN.format(what=what, name=name, where=where, known=", ".join(known)))
