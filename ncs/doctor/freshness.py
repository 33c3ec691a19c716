"""Whether an index is what its sources are now: looked at for a few seconds, nothing is written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ncs.building import BuildConfig, Recipe, known_files
from ncs.doctor.findings import Finding, typed
from ncs.errors import NcsError
from ncs.reading import Changes, changes
from ncs.reuse import made_by
from ncs.sources import Skipped

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.sources import SourceFile

SECONDS = 5.0
"""How long files are looked at."""


def freshness(index: Index, *, seconds: float = SECONDS) -> Iterator[Finding]:
    """What has changed since the index was built or updated."""
    update = typed("ncs", "update", "-i", index.folder)
    sources = cast("dict[str, Any] | None", index.manifest.counts.get("sources"))
    if not isinstance(sources, dict):
        yield Finding("note", "sources", "the index does not say which files it was made of: it cannot be updated")
        return
    missing = [root for root in sources["roots"] if not Path(root).exists()]
    if missing:
        text = f"gone: {', '.join(missing)}; what was indexed still answers"
        yield Finding("todo", "sources", text, typed("ncs", "build", "SOURCES", "-i", index.folder))
        return
    if sources["made_by"] != made_by():
        text = "another version of ncs or its grammars read the files; the next update reads all of them anew"
        yield Finding("note", "sources", text, update)
    try:
        found, whole = changed(index, [Path(root) for root in sources["roots"]], seconds)
    except NcsError as error:
        yield Finding("todo", "sources", str(error), update)
        return
    looked = f"{found.unchanged + len(found.added) + len(found.changed):,} files looked at"
    limit = "" if whole else f" in {seconds:g} s; more may have"
    kinds = {"new": found.added, "changed": found.changed, "removed": found.removed}
    if found:
        said = ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths)
        first = next(path for paths in kinds.values() for path in paths)
        yield Finding("todo", "sources", f"stale: {said} ({first} ...); {looked}{limit}", update)
    else:
        yield Finding("ok", "sources", f"nothing changed since {index.manifest.created}; {looked}{limit}")


def changed(index: Index, roots: list[Path], seconds: float) -> tuple[Changes, bool]:
    """Which files differ, and whether all were looked at before the time was over; then removed ones are not told."""
    from ncs.file_table import FileTable

    config = BuildConfig.of(index.manifest)
    recipe, ends = Recipe(tuple(roots), config, force=True), time.monotonic() + seconds
    known, table = known_files(index.data, index.manifest, index.store, config), FileTable.load(index.data)
    whole = True

    def looked_at() -> Iterator[SourceFile]:
        nonlocal whole
        for file in recipe.files(Skipped(), known):
            yield file
            if time.monotonic() > ends:
                whole = False
                return

    found = changes(looked_at(), table.entries if table else ())
    return (found if whole else Changes(found.added, found.changed, (), found.unchanged)), whole
