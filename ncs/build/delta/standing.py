"""Where the documents of a base and its delta stand: files in the order of all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.store import FILES
from ncs.storage.file_roles import Places
from ncs.text.vocabulary import Vocabulary, numbered
from ncs.storage.words import ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.build.delta.making import Made
    from ncs.storage.files import FileTable
    from ncs.storage.documents import Store

    Numbers = NDArray[np.int64]


def save_places(path: Path, room: Path, made: Made, store: Store) -> None:
    """`places/` of all rows, numbered as a build numbers files, and the store's number of each. store: the delta's."""
    early, late = Places.of_folder(path), Places.of(store)
    order, files = made.filed.order, len(made.filed.base)
    filled = np.concatenate([_filled(made.filed.base), _filled(made.collected.sources)])
    own = np.where(order >= 0, order, files + ~order)  # of each file, its number among both
    at = (np.cumsum(filled) - 1)[own[filled[own]]]  # of each that has documents, its number in both stores
    np.save(room / FILES, np.where(at < len(early.role), at, ~(at - len(early.role))).astype(np.int32))
    number = np.full(int(filled.sum()), -1, np.int32)
    number[at] = np.arange(len(at), dtype=np.int32)
    vocabulary, ids, bounds = _titles(early, late, at)
    places = Places(
        number[np.concatenate([early.file, late.file + np.int32(len(early.role))])[made.stack.held]],
        _repositories(made, filled[own]),
        np.concatenate([early.role, late.role])[at],
        np.concatenate([early.named, late.named])[at],
        np.concatenate([early.outline, late.outline])[made.stack.held],
        ids,
        bounds,
        vocabulary,
    )
    places.save(room)


def _filled(table: FileTable) -> NDArray[np.bool_]:
    """Which files of a table have documents or copies: those that a store numbers."""
    filled: NDArray[np.bool_] = (np.diff(table.rows) + np.diff(table.copies)) > 0
    return filled


def _titles(early: Places, late: Places, at: Numbers) -> tuple[Vocabulary, NDArray[np.int32], Numbers]:
    """The titles of files, numbered as in the base and behind it: their stems, ids of these, and where each begins."""
    numbers = numbered(early.stems, late.stems)
    ids = np.concatenate([early.title_ids, numbers[late.title_ids]]).astype(np.int32)
    begins = np.concatenate([early.title_offsets[:-1], late.title_offsets[:-1] + len(early.title_ids)])
    lengths = np.concatenate([np.diff(early.title_offsets), np.diff(late.title_offsets)])[at]
    bounds = np.zeros(len(at) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    ids = ids[ranges(begins[at], lengths)]
    if not (numbers >= len(early.stems)).any():
        return early.stems, ids, bounds
    new = [word for word, number in zip(late.stems, numbers.tolist(), strict=True) if number >= len(early.stems)]
    words = [*early.stems, *new]
    vocabulary = Vocabulary.of(words)
    return vocabulary, vocabulary.ids_of(words)[ids], bounds


def _repositories(made: Made, filled: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The number of each filled file's repository, in the order in which they come."""
    owners, _ = made.filed.owners()
    _, first, numbers = np.unique(owners[filled], return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int32)
    place[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return place[numbers]
