"""Whether an index still says what the files say, found out within seconds; and where its files lie."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ncs.building import BuildConfig, Recipe, known_files
from ncs.errors import NcsError
from ncs.file_table import FileTable
from ncs.index import Index
from ncs.reading import Changes, changes
from ncs.sources import Skipped, SourceFile

NAMED = 3
"""Changed files that a note names."""


class TooSlowError(Exception):
    """A look at the files took longer than it may."""


def stale(index: Index, seconds: float) -> Changes | None:
    """Which files differ from those an index was made of; None where they cannot be read.

    Raises TooSlowError after so many seconds.
    """
    try:
        config = BuildConfig.of(index.manifest)
        recipe = Recipe(roots_of(index), config)
        known = known_files(index.data, index.manifest, index.store, config)
        table = known.table if known else FileTable.load(index.data)
        return changes(_until(recipe.files(Skipped(), known), seconds), table.entries if table else ())
    except (NcsError, OSError):
        return None


def _until(files: Iterator[SourceFile], seconds: float) -> Iterator[SourceFile]:
    end = time.monotonic() + seconds
    for file in files:
        if time.monotonic() > end:
            raise TooSlowError
        yield file


def roots_of(index: Index) -> tuple[Path, ...]:
    """The folders that an index was made of; () where it does not say."""
    sources = index.manifest.counts.get("sources")
    found: Sequence[str] = sources.get("roots", ()) if isinstance(sources, dict) else ()
    return tuple(map(Path, found))


def on_disk(roots: Sequence[Path], repository: str, path: str) -> Path | None:
    """The file of a document below the roots of its index; None where there is none: blobs, archives, removed."""
    for root in roots:
        if repository == (root.name.removesuffix(".git") or root.name) and (root / path).is_file():
            return root / path
        if (root / repository / path).is_file():
            return root / repository / path
    return None


def named(found: Changes) -> str:
    """The files that changed, the first of them by name.

    >>> named(Changes(("a/new.py",), ("a/b.py", "a/c.py"), ("a/old.py",), 7))
    'a/b.py, a/c.py, a/new.py and 1 more'
    """
    names = (*found.changed, *found.added, *(f"{name} (gone)" for name in found.removed))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
