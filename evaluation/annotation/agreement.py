"""How far annotators agree: Cohen's kappa with squared weights, as CodeSearchNet reports it (section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evaluation.annotation.answers import GRADES, Answer, grades_of
from ncs.errors import BadInput

EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two annotators over the pairs that both judged. same: share of equal grades; kappa: None where it is 0 / 0."""

    one: str
    other: str
    pairs: int
    same: float
    kappa: float | None


def kappa(ours: Sequence[int], theirs: Sequence[int]) -> float | None:
    """Cohen's kappa with weights (i - j)^2: 1 agree, 0 as by chance; None where both always gave one same grade.

    One minus the disagreement seen, over that of two who grade independently with the same frequencies.

    >>> kappa([0, 1, 2, 3], [0, 1, 2, 3]), kappa([0, 3], [3, 0]), kappa([2, 2], [2, 2])
    (1.0, -1.0, None)
    """
    seen = np.zeros((len(GRADES), len(GRADES)))
    np.add.at(seen, (np.asarray(ours, np.intp), np.asarray(theirs, np.intp)), 1)
    weights = np.subtract.outer(GRADES, GRADES) ** 2
    chance = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(seen.sum(), 1)
    expected = float((weights * chance).sum())
    return 1 - float((weights * seen).sum()) / expected if expected else None


def agreements(answers: Sequence[Answer]) -> list[Agreement]:
    """Every two annotators who judged some pair both, by name; of more than two also everybody.

    Everybody: each two judgments of one pair count once in each order, so that the order of names does not matter.
    Raises BadInput where no pair was judged by two people.
    """
    judged = grades_of(answers)
    names = sorted({name for grades in judged.values() for name in grades})
    found, ours, theirs = list[Agreement](), list[int](), list[int]()
    for one, other in combinations(names, 2):
        both = [(grades[one], grades[other]) for grades in judged.values() if one in grades and other in grades]
        if both:
            a, b = zip(*both, strict=True)
            found.append(_agreement(one, other, a, b, len(both)))
            ours += [*a, *b]
            theirs += [*b, *a]
    if not found:
        raise BadInput("no function was judged by two people for the same query; agreement needs a second annotator")
    if len(names) > 2:
        twice = sum(len(grades) > 1 for grades in judged.values())
        found.append(_agreement(EVERYBODY, "", ours, theirs, twice))
    return found


def _agreement(one: str, other: str, ours: Sequence[int], theirs: Sequence[int], pairs: int) -> Agreement:
    same = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)
    return Agreement(one, other, pairs, same, kappa(ours, theirs))


def shown(found: Sequence[Agreement]) -> str:
    """A line an agreement."""
    lines = []
    for each in found:
        who = f"{each.one} and {each.other}" if each.other else each.one
        value = "not defined (all grades are the same)" if each.kappa is None else f"{each.kappa:.3f}"
        lines.append(f"{who}: {each.pairs:,} judged by both, {each.same:.0%} alike, squared Cohen's kappa {value}")
    return "\n".join(lines)
