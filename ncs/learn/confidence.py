"""The probability that a hit is right: a logistic model, and the files of an index with it and its tuned weights.

    P(right) = 1 / (1 + exp(-(intercept + sum of coefficient * feature)))

over FEATURES, which do not depend on the scale of a score. The coefficients are fitted to queries made of the
documents themselves (ncs.build.calibration), toward DEFAULT, which stands where a corpus has too few of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BROKEN, BadInput, IndexDamaged, reading
from ncs.files import read_json, replace_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Scores

FEATURES = ("coverage", "evidence", "strength", "meaning", "name", "definition", "share", "lead")
"""Features of a hit; words are counted by idf, a word as rare as can be is 1, and the query has q of them:
coverage: the part c of the query that the document's words have, as c^3 (1 - exp(-q / 3)): two words say less than six,
and a missing one says much; strength: its BM25 over q; evidence: its BM25, as 1 - exp(-BM25 / 2);
meaning: cosine; name, definition: the signals, unweighted; share: its score over the best hit's; lead: by how much of
its score it is ahead of the next hit."""
BUILT, TUNED = "calibration.json", "tuned.json"
"""The model, among the statistics of a build; and the weights that `ncs tune` learned, in the index folder itself."""


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic model over FEATURES; no coefficient is negative, so that more of a feature never lowers it."""

    intercept: float
    coefficients: tuple[float, ...]

    def probabilities(self, features: Scores) -> Scores:
        """[n, len(FEATURES)] -> [n]."""
        probabilities: Scores = 1 / (1 + np.exp(-(self.intercept + features @ np.array(self.coefficients))))
        return probabilities


DEFAULT = Model(-7.35, (2.4, 3.9, 2.2, 0.2, 1.2, 1.2, 2.0, 2.6))
"""Fitted to six corpora at once, 613 to 257,906 functions; the intercept to people's questions (DESIGN.md)."""


def save_model(model: Model, statistics: Path) -> None:
    """Write BUILT."""
    _write(statistics / BUILT, {"model": asdict(model)})


def load_model(statistics: Path) -> Model:
    """The model of a build, DEFAULT without one; raises IndexDamaged for an invalid file."""
    path = statistics / BUILT
    if not path.exists():
        return DEFAULT
    with reading(path):
        content = read_json(path)["model"]
        model = Model(float(content["intercept"]), tuple(float(value) for value in content["coefficients"]))
        if len(model.coefficients) != len(FEATURES) or not np.isfinite([model.intercept, *model.coefficients]).all():
            raise ValueError("numbers are missing")
    return model


def save_weights(weights: Mapping[str, float], index: Path) -> None:
    """Write TUNED; raises OSError."""
    _write(index / TUNED, {"weights": dict(weights)})


def load_weights(index: Path) -> Mapping[str, float]:
    """The weights of HybridRanker that `ncs tune` changed in an index folder; raises IndexDamaged."""
    path = index / TUNED
    try:
        weights = {name: float(value) for name, value in read_json(path, follow=False)["weights"].items()}
        if not np.isfinite([*weights.values()]).all():
            raise ValueError("a weight is no number")
    except FileNotFoundError:
        return {}
    except (*BROKEN, OSError) as error:
        raise IndexDamaged(f"cannot read {path} ({error}); remove it with: ncs tune --reset") from error
    return weights


def _write(path: Path, content: object) -> None:
    replace_file(path, json.dumps(content, indent=1) + "\n")


def fit(
    features: Scores,
    right: NDArray[np.bool_],
    weights: Scores,
    *,
    prior: Model = DEFAULT,
    strength: float = 3.0,
) -> Model:
    """The most probable model, regularized toward `prior`; `strength` is of the penalty, in hits.

    weights: how many hits each one stands for, [n].
    """
    from scipy.optimize import minimize  # only a build needs it

    start = np.array([prior.intercept, *prior.coefficients])
    rows = np.column_stack([np.ones(len(features)), features])

    def loss(at: Scores) -> tuple[float, Scores]:
        z = rows @ at
        slope = weights * (1 / (1 + np.exp(-z)) - right)
        away = at - start
        away[0] = 0  # how many hits are right at all is for the corpus to say
        value = weights @ (np.logaddexp(0, z) - z * right) + strength * away @ away / 2
        return float(value), rows.T @ slope + strength * away

    bounds = [(None, None), *[(0.0, None)] * len(FEATURES)]
    options = {"ftol": 1e-12, "gtol": 1e-8, "maxiter": 1000}
    best = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x
    return Model(round(float(best[0]), 6), tuple(round(float(value), 6) for value in best[1:]))


def is_confident(confidence: float | None, least: float) -> bool:
    """Whether a hit is probable enough; raises BadInput if its ranker gives no confidence, or least is not 0 to 1."""
    if not 0 <= least <= 1:
        raise BadInput(f"confidences are from 0 to 1, not {least}")
    if confidence is None:
        raise BadInput("this ranker gives no confidence; leave out --ranker, or --min-confidence")
    return confidence >= least
