"""Whether an index is what its sources are now: looked at for a few seconds, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ncs.build.file_cache import made_by
from ncs.build.request import find_changes, request_of, roots_of
from ncs.cli.doctor.findings import Finding, typed
from ncs.errors import NcsError

if TYPE_CHECKING:
    from ncs.index import Index

SECONDS = 5.0
"""How long files are looked at."""


def freshness(index: Index, *, seconds: float = SECONDS) -> Iterator[Finding]:
    """What has changed since the index was built or updated."""
    update = typed("ncs", "update", "-i", index.folder)
    roots = roots_of(index.description)
    if not roots:
        yield Finding("note", "sources", "the index does not say which files it was made of: it cannot be updated")
        return
    missing = [str(root) for root in roots if not root.exists()]
    if missing:
        text = f"gone: {', '.join(missing)}; what was indexed still answers"
        yield Finding("todo", "sources", text, typed("ncs", "build", "SOURCES", "-i", index.folder))
        return
    if cast("dict[str, object]", index.description.counts["sources"])["made_by"] != made_by():
        text = "another version of ncs or its grammars read the files; the next update reads all of them anew"
        yield Finding("note", "sources", text, update)
    try:
        request = replace(request_of(index.description, index.folder), force=True)
        difference = find_changes(index.snapshot, request, seconds=seconds)
    except NcsError as error:
        yield Finding("todo", "sources", str(error), update)
        return
    found, whole = difference.changes, difference.complete
    looked = f"{found.unchanged + len(found.added) + len(found.changed):,} files looked at"
    limit = "" if whole else f" in {seconds:g} s; more may have"
    kinds = {"new": found.added, "changed": found.changed, "removed": found.removed}
    if found:
        said = ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths)
        first = next(path for paths in kinds.values() for path in paths)
        yield Finding("todo", "sources", f"stale: {said} ({first} ...); {looked}{limit}", update)
    else:
        yield Finding("ok", "sources", f"nothing changed since {index.description.created}; {looked}{limit}")
