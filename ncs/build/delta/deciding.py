"""Which documents an index consists of, where files of its base were replaced by files of a delta.

Of documents that are the same, the first in the order of the files is a row and the others are copies of it, as in a
build. A copy in a file of the base has no content there: where it comes first, its file must be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Digests = NDArray[np.uint64]

DOCUMENT, COPY, LATE = range(3)
"""Of the base; a copy of the base; of the delta."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a base or a delta holds: file of each document [n], ascending, and digests [n], 0 for a document that is
    never a copy; of each copy its file and the document [copies]."""

    file: Numbers
    digest: Digests
    copy_file: Numbers
    copy_row: Numbers


@dataclass(frozen=True, slots=True)
class Decided:
    """held: where each row is held, numbers of the base and behind them of the delta. copies: [m, 2], of every copy
    what it is one of, in the same numbers, and where it stands (ncs.build.delta.store.COPIES). Files that must be read
    before this holds: `missing`, numbers of the base."""

    held: Numbers
    copies: Numbers
    copy_places: Numbers
    """The place in the order of the files of each copy."""
    missing: Numbers


def decide(base: Held, delta: Held, base_places: Numbers, delta_places: Numbers) -> Decided | None:
    """base_places, delta_places: where each file stands in the order of all, -1 for one that is not there any more.

    None where the base's files are not in the order in which they were.
    """
    at, late_at = base_places[base.file], delta_places[delta.file]
    copied_at = base_places[base.copy_file]
    here, copied = at >= 0, np.flatnonzero(copied_at >= 0)
    kept = at[here]
    if len(kept) and (np.diff(kept) < 0).any():
        return None
    lost = copied[~here[base.copy_row[copied]]]
    asked = np.unique(np.concatenate([delta.digest, base.digest[base.copy_row[lost]]]))
    asked = asked[asked > 0]
    rows = np.flatnonzero(here & _among(base.digest, asked))
    copies = copied[_among(base.digest[base.copy_row[copied]], asked)]
    late = np.flatnonzero(delta.digest > 0)
    parts = (
        (base.digest[rows], at[rows], rows, DOCUMENT),
        (base.digest[base.copy_row[copies]], copied_at[copies], copies, COPY),
        (delta.digest[late], late_at[late], late, LATE),
    )
    digest, place, number = (np.concatenate([part[i] for part in parts]) for i in range(3))
    kind = np.repeat([DOCUMENT, COPY, LATE], [len(part[0]) for part in parts])
    order = np.lexsort((number, kind, place, digest))
    digest, place, number, kind = digest[order], place[order], number[order], kind[order]
    first = np.ones(len(digest), np.bool_)
    first[1:] = digest[1:] != digest[:-1]
    missing = np.unique(base.copy_file[number[first & (kind == COPY)]])
    n, m = len(base.file), len(base.copy_file)
    original = np.where(kind == LATE, number + n, number)[
        np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    ]
    living, late_living = here.copy(), np.ones(len(delta.file), np.bool_)
    living[number[~first & (kind == DOCUMENT)]] = False
    late_living[number[~first & (kind == LATE)]] = False
    held = _merged(at, living, late_at, late_living)
    source = number + np.array([0, n, n + m])[kind]
    settled = np.setdiff1d(copied, copies, assume_unique=True)
    of = np.concatenate([base.copy_row[settled], original[~first]])
    sources = np.concatenate([settled + n, source[~first]])
    places = np.concatenate([copied_at[settled], place[~first]])
    by_place = np.lexsort((sources, places))
    return Decided(held, np.stack([of, sources], axis=1)[by_place], places[by_place], missing)


def _among(digests: Digests, asked: Digests) -> NDArray[np.bool_]:
    """Which digests are among some, ascending."""
    if not len(asked):
        return np.zeros(len(digests), np.bool_)
    at = np.minimum(np.searchsorted(asked, digests), len(asked) - 1)
    found: NDArray[np.bool_] = asked[at] == digests
    return found


def _merged(at: Numbers, living: NDArray[np.bool_], late_at: Numbers, late_living: NDArray[np.bool_]) -> Numbers:
    """Documents of the base and the delta in the order of their files."""
    early, late = np.flatnonzero(living), np.flatnonzero(late_living)
    late = late[np.argsort(late_at[late], kind="stable")]
    found: Numbers = np.insert(early, np.searchsorted(at[early], late_at[late]), late + len(at))
    return found
