"""Agreement of annotators: Cohen's kappa with squared weights, as CodeSearchNet reports it (section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ncs.errors import BadInput

GRADES = (0, 1, 2, 3)
Grades = Mapping[int, Mapping[str, int]]
"""pair -> annotator -> grade."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Annotators over the pairs that two of them judged. same: share of equal grades; kappa: None where it is 0 / 0."""

    names: str
    pairs: int
    same: float
    kappa: float | None

    def __str__(self) -> str:
        value = "not defined (all grades are the same)" if self.kappa is None else f"{self.kappa:.3f}"
        return f"{self.names}: {self.pairs:,} judged by both, {self.same:.0%} alike, squared Cohen's kappa {value}"


def agreements(grades: Grades) -> list[Agreement]:
    """The agreement of every two annotators with common pairs, by name; of more than two also of everybody.

    Everybody: each two judgments of a pair count in both orders, so that the order of names does not matter.
    Raises BadInput where no pair has two annotators.
    """
    names = sorted({name for by_annotator in grades.values() for name in by_annotator})
    result, left, right = list[Agreement](), list[int](), list[int]()
    for first, second in combinations(names, 2):
        common = [(each[first], each[second]) for each in grades.values() if first in each and second in each]
        if common:
            a, b = zip(*common, strict=True)
            result.append(_agreement(f"{first} and {second}", len(common), a, b))
            left += [*a, *b]
            right += [*b, *a]
    if not result:
        raise BadInput("no function was judged by two people for the same query; agreement needs a second annotator")
    if len(names) > 2:
        result.append(_agreement("everybody", sum(len(each) > 1 for each in grades.values()), left, right))
    return result


def _agreement(names: str, pairs: int, left: Sequence[int], right: Sequence[int]) -> Agreement:
    from sklearn.metrics import cohen_kappa_score

    varied = len({*left, *right}) > 1
    kappa = float(cohen_kappa_score(left, right, labels=GRADES, weights="quadratic")) if varied else None
    return Agreement(names, pairs, float(np.mean(np.equal(left, right))), kappa)
