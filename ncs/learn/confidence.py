"""How probable it is that a hit is what was asked for, and what a corpus has taught its index beside its words.

    P(right) = 1 / (1 + exp(-(intercept + sum of coefficient * trait)))

over TRAITS, which do not depend on the scale of a score. The coefficients are fitted to questions made from the
documents themselves (ncs.learn.calibration), towards DEFAULT, which stands where a corpus has too few of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.minimising import minimise
from ncs.storage import manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

TRAITS = ("coverage", "evidence", "strength", "meaning", "name", "definition", "share", "lead")
"""Of a hit; words are counted by idf, a word as rare as can be is 1, and the question has q of them:
coverage: the part c of the question that the document's words hold, as c^3 (1 - exp(-q / 3)): two words held say less
than six, and one that is missing says much; strength: its BM25 over q; evidence: its BM25, as 1 - exp(-BM25 / 2);
meaning: cosine; name, definition: the signals, unweighted; share: its score over the best hit's; lead: what of its
score it is ahead of the next hit."""
BUILT, TUNED = "calibration.json", manifest.TUNED
"""What the build learnt; and what `ncs tune` did, which goes before it and is no part of the manifest."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """Probabilities against what came true. bins: (mean probability, share that was right, how many), lowest first."""

    error: float
    """Expected calibration error: the mean distance of the two over all, by bins."""
    bins: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic model over TRAITS; no coefficient is negative, so that more of a trait never lowers it."""

    intercept: float
    coefficients: tuple[float, ...]

    def probabilities(self, traits: Scores) -> Scores:
        """[n, len(TRAITS)] -> [n]."""
        found: Scores = 1 / (1 + np.exp(-(self.intercept + traits @ np.array(self.coefficients))))
        return found


DEFAULT = Model(-7.35, (2.4, 3.9, 2.2, 0.2, 1.2, 1.2, 2.0, 2.6))
"""Fitted to six corpora at once, 613 to 257,906 functions; the intercept to people's questions (DESIGN.md)."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What an index knows of its own questions. weights: those of HybridRanker that are not its defaults."""

    weights: Mapping[str, float] = field(default_factory=dict)
    model: Model = DEFAULT

    def save(self, path: Path) -> None:
        """Write a small JSON file, at once or not at all."""
        part = path.with_name(f"{path.name}.part")
        part.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        part.replace(path)

    @classmethod
    def load(cls, folder: Path, *, tuned: bool = True) -> Learnt:
        """From a data folder; the defaults where it holds none; tuned=False: what the build learnt.

        Raises IndexDamaged for what is no such file.
        """
        name = next((name for name in (TUNED, BUILT)[not tuned :] if (folder / name).is_file()), None)
        if name is None:
            return cls()
        try:
            return cls._read(json.loads((folder / name).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            remedy = "remove it with: ncs tune --reset" if name == TUNED else "build the index again"
            raise IndexDamaged(f"cannot read {folder / name} ({error}); {remedy}") from error

    @classmethod
    def _read(cls, found: Mapping[str, Any]) -> Learnt:
        weights = {str(name): float(value) for name, value in found["weights"].items()}
        coefficients = tuple(float(value) for value in found["model"]["coefficients"])
        model = Model(float(found["model"]["intercept"]), coefficients)
        if (
            len(coefficients) != len(TRAITS)
            or not np.isfinite([*weights.values(), model.intercept, *coefficients]).all()
        ):
            raise ValueError("numbers are missing")
        return cls(weights, model)


def keep_tuned(index: Path, data: Path) -> tuple[str, ...]:
    """Let new files of an index keep the weights tuned for those it has now; a line that says so, if there are any.

    Only the weights: how probable a hit is was learnt anew.
    """
    standing = manifest.current_generation(index)
    if standing is None or not (index / standing / TUNED).is_file():
        return ()
    tuned, built = Learnt.load(index / standing), Learnt.load(data, tuned=False)
    Learnt(tuned.weights, built.model).save(data / TUNED)
    return ("The weights that `ncs tune` learnt are kept; go back to those of the build with: ncs tune --reset",)


def fit(
    traits: Scores,
    right: NDArray[np.bool_],
    *,
    weights: Scores | None = None,
    towards: Model = DEFAULT,
    strength: float = 3.0,
) -> Model:
    """The most probable model, regularised towards another one; `strength` is of the penalty, in hits.

    weights: how many hits each one stands for, [n]; else one.
    """
    start = np.array([towards.intercept, *towards.coefficients])
    rows = np.column_stack([np.ones(len(traits)), traits])
    counts = np.ones(len(traits)) if weights is None else weights

    def loss(at: Scores) -> tuple[float, Scores]:
        z = rows @ at
        slope = counts * (1 / (1 + np.exp(-z)) - right)
        away = at - start
        away[0] = 0  # how many hits are right at all is for the corpus to say
        value = counts @ (np.logaddexp(0, z) - z * right) + strength * away @ away / 2
        return float(value), rows.T @ slope + strength * away

    found = minimise(loss, start, [-np.inf, *[0.0] * len(TRAITS)])
    return Model(round(float(found[0]), 6), tuple(round(float(value), 6) for value in found[1:]))


def reliability(
    probabilities: Scores, right: NDArray[np.bool_], *, weights: Scores | None = None, bins: int = 10
) -> Reliability:
    """Ten bins of equal width; empty ones are left out. weights: how many hits each one stands for, as in `fit`.

    >>> reliability(np.array([0.1, 0.1, 0.9, 0.7]), np.array([False, False, True, True]))
    Reliability(error=0.15, bins=((0.1, 0.0, 2), (0.7, 1.0, 1), (0.9, 1.0, 1)))
    """
    numbers = np.minimum((probabilities * bins + 1e-9).astype(np.int64), bins - 1)
    counts = np.ones(len(probabilities)) if weights is None else weights
    table, error = [], 0.0
    for number in np.unique(numbers):
        inside = numbers == number
        mass = float(counts[inside].sum())
        said, true = (float(counts[inside] @ values[inside]) / mass for values in (probabilities, right))
        table.append((said, true, int(inside.sum())))
        error += abs(said - true) * mass / float(counts.sum())
    return Reliability(round(error, 4), tuple((round(said, 4), round(true, 4), n) for said, true, n in table))


def describe(model: Model) -> dict[str, float]:
    """The model for people to read."""
    return {"intercept": model.intercept, **dict(zip(TRAITS, model.coefficients, strict=True))}


def lead(scores: Sequence[float]) -> Scores:
    """What of its score each hit is ahead of the next one; the last one, nothing.

    >>> lead([4.0, 3.0, 3.0]).tolist()
    [0.25, 0.0, 0.0]
    """
    values = np.array(scores, np.float64)
    ahead = np.zeros(len(values))
    ahead[:-1] = (values[:-1] - values[1:]) / np.maximum(values[:-1], 1e-9)
    return ahead


def is_sure(confidence: float | None, least: float) -> bool:
    """Whether a hit is likely enough; raises BadInput where its ranker says nothing of that, or least is no share."""
    if not 0 <= least <= 1:
        raise BadInput(f"a confidence is from 0 to 1, not {least}")
    if confidence is None:
        raise BadInput("this ranker gives no confidence; leave out --ranker, or --min-confidence")
    return confidence >= least
