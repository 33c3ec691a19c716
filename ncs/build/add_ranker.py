"""Rankers on request for an index that stands: only they are fitted, all its other files stay as they are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ncs.build.building import requested_rankers
from ncs.learn.embeddings import Embeddings
from ncs.storage.folder import new_generation
from ncs.learn.head_calibration import weigh_head
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, fit_ranker, read_ranker
from ncs.search.signals.head import NAME as HEAD

if TYPE_CHECKING:
    from ncs.storage.folder import Generation, Manifest


def add_rankers(folder: Path | str, asked: Sequence[str], *, track: Track = silent) -> dict[str, float]:
    """Fit rankers, written as `unif:head=HEAD`, over the documents of an index; the seconds of each.

    One that the index has already is made anew. The index answers as before until all are fitted, and stays as it was
    if one fails. Raises what `Index.load` raises, IndexBusy, and BadInput for rankers that cannot be fitted.
    """
    folder = Path(folder)
    Index.load(folder).close()  # before the lock: there is one to add to
    rankers = requested_rankers(asked)
    with new_generation(folder) as generation, Index.load(folder) as standing:
        generation.begin_with(standing.data, without=[ranker.name for ranker in rankers])
        seconds = {ranker.name: _fitted(ranker, standing, generation.path, track) for ranker in rankers}
        weighed = weigh_head(generation.path, standing.store) if HEAD in seconds else None
        _commit(generation, standing.manifest, asked, seconds, weighed)
    return seconds


def _fitted(ranker: Ranker, standing: Index, path: Path, track: Track) -> float:
    began = time.perf_counter()
    fit_ranker(ranker, standing.words(), Embeddings.load(standing.data), standing.store, track=track)
    ranker.save(path)
    return round(time.perf_counter() - began, 2)


def _commit(
    generation: Generation,
    manifest: Manifest,
    asked: Sequence[str],
    seconds: dict[str, float],
    weighed: Mapping[str, object] | None,
) -> None:
    """The manifest as it was, with the new rankers in its configuration, so that the next update fits them too."""
    before = cast("Sequence[str]", manifest.config.get("rankers", ()))
    kept = [text for text in before if read_ranker(text)[0] not in seconds]
    took = cast("dict[str, float]", manifest.counts.get("seconds", {}))
    counts = {**manifest.counts, "seconds": {**took, **seconds}}
    if weighed:
        counts["calibration"] = {**cast("Mapping[str, object]", counts.get("calibration", {})), "head": weighed}
    generation.commit(
        config={**manifest.config, "rankers": [*kept, *asked]},
        counts=counts,
        notes=manifest.notes,
        versions=manifest.versions,
    )
