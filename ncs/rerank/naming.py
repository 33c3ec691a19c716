"""How far a function's name says what the question says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ncs.lexical import stem_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.vocabulary import WordTable


def agreement(table: WordTable, rows: NDArray[np.int64], asked: Mapping[str, float]) -> NDArray[np.float64]:
    """The root of the weighted share of the question that each row's name holds, times the share of the name that
    the question holds, 0 to 1, [len(rows)]. asked: stem -> weight.

    `hideSoftKeyboard` is all of "hide soft keyboard"; `hide` is a part, and so is `hideSoftKeyboardWhenScrolled`.
    """
    ids, offsets = table.select_rows(("name",), rows)
    known, numbers = np.unique(ids, return_inverse=True)
    stems = stem_all(table.vocabulary.word(int(id)) for id in known)
    total = sum(asked.values())
    if not total or not len(known):
        return np.zeros(len(rows))
    owners = np.repeat(np.arange(len(rows)), np.diff(offsets))
    held = np.array([stem in asked for stem in stems], np.bool_)[numbers]
    precision = np.bincount(owners[held], minlength=len(rows)) / np.maximum(np.diff(offsets), 1)
    once = np.unique(np.stack([owners, numbers])[:, held], axis=1)  # a word counts once, however often it is there
    weights = np.array([asked.get(stem, 0.0) for stem in stems])
    recall = np.minimum(np.bincount(once[0], weights[once[1]], minlength=len(rows)) / total, 1.0)
    found: NDArray[np.float64] = np.sqrt(recall) * precision
    return found
