"""What an epoch learns from, in which order: one row a question, sources by weight, no question twice in a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.data import Ids


def one_a_question(question: NDArray[np.int32], rows: Ids, draw: np.random.Generator) -> Ids:
    """Of these rows one of each question, drawn; the questions shuffled. question: [n], of all rows."""
    mixed = draw.permutation(rows)
    _, first = np.unique(question[mixed], return_index=True)
    drawn: Ids = mixed[draw.permutation(first)]
    return drawn


def epoch_order(
    question: NDArray[np.int32],
    source: NDArray[np.int16],
    rows: Ids,
    weights: Sequence[float],
    draw: np.random.Generator,
) -> Ids:
    """The rows of an epoch in their order: one row of each question, as often as the weight of its source says.

    A weight of 2.5 draws a question twice, and half of the questions a third time, each time another row where it has
    some; 0 leaves a source out. A question of several sources counts with that of the row that was drawn first.
    """
    by_source = np.asarray(weights, np.float64)
    rows = rows[by_source[source[rows]] > 0]
    chosen = one_a_question(question, rows, draw)
    wanted = by_source[source[chosen]]
    times = np.floor(wanted) + (draw.random(len(chosen)) < wanted % 1)
    passes = [chosen[times >= 1]]
    for count in range(2, int(times.max(initial=0)) + 1):
        again = np.isin(question[rows], question[chosen[times >= count]])
        passes.append(one_a_question(question, rows[again], draw))
    return passes[0] if len(passes) == 1 else draw.permutation(np.concatenate(passes))


def batches(question: NDArray[np.int32], order: Ids, size: int) -> Iterator[Ids]:
    """The rows in order, a question once in a batch: a second row of it waits for the next one.

    A last batch of a single row, which has no negatives, is left, and so is what can only stand beside its twin.
    """
    waiting, at = order[:0], 0
    while len(waiting) or at < len(order):
        batch, later = waiting[:size], waiting[size:]
        while True:
            _, first = np.unique(question[batch], return_index=True)
            again = np.ones(len(batch), bool)
            again[first] = False
            later, batch = np.concatenate([batch[again], later]), batch[~again]
            missing = min(size - len(batch), len(order) - at)
            if missing <= 0:
                break
            batch, at = np.concatenate([batch, order[at : at + missing]]), at + missing
        waiting = later
        if len(batch) > 1:
            yield batch
        elif at >= len(order):
            return
