"""Fitting further rankers over an existing index; all other files are hard-linked into the new snapshot."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ncs.build.calibration import weigh_head
from ncs.build.pipeline import draft, open_documents, requested_rankers
from ncs.learn.embeddings import Embeddings
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, fit_ranker, read_ranker
from ncs.search.signals.head import NAME as HEAD
from ncs.storage.commit import open_writer
from ncs.storage.snapshot import Snapshot, open_snapshot
from ncs.storage.words import WordTable


def add_rankers(folder: Path | str, texts: Sequence[str], *, track: Track = silent) -> dict[str, float]:
    """Fit rankers, written as `unif:head=HEAD`, over the documents of an index; the seconds of each.

    A ranker that the index already has is fitted again. If one fails, the index is unchanged.
    Raises what opening an index raises, IndexBusy, and BadInput for rankers that cannot be fitted.
    """
    folder = Path(folder)
    open_snapshot(folder, Snapshot.close)  # fail before taking the lock if there is no index
    rankers = requested_rankers(texts)
    names, seconds = [ranker.name for ranker in rankers], {}
    with open_writer(folder) as writer, open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
        copies = [writer.copy_folder(segment.path, without=names) for segment in snapshot.segments]
        statistics = writer.copy_folder(snapshot.statistics, copies[0].name, without=names)
        for ranker in rankers:
            start_time = time.perf_counter()
            _fit(ranker, copies, statistics, track)
            seconds[ranker.name] = round(time.perf_counter() - start_time, 2)
        parts = [(path, segment.documents) for path, segment in zip(copies, snapshot.segments, strict=True)]
        tombstones = [
            np.stack([np.full(len(segment.dead_files), int(path.name)), segment.dead_files], axis=1)
            for path, segment in zip(copies, snapshot.segments, strict=True)
        ]
        description = snapshot.description
        counts = {**description.counts, "seconds": {**description.counts.get("seconds", {}), **seconds}}
        if HEAD in seconds and len(parts) == 1:
            with Snapshot(folder, draft(parts, statistics, counts)) as new:
                counts["calibration"] = {**counts.get("calibration", {}), "head": weigh_head(new)}
        before: Sequence[str] = description.config.get("rankers", ())  # type: ignore[assignment]
        others = [text for text in before if read_ranker(text)[0] not in seconds]
        writer.commit(
            parts,
            statistics,
            tombstones=np.concatenate(tombstones).astype(np.int64),
            config={**description.config, "rankers": [*others, *texts]},
            counts=counts,
            notes=description.notes,
            versions=description.versions,
        )
    return seconds


def _fit(ranker: Ranker, segments: Sequence[Path], statistics: Path, track: Track) -> None:
    first, *later = segments
    with open_documents(first) as documents:
        fit_ranker(ranker, WordTable.load(first), Embeddings.load(statistics), documents, track=track)
        ranker.save(statistics, first)
    for segment in later:
        with open_documents(segment) as documents:
            ranker.extend(statistics, segment, WordTable.load(segment), documents)
