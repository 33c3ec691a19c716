"""From signals and factors to the best few: what a file has shown already counts less, near copies are folded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ncs.search.signals import diversity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.ranking import Ranking
    from ncs.storage.document_facts import Structure

    Rows = NDArray[np.int64]


def ordered(found: Ranking, rows: Rows, structure: Structure, k: int, *, fold: bool, saturation: float) -> Ranking:
    """The best k of what was found, a ranking of these rows without scores."""
    total = sum(found.signals.values(), np.zeros(len(rows))) * np.prod(list(found.factors.values()), axis=0)
    positive = np.flatnonzero(total > 0)
    rows, total, places = rows[positive], total[positive], structure.places
    files = np.where(places.named[places.file[rows]], places.file[rows], -1).astype(np.int64)
    order = np.lexsort((rows, -total))
    clusters = structure.near_duplicates.clusters[rows[order]] if fold else None
    kept = diversity.saturated(total[order], files[order], k, factor=saturation, clusters=clusters)
    at = order[[position for position, _ in kept]]
    final = np.array([score for _, score in kept])
    again = np.lexsort((rows[at], -final))
    at, final = at[again], final[again]
    shares = np.divide(final, total[at], out=np.zeros(len(at)), where=total[at] > 0)
    signals = {name: values[positive][at] for name, values in found.signals.items()}
    factors = {name: values[positive][at] for name, values in found.factors.items()} | {"saturation": shares}
    return replace(found, rows=rows[at].tolist(), scores=final.tolist(), signals=signals, factors=factors)
