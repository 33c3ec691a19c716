"""The errors, each with its remedy in the message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
        raise IndexDamaged(f"cannot read {what} ({reason}); build the index again") from error


def check_k(k: int) -> None:
    """Raise BadInput for a search for fewer than one hit."""
    if k < 1:
        raise BadInput(f"k is {k}; it must be at least 1")
