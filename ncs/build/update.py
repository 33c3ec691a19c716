"""An update: one new segment with the documents of changed files, and tombstones for their old ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.build.file_cache import FileCache, is_reusable
from ncs.build.ingest import ingest
from ncs.build.pipeline import Clock, build, dense_rankers, open_documents, requested_rankers, versions
from ncs.build.request import BeforeCommit, Changes, Difference, Request, find_changes, request_of
from ncs.extract.readers import count_text_files, skip_reason
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.sources import Origin, Skipped, SourceFile
from ncs.storage.commit import IndexWriter, open_writer
from ncs.storage.document_facts import write_facts
from ncs.storage.documents import NAME, DocumentTable
from ncs.storage.files import BROKEN, FAILED, FileTable
from ncs.storage.snapshot import PENDING, SEGMENTS, Snapshot, open_snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.build.batches import CollectedDocuments

COMPACT_SHARE = 0.2
"""Share of tombstones and later segments in the documents above which an update is a build (compaction)."""
MOST_SEGMENTS = 8
"""Segments at which an update merges all but the first."""


def update(
    folder: Path,
    *,
    paths: Sequence[Path] | None = None,
    retrain: bool = False,
    compact: bool = False,
    workers: int | None = None,
    force: bool = False,
    track: Track = silent,
    before_commit: BeforeCommit | None = None,
) -> Changes:
    """Bring an index up to date with its sources; only files that changed are read.

    paths: files that may have changed; None: all are checked. Scores use the statistics of the last build. With many
    tombstones or later segments, or with `compact`, the index is built again as one segment with new statistics;
    fastText vectors are kept unless `retrain`.
    Raises what opening and building an index raise, and BadInput for an index that was not made of files.
    """
    while True:
        with open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
            description = snapshot.description
            request = replace(
                request_of(description, folder), workers=workers, force=force, track=track, before_commit=before_commit
            )
            skipped = Skipped(unwanted=skip_reason)
            cache = FileCache(snapshot)
            difference = find_changes(snapshot, request, paths=paths, skipped=skipped, cache=cache)
            must_build = PENDING in description.counts or not is_reusable(snapshot, request.config)
            if not (difference.changes or retrain or compact or must_build):
                return difference.changes
            if not (retrain or compact or must_build):
                outcome = _write_update(cache, request, difference, None if paths is not None else skipped)
                if outcome == WRITTEN:
                    return difference.changes
                if outcome == OVERTAKEN:
                    continue
            keep = (
                not retrain and description.counts.get("embeddings") == "fasttext" and PENDING not in description.counts
            )
        build(request, folder, embeddings_of=folder if keep else None)
        return difference.changes


WRITTEN, OVERTAKEN, BUILD_DUE = "written", "overtaken", "too much"
"""Outcomes of an update: a new segment; another process committed first; a build is due."""


def _write_update(cache: FileCache, request: Request, difference: Difference, skipped: Skipped | None) -> str:
    """Write and commit a segment and tombstones. skipped: files that the walk left out; None without a walk."""
    snapshot = cache.snapshot
    with ExitStack() as stack:
        stack.callback(cache.close)
        tombstones = cache.dead_files(difference.replaced)
        files = [*difference.files, *_read_again(cache, request, tombstones, difference.replaced)]
        if _is_too_much(snapshot, tombstones, files):
            return BUILD_DUE
        parts, merged, began = snapshot.segments, [], difference.began
        if len(parts) >= MOST_SEGMENTS:
            merged, parts = _later_files(cache, snapshot, tombstones), parts[:1]
            tombstones = tombstones[tombstones[:, 0] == int(parts[0].name)]
            began = began if skipped is not None else min(began, cache.began())
        rankers = requested_rankers(request.config.rankers, snapshot.statistics)
        if not all(ranker.can_extend for ranker in rankers):
            return BUILD_DUE
        writer = stack.enter_context(open_writer(snapshot.folder))
        if writer.previous is None or writer.previous.number != snapshot.description.number:
            return OVERTAKEN
        clock = Clock()
        segments = [(each.path, each.documents) for each in parts]
        if files or merged:
            segment = writer.new_folder(SEGMENTS)
            with clock("extract"):
                collected = ingest([*merged, *files], segment, request.config, request.workers, cache, began=began)
            collected.files_read.save(segment)
            _extend(snapshot, segment, collected, request, rankers, clock)
            segments.append((segment, collected.documents))
        _commit(writer, snapshot, segments, tombstones, request, skipped, clock)
    return WRITTEN


def _read_again(
    cache: FileCache, request: Request, tombstones: NDArray[np.int64], replaced: Sequence[tuple[str, str]]
) -> list[SourceFile]:
    """Unchanged files with copies of removed documents, which become documents of these files."""
    dead = {(segment, file) for segment, file in tombstones.tolist()}
    copies = {
        (entry.repository, entry.path): entry.place for segment, file, entry in cache.files() if (segment, file) in dead
    }
    for name in replaced:
        copies.pop(name, None)
    if not copies:
        return []
    places = set(copies.values())
    files = request.files(Skipped(), lambda origin: origin.place not in places)
    return [file for file in files if (file.repository, file.path) in copies]


def _later_files(cache: FileCache, snapshot: Snapshot, tombstones: NDArray[np.int64]) -> list[SourceFile]:
    """The live files of all segments but the first, to be copied from the cache."""
    dead, first = {(segment, file) for segment, file in tombstones.tolist()}, int(snapshot.segments[0].name)
    return [
        SourceFile(entry.repository, entry.path, b"", Origin(entry.place, entry.stamp), unchanged=True)
        for segment, file, entry in cache.files()
        if segment != first and (segment, file) not in dead
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


def _extend(
    snapshot: Snapshot,
    segment: Path,
    collected: CollectedDocuments,
    request: Request,
    rankers: Sequence[Any],
    clock: Clock,
) -> None:
    """Write facts, postings and vectors of a new segment with the existing statistics."""
    with open_documents(segment) as documents:
        with clock("facts"):
            write_facts(segment, collected.uses, collected.words, documents, deduplicate=request.config.deduplicate)
        for ranker in (Bm25Ranker(), *dense_rankers(request.config), *rankers):
            with clock(ranker.name):
                ranker.extend(snapshot.statistics, segment, collected.words, documents)


def _commit(
    writer: IndexWriter,
    snapshot: Snapshot,
    segments: Sequence[tuple[Path, int]],
    tombstones: NDArray[np.int64],
    request: Request,
    skipped: Skipped | None,
    clock: Clock,
) -> None:
    description = snapshot.description
    if request.before_commit:
        request.before_commit(segments, snapshot.statistics, tombstones)
    seconds = {**description.counts.get("seconds", {}), "update": round(sum(clock.seconds.values()), 2)}
    counts: dict[str, Any] = {**description.counts, **live_counts(segments, tombstones), "seconds": seconds}
    if skipped is not None:
        counts |= {
            "skipped": dict(sorted(skipped.counts.items())),
            "unreadable_files": list(skipped.unreadable),
        }
    writer.commit(
        segments,
        snapshot.statistics,
        tombstones=tombstones,
        config=asdict(request.config),
        counts=counts,
        notes=description.notes,
        versions=versions(),
    )


def live_counts(segments: Sequence[tuple[Path, int]], tombstones: NDArray[np.int64]) -> dict[str, Any]:
    """Counts of live documents, copies and files, by repository, language and kind."""
    totals: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = {"repositories": Counter(), "languages": Counter(), "kinds": Counter()}
    states: dict[int, list[str]] = {BROKEN: [], FAILED: []}
    paths: list[str] = []
    for path, _ in segments:
        dead = tombstones[tombstones[:, 0] == int(path.name), 1]
        with DocumentTable(path / NAME) as documents:
            counts = documents.live_counts(dead)
        for name, counter in labels.items():
            counter.update(counts[name])
        table = FileTable.load(path)
        dead_numbers = frozenset(dead.tolist())
        entries = [entry for number, entry in enumerate(table.entries if table else ()) if number not in dead_numbers]
        paths += [entry.path for entry in entries]
        totals += Counter(
            documents=counts["documents"],
            copies=counts["copies"],
            files=len(entries),
            source_bytes=sum(entry.bytes for entry in entries),
        )
        for entry in entries:
            labels["repositories"].setdefault(entry.repository, 0)
            if entry.state in states:
                states[entry.state].append(f"{entry.repository}/{entry.path}")
    broken, failed = states[BROKEN], states[FAILED]
    return {
        **{name: totals[name] for name in ("documents", "copies", "files", "source_bytes")},
        **{name: dict(sorted(counter.items())) for name, counter in labels.items()},
        "broken": len(broken),
        "failed": len(failed),
        "broken_files": sorted(broken)[:100],
        "failed_files": sorted(failed)[:100],
        "text_files": count_text_files(paths),
    }
