"""What an index holds, what was left out of it, and whether its folder can be written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ncs.build.pipeline import SPACE
from ncs.cli.doctor.findings import Finding, typed
from ncs.errors import IndexFolderError, IndexNotFound
from ncs.index import Index
from ncs.learn.confidence import TUNED
from ncs.learn.embeddings import retraining_advice
from ncs.storage.snapshot import find_index

SHOWN = 3
"""Files of a kind that are named."""


def diagnose(folder: Path | None, *, seconds: float | None = None) -> Iterator[Finding]:
    """Everything, the installation first. folder: the index; None looks for one as queries do.

    seconds: how long the sources are looked at; None: as long as `freshness` does.
    """
    from ncs.cli.doctor.freshness import freshness
    from ncs.cli.doctor.installation import installation

    yield from installation()
    try:
        at = folder or find_index(Path.cwd())
        index = Index.load(at)
    except IndexNotFound as error:
        text, _, _ = str(error).partition("; ")
        yield Finding("todo", "index", text, typed("ncs", "build", ".", *(() if folder is None else ("-i", folder))))
        return
    except (IndexFolderError, OSError) as error:
        text, _, command = str(error).partition("; build it again with: ")
        yield Finding("todo", "index", text, command or None)
        return
    with index:
        yield from holdings(index)
        yield from freshness(index, **({} if seconds is None else {"seconds": seconds}))
        yield from disk(index)


def holdings(index: Index) -> Iterator[Finding]:
    """Documents, what was left out, word vectors, weights of one's own."""
    counts: Mapping[str, Any] = index.description.counts
    folder, update = index.folder, typed("ncs", "update", "-i", index.folder)
    repositories = len(counts["repositories"])
    said = f"{len(index):,} documents of {repositories:,} {'repository' if repositories == 1 else 'repositories'}"
    said += f" in {', '.join(f'{name} {n:,}' for name, n in counts['languages'].items())}"
    yield Finding("ok", "index", f"{folder}: {said}; of {index.description.created}")
    if pending := counts.get("pending"):
        yield Finding("todo", "index", f"{pending}; wait for the build, or begin it again", update)
    if advice := retraining_advice(index.description):
        text, _, _ = advice.partition("; learn")
        yield Finding("todo", "vectors", text, f"{update} --retrain")
    else:
        yield Finding("ok", "vectors", f"word vectors by {counts.get('embeddings', 'none')}")
    if (index.folder / TUNED).exists():
        yield Finding("ok", "weights", "tuned to your questions; undo with: ncs tune --reset")
    yield from left_out(counts, [str(note) for note in index.description.notes])


def left_out(counts: Mapping[str, Any], notes: list[str]) -> Iterator[Finding]:
    """What of the sources the index has not got, and why."""
    skipped = {reason: n for reason, n in sorted(counts.get("skipped", {}).items()) if n}
    if skipped:
        yield Finding("note", "skipped", ", ".join(f"{n:,} {reason}" for reason, n in skipped.items()))
    for name, text in (
        ("broken", "have syntax errors (what parsed is indexed)"),
        ("failed", "could not be parsed"),
        ("unreadable", "could not be read; check their permissions"),
    ):
        paths = counts.get(f"{name}_files") or []
        number = max(len(paths), counts.get(name, 0))
        if number:
            more = " ..." if number > SHOWN else ""
            yield Finding("note", "skipped", f"{number:,} files {text}: {', '.join(paths[:SHOWN])}{more}")
    for note in notes:
        said, marker, command = note.partition("pip install")
        yield Finding(
            "note", "build", said.rstrip(" ;,:") if marker else note, f"pip install{command}" if marker else None
        )


def disk(index: Index) -> Iterator[Finding]:
    """Whether an update could write."""
    folder, counts = index.folder, index.description.counts
    if not os.access(folder, os.W_OK):
        text = f"{folder} is read-only: it answers, and cannot be updated; build one where you may write"
        yield Finding("note", "disk", text, typed("ncs", "build", *_roots(counts), "-i", "FOLDER"))
        return
    size = counts.get("source_bytes")
    free, needed = shutil.disk_usage(folder).free, SPACE * (size if isinstance(size, int) else 0)
    said = f"{free / 1e6:,.0f} MB free; an update may take {needed / 1e6:,.0f} MB"
    yield Finding("ok", "disk", said) if free >= needed else Finding("todo", "disk", said, typed("df", "-h", folder))


def _roots(counts: Mapping[str, Any]) -> list[str]:
    sources = counts.get("sources")
    return list(sources["roots"]) if isinstance(sources, dict) else ["SOURCES"]
