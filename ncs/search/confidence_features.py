"""The features of each hit for its confidence: `ncs.learn.confidence.FEATURES`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.learn.confidence import FEATURES, lead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.ranking import AblatedScores, Ranking

    Scores = NDArray[np.float64]


def confidence_features(ranking: Ranking, ablated: AblatedScores | None = None) -> Scores:
    """Features [hits, len(FEATURES)] of a ranking of the default ranker, in its order."""
    analysis = ranking.analysis
    if analysis is None:
        raise BadInput("only the default ranker's hits have features of confidence; use it")
    if not ranking.rows:
        return np.zeros((0, len(FEATURES)))
    n = len(ranking.rows)
    total = max(sum(analysis.idf.values()), 1e-9)
    mass = total / float(np.log1p(2 * analysis.documents))
    coverage, strength = np.zeros(n), np.zeros(n)
    for stem, impacts in ranking.impacts.items():
        coverage += (impacts > 0) * analysis.idf[stem] / total
        strength += impacts / total
    meaning, name, definition = (ranking.features[each].copy() for each in ("meaning", "name", "definition"))
    if ablated:
        here = np.array(ranking.rows, np.int64) == ablated.row
        coverage[here] = ablated.coverage
        strength[here] = min(ablated.plain / total, ablated.coverage)
    coverage_feature, evidence = coverage**3 * (1 - np.exp(-mass / 3)), 1 - np.exp(-strength * mass / 2)
    share = np.array(ranking.scores) / ranking.scores[0]
    return np.column_stack(
        [coverage_feature, evidence, strength, meaning, name, definition, share, lead(ranking.scores)]
    )
