"""What people answered, and which pair comes next: random, those with the fewest judgments first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from evaluation.annotation.pool import Pair
from ncs.types import Qrels

GRADES = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. pair: its number; grade: 0 to 3, None for skipped; at: UTC, ISO 8601."""

    annotator: str
    pair: int
    grade: int | None
    notes: str
    at: str


def grades_of(answers: Sequence[Answer]) -> dict[int, dict[str, int]]:
    """pair -> annotator -> grade; skipped ones are left out."""
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for answer in answers:
        if answer.grade is not None:
            found[answer.pair][answer.annotator] = answer.grade
    return dict(found)


def next_pair(pairs: Sequence[Pair], answers: Sequence[Answer], annotator: str, seed: int) -> Pair | None:
    """What an annotator judges next; None when all is done.

    "Randomized but weakly ordered by the number of annotations already collected" (section 3): of the pairs that the
    annotator has not judged those with the fewest judgments, and among these a draw that seed, annotator and pair
    decide. So the order repeats, and two people who begin at once do not judge the same. Skipped ones come last.
    """
    judged = grades_of(answers)
    skips = Counter(answer.pair for answer in answers if answer.grade is None and answer.annotator == annotator)
    open_ = [pair for pair in pairs if annotator not in judged.get(pair.number, ())]

    def place(pair: Pair) -> tuple[int, int, bytes]:
        return skips[pair.number], len(judged.get(pair.number, ())), _draw(seed, annotator, pair.number)

    return min(open_, key=place, default=None)


def _draw(seed: int, annotator: str, number: int) -> bytes:
    return blake2b(f"{seed}\0{number}\0{annotator}".encode(), digest_size=8).digest()


def mean_grades(pairs: Sequence[Pair], answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """query id -> document id -> mean of all annotators' grades."""
    judged = grades_of(answers)
    found: dict[str, dict[str, float]] = {}
    for pair in pairs:
        if given := judged.get(pair.number):
            found.setdefault(pair.query, {})[pair.document] = sum(given.values()) / len(given)
    return found


def qrels_of(pairs: Sequence[Pair], answers: Sequence[Answer]) -> Qrels:
    """The means as whole numbers, halves rounded up, as `corpora.codesearchnet` reads the Challenge's."""
    means = mean_grades(pairs, answers)
    return {query: {id: int(grade + 0.5) for id, grade in grades.items()} for query, grades in means.items()}
