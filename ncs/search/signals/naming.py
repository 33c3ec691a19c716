"""How far a function's name says what the question says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ncs.text.stems import Stems

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable


def agreement(
    table: WordTable, rows: NDArray[np.int64], asked: Mapping[str, float], stems: Stems | None = None
) -> NDArray[np.float64]:
    """The root of the weighted share of the question that each row's name holds, times the share of the name that
    the question holds, 0 to 1, [len(rows)]. asked: stem -> weight. stems: of the table's words, where they are noted.

    `hideSoftKeyboard` is all of "hide soft keyboard"; `hide` is a part, and so is `hideSoftKeyboardWhenScrolled`.
    """
    stems = stems or Stems(table.vocabulary)
    ids, offsets = table.select_rows(("name",), rows)
    total = sum(asked.values())
    if not total or not len(ids):
        return np.zeros(len(rows))
    known = stems.of_stems(asked)
    order = np.argsort(known)
    numbers = stems.numbers(ids)
    at = np.minimum(np.searchsorted(known[order], numbers), len(order) - 1)
    held = np.flatnonzero(known[order][at] == numbers)
    owners = np.repeat(np.arange(len(rows)), np.diff(offsets))[held]
    precision = np.bincount(owners, minlength=len(rows)) / np.maximum(np.diff(offsets), 1)
    # a word counts once, however often it is there
    _, first = np.unique(owners * np.int64(len(table.vocabulary)) + ids[held], return_index=True)
    first.sort()  # added up in the order of the name, whatever numbers its words have
    weights = np.array(list(asked.values()))[order[at[held[first]]]]
    recall = np.minimum(np.bincount(owners[first], weights, minlength=len(rows)) / total, 1.0)
    found: NDArray[np.float64] = np.sqrt(recall) * precision
    return found
