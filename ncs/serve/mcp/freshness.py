"""Whether an index still says what the files say, found out within seconds."""

from __future__ import annotations

from ncs.build.ingest import Changes
from ncs.build.request import changes_since, known_files, recipe_of
from ncs.errors import NcsError
from ncs.index import Index

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


def named(found: Changes) -> str:
    """The files that changed, the first of them by name.

    >>> named(Changes(("a/new.py",), ("a/b.py", "a/c.py"), ("a/old.py",), 7))
    'a/b.py, a/c.py, a/new.py and 1 more'
    """
    names = (*found.changed, *found.added, *(f"{name} (gone)" for name in found.removed))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
