"""Whether an index still says what the files say, found out within seconds; and where its files lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ncs.errors import NcsError
from ncs.freshness import changes_since, known_files, recipe_of
from ncs.index import Index
from ncs.reading import Changes

NAMED = 3
"""Changed files that a note names."""


class TooSlowError(Exception):
    """A look at the files took longer than it may."""


def stale(index: Index, seconds: float) -> Changes | None:
    """Which files differ from those an index was made of; None where they cannot be read.

    Raises TooSlowError after so many seconds.
    """
    try:
        recipe = recipe_of(index.manifest, index.folder)
        known = known_files(index.data, index.manifest, index.store, recipe.config)
        found, whole = changes_since(recipe, index.data, known, seconds)
    except (NcsError, OSError):
        return None
    if not whole:
        raise TooSlowError
    return found


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
