"""The probability that a hit is right: a logistic model, and the file of an index with its tuned weights.

    P(right) = 1 / (1 + exp(-(intercept + sum of coefficient * feature)))

over FEATURES, which do not depend on the scale of a score. The coefficients are fitted to questions of judged sets
(evaluation.confidence); a hit is never more probable than those before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BROKEN, BadInput, IndexDamaged
from ncs.files import read_json, replace_file
from ncs.messages import NO_CONFIDENCE, OUT_OF_RANGE

if TYPE_CHECKING:
    from ncs.types import Scores

FEATURES = ("coverage", "evidence", "meaning", "name", "certain", "general", "share", "lead")
"""Features of a hit. idf and BM25 are divided by the idf of the rarest possible word; q: idf of the query.
coverage: c^3 (1 - exp(-q / 3)), c: the share of q that the document has; evidence: 1 - exp(-BM25 / 2); meaning: cosine;
name: the signal, unweighted; certain: maximum of the signals definition, verbatim and frame, 0 to 1; general: score by
the general head beyond chance, at most 1; share: score / score of the best hit; lead: (score - next score) / score,
for a lone hit c."""
STRONG, LIKELY, WEAK = 0.6, 0.3, 0.1
"""Least probabilities of these likelihoods."""
TUNED = "tuned.json"
"""The weights that `ncs tune` learned, in the index folder."""


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic model over FEATURES without negative coefficients."""

    intercept: float
    coefficients: tuple[float, ...]

    def probabilities(self, features: Scores) -> Scores:
        """[n, len(FEATURES)], of the hits in order -> [n]."""
        probabilities: Scores = 1 / (1 + np.exp(-(self.intercept + features @ np.array(self.coefficients))))
        return np.minimum.accumulate(probabilities)


MODEL = Model(-7.84, (0.49, 1.04, 0.93, 1.36, 1.72, 1.66, 4.01, 4.12))
"""Fitted by `python -m evaluation.confidence` (docs/ranking.md)."""


def save_weights(weights: Mapping[str, float], index: Path) -> None:
    """Write TUNED; raises OSError."""
    replace_file(index / TUNED, json.dumps({"weights": dict(weights)}, indent=1) + "\n")


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


def likelihood(confidence: float | None) -> str:
    """The likelihood of a confidence: strong, likely, weak or "" (also without a confidence)."""
    words = {"strong": STRONG, "likely": LIKELY, "weak": WEAK}
    return next((word for word, least in words.items() if confidence is not None and confidence >= least), "")


def is_confident(confidence: float | None, least: float) -> bool:
    """Whether a hit is probable enough; raises BadInput if its ranker gives no confidence, or least is not 0 to 1."""
    if not 0 <= least <= 1:
        raise BadInput(OUT_OF_RANGE.format(name="min_confidence", value=least, bound="from 0 to 1"))
    if confidence is None:
        raise BadInput(NO_CONFIDENCE)
    return confidence >= least
