"""An update: a new segment with the documents of changed files, and tombstones for the old ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ncs.build.file_cache import FileCache, is_reusable
from ncs.build.ingest import ingest
from ncs.build.pipeline import (
    Clock,
    build,
    dense_rankers,
    live_counts,
    requested_rankers,
    skipped_counts,
    versions,
)
from ncs.build.request import BeforeCommit, Changes, Difference, Request, find_changes, request_of, with_names
from ncs.errors import NcsError
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.sources import Origin, Skipped, SourceFile
from ncs.storage.commit import open_writer
from ncs.storage.document_facts import write_facts
from ncs.storage.documents import NAME, DocumentTable
from ncs.storage.files import FILES, home_of
from ncs.storage.freshness import remember
from ncs.storage.snapshot import PENDING, SEGMENTS, Snapshot, open_snapshot, read_description
from ncs.types import Mask

COMPACT_SHARE = 0.2
"""An update becomes a build (compaction) above this share of documents in tombstones and later segments."""
MAX_SEGMENTS = 8
"""Segments at which an update merges all but the first."""
WRITTEN, OVERTAKEN, BUILD_DUE = "written", "overtaken", "build due"
"""Outcomes of an update: a new segment; another process committed first; too much changed."""
SECONDS, MAX_CHANGED, MAX_BYTES = 1.0, 50, 1 << 20
"""Before a query: time limit for comparing files; most changed files, and most bytes of these, that are updated."""


def update(
    folder: Path,
    *,
    paths: Sequence[Path] | None = None,
    retrain: bool = False,
    compact: bool = False,
    workers: int | None = None,
    force: bool = False,
    extend_only: bool = False,
    found: Difference | None = None,
    track: Track = silent,
    before_commit: BeforeCommit | None = None,
) -> Changes:
    """Bring an index up to date with its sources; only files that changed are read.

    paths: files that may have changed; None: all are checked. With many tombstones or later segments, or `compact`, the
    index is built again (extend_only: nothing is written), with the old fastText vectors unless `retrain`. found: the
    difference, if it is known already; ignored if another process has committed since. Raises what opening and building
    an index raise, and BadInput for an index that was not built from files.
    """
    outcome = OVERTAKEN
    while outcome == OVERTAKEN:
        with open_snapshot(folder, lambda snapshot: snapshot) as snapshot, closing(FileCache(snapshot)) as cache:
            description = snapshot.description
            request = replace(
                with_names(request_of(description, folder), cache),
                workers=workers,
                force=force,
                track=track,
                before_commit=before_commit,
            )
            if found is not None and found.snapshot == description.number:
                difference = found
            else:
                difference = find_changes(cache, request, paths=paths)
            pending = PENDING in description.counts
            if retrain or compact or pending or not is_reusable(snapshot, request.config):
                outcome = BUILD_DUE
            elif difference.changes:
                outcome = _write_update(cache, request, difference, None if paths is not None else difference.skipped)
            else:
                outcome = WRITTEN
    if outcome == BUILD_DUE and not extend_only:
        keep_vectors = description.counts.get("embeddings") == "fasttext" and not retrain
        build(request, folder, keep_vectors=keep_vectors)
    return difference.changes


def _write_update(cache: FileCache, request: Request, difference: Difference, skipped: Skipped | None) -> str:
    """Write and commit a segment and tombstones. skipped: files that the walk left out; None without a walk."""
    snapshot = cache.snapshot
    dead = cache.dead_without(difference.replaced)
    tombstones = cache.tombstones(dead)
    files = [*difference.files, *_read_again(cache, request, dead, difference.replaced)]
    if _is_too_much(snapshot, tombstones, files):
        return BUILD_DUE
    parts, merged, began = snapshot.segments, [], difference.began
    if len(parts) >= MAX_SEGMENTS:
        merged, parts = _later_files(cache, dead), parts[:1]
        tombstones = tombstones[tombstones[:, 0] == int(parts[0].name)]
        began = began if skipped is not None else min(began, cache.began())
    rankers = requested_rankers(request.config.rankers, snapshot.statistics)
    if not all(ranker.can_extend for ranker in rankers):
        return BUILD_DUE
    with open_writer(snapshot.folder) as writer:
        if writer.previous is None or writer.previous.number != snapshot.description.number:
            return OVERTAKEN
        clock, description = Clock(), snapshot.description
        segments = [(each.path, each.documents) for each in parts]
        if files or merged:
            segment = writer.new_folder(SEGMENTS)
            with clock("extract"):
                every, home = [*merged, *files], home_of(snapshot.folder)
                collected = ingest(every, segment, request.config, request.workers, cache, began=began, home=home)
            collected.files_read.save(segment / FILES)
            segments.append((segment, len(collected.words)))
            with DocumentTable(segment / NAME) as documents:
                with clock("facts"):
                    deduplicate = request.config.deduplicate
                    write_facts(segment, collected.uses, collected.words, documents, deduplicate=deduplicate)
                for ranker in (Bm25Ranker(), *dense_rankers(request.config), *rankers):
                    with clock(ranker.name):
                        ranker.extend(snapshot.statistics, segment, collected.words, documents)
        if request.before_commit:
            request.before_commit(segments)
        seconds = {**description.counts.get("seconds", {}), "update": round(sum(clock.seconds.values()), 2)}
        counts = {**description.counts, **live_counts([path for path, _ in segments], tombstones), "seconds": seconds}
        writer.commit(
            segments,
            snapshot.statistics,
            tombstones=tombstones,
            config=asdict(request.config),
            counts=counts if skipped is None else counts | skipped_counts(skipped),
            notes=description.notes,
            versions=versions(),
        )
    return WRITTEN


def _read_again(
    cache: FileCache, request: Request, dead: Mask, replaced: Sequence[tuple[str, str]]
) -> list[SourceFile]:
    """Unchanged files with copies of removed documents, which become documents of these files."""
    names = {name for name, number in cache.numbers.items() if dead[number]} - set(replaced)
    if not names:
        return []
    places = {cache.entries[cache.numbers[name]].place for name in names}
    files = request.files(Skipped(), lambda origin: origin.place not in places)
    return [file for file in files if (file.repository, file.path) in names]


def _later_files(cache: FileCache, dead: Mask) -> list[SourceFile]:
    """The live files of all segments but the first, to be copied from the cache."""
    numbers = [each for each in cache.numbers.values() if each >= cache.firsts[1] and not dead[each]]
    return [
        SourceFile(entry.repository, entry.path, b"", Origin(entry.place, entry.stamp), unchanged=True)
        for entry in (cache.entries[number] for number in numbers)
    ]


def _is_too_much(snapshot: Snapshot, tombstones: NDArray[np.int64], files: Sequence[SourceFile]) -> bool:
    """Whether so much changed that a build is due."""
    total = max(1, snapshot.segments[0].documents)
    dead = 0
    for segment in snapshot.segments:
        after = replace(segment, dead_files=tombstones[tombstones[:, 0] == int(segment.name), 1])
        dead += sum(stop - start for start, stop in after.dead_rows())
    later = len(snapshot) - total
    per_byte = total / max(1, int(snapshot.description.counts.get("source_bytes", 1)))
    new = per_byte * sum(len(file.data) for file in files)
    return dead + later + new > COMPACT_SHARE * total + 50


def catch_up(snapshot: Snapshot, state: str) -> int | None:
    """Update an index if few files have changed; None after an update, else the number of changed files, remembered for
    this state of the files (`state_of`). Raises what `find_changes` raises."""
    request = request_of(snapshot.description, snapshot.folder)
    with closing(FileCache(snapshot)) as cache:
        difference = find_changes(cache, request, seconds=SECONDS)
    changes = difference.changes
    behind = sum(map(len, changes.kinds.values()))
    gone = len(changes.removed) > changes.unchanged + len(changes.changed)  # the sources may be away for a moment
    few = not gone and behind <= MAX_CHANGED and sum(len(file.data) for file in difference.files) <= MAX_BYTES
    if behind and few and difference.complete and is_reusable(snapshot, request.config):
        try:
            update(snapshot.folder, extend_only=True, found=difference)
        except (NcsError, OSError, ValueError, RuntimeError):  # for one, another process is writing: tried again later
            return behind
        if read_description(snapshot.folder).number > snapshot.description.number:
            return None
    remember(snapshot, state, behind)
    return behind
