"""Updates of an index in Milvus after random edits: what is sent and deleted, how long it takes, what is found then.

Each is made from the index as it was built, with all documents that did not change as they were sent at first: nothing
is sent anew however much has changed, so that figures say what old weights do to what is found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.bench_update import files_of
from evaluation.random_edits import edited
from ncs.index import Index
from ncs.scale.milvus import publish
from ncs.scale.milvus.publish import Publication, Published
from ncs.scale.milvus.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH, CANDIDATES = 1000, 20
"""Candidates of a ranker's own that are compared, and questions they are compared for."""


def updates(
    folder: Path, target: Target, sizes: Sequence[int], compared: Callable[[], dict[str, Any]]
) -> list[dict[str, Any]]:
    """One for each number of edited files. folder: of an index that may be written to; its sources get back as they
    were. compared: what is found in the store and in the folder."""
    found = []
    with _never_anew():
        for size in sizes:
            with Index.load(folder) as index:
                files, all_files = files_of(index, size), index.manifest.counts["files"]
            with edited(files) as kinds:
                done, told = update(folder, target)
                with Index.load(folder) as index:
                    told |= {"documents": len(index), "beside": index.manifest.counts.get("delta")}
                found.append({"files": size, "of_files": all_files, "kinds": dict(kinds), **told, **compared()})
            back, told = update(folder, target)
            same = back.collection == done.collection
            found[-1] |= {"undone": {"sent": back.written, "deleted": back.deleted, "same_collection": same}}
    return found


def update(folder: Path, target: Target) -> tuple[Published, dict[str, Any]]:
    """One, and what it sent; seconds: of the index and of the store."""
    publication, in_store = Publication(folder, target), 0.0

    def ready(data: Path) -> None:
        nonlocal in_store
        start = time.perf_counter()
        publication.ready(data)
        in_store += time.perf_counter() - start

    start = time.perf_counter()
    Index.update(folder, ready=ready)[0].close()
    index = time.perf_counter() - start - in_store
    start = time.perf_counter()
    done = publication.finish()
    in_store += time.perf_counter() - start
    return done, {
        "sent": done.written,
        "deleted": done.deleted,
        "index_seconds": round(index, 1),
        "store_seconds": round(in_store, 1),
    }


def same_candidates(ours: Index, theirs: Index, questions: Sequence[str]) -> dict[str, float]:
    """Of the folder's first DEPTH by words and by vectors, the share that the store finds, too."""
    found = {}
    for name in ("bm25", "ncs_centred"):
        met = total = 0
        for text in questions[:CANDIDATES]:
            expected, there = ({row for row, _ in each.ranker(name).search(text, DEPTH)} for each in (ours, theirs))
            met, total = met + len(expected & there), total + len(expected)
        found[name] = round(met / max(1, total), 5)
    return found


def told(made: dict[str, Any], whole: float) -> str:
    """A line. whole: seconds that a whole publication takes."""
    asked = made["questions"]
    return (
        f"{made['files']:,} of {made['of_files']:,} files edited: {made['sent']:,} documents sent,"
        f" {made['deleted']:,} deleted in {made['store_seconds']} s ({made['store_seconds'] / max(whole, 1e-9):.1%} of"
        f" a whole publication), the index updated in {made['index_seconds']} s;"
        f" {asked['equal_hits'] / max(1, asked['hits']):.2%} of {asked['hits']:,} hits equal,"
        f" {asked['same_order_and_scores']} of {asked['asked']} rankings to the last bit; of 1,000 candidates"
        f" {made['candidates']['bm25']:.2%} by words and {made['candidates']['ncs_centred']:.2%} by vectors"
    )


@contextmanager
def _never_anew() -> Iterator[None]:
    before, publish.DRIFT = publish.DRIFT, float("inf")
    try:
        yield
    finally:
        publish.DRIFT = before
