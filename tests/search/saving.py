"""A ranker written into a copy of an index and opened from there."""

from __future__ import annotations

import shutil
from pathlib import Path

from ncs.index import Index
from ncs.search.rankers import Ranker, create_ranker
from ncs.storage.snapshot import Snapshot


def save(ranker: Ranker, index: Index, folder: Path) -> Snapshot:
    """The snapshot of a copy of the index in `folder`, with what the ranker saves."""
    if not folder.exists():
        shutil.copytree(index.folder, folder)
    with Index.load(folder) as copy:
        snapshot = Snapshot(folder, copy.description)
    ranker.save(snapshot.statistics, snapshot.segments[0].path)
    return snapshot


def saved_and_loaded(ranker: Ranker, index: Index, folder: Path) -> Ranker:
    """A new ranker of this name that was opened from what this one saved."""
    loaded = create_ranker(ranker.name)
    loaded.load(save(ranker, index, folder))
    return loaded
