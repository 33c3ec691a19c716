"""Exact and near duplicates of one language, found on disk: memory holds six bytes a function and one block.

datasketch's own LSH tables are dictionaries in memory, or a database server. Here each band is a file of keys, row by
row; a pass over it takes the keys of one remainder, sorts these, and compares the rows that share a key. A cluster is
what hangs together (Allamanis takes the relation as transitive); its first pair, else its first function, stays.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from corpora.codesearchnet.signatures import BANDS, LEAST, MULTISET, ROW, alike

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]
    Rows = NDArray[np.int64]

BLOCK = 1 << 16
"""Rows that are read at once."""
SORTED = 1 << 19
"""Keys that are sorted at once."""
HEADS = 16
"""Functions of a key that every further one is compared with, so that a key of thousands costs no square."""
KEPT, EXACT, NEAR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Part:
    """The ROWs and identifiers' hashes of one repository and language, as files."""

    rows: Path
    names: Path


def duplicates(parts: Sequence[Part], scratch: Path) -> NDArray[np.uint8]:
    """What becomes of every function of the parts, in their order: KEPT, or a duplicate, EXACT or NEAR of the kept one.

    scratch: an empty folder for 148 bytes a function and 4 an identifier, while this runs.
    """
    documented = _spread(parts, scratch)
    clusters = _Clusters(documented)
    with _Names(scratch) as names:
        for group in _groups(scratch / "digest.0"):
            for row in group[1:]:
                if names.digest(row) == names.digest(group[0]):
                    clusters.join(group[0], row)
        for band in range(BANDS):
            for group in _groups(scratch / f"keys.{band}"):
                _join_alike(group, names, clusters)
        found = np.zeros(len(documented), np.uint8)
        for row in range(len(documented)):
            if (kept := clusters.first(row)) != row:
                found[row] = EXACT if names.digest(row) == names.digest(kept) else NEAR
    return found


def _spread(parts: Sequence[Part], scratch: Path) -> bytearray:
    """Columns of all rows into files; which of them are pairs."""
    documented = bytearray()
    end = 0
    with ExitStack() as stack:
        columns = ["digest.0", "digest.1", *(f"keys.{band}" for band in range(BANDS)), "ends", "names"]
        files = {name: stack.enter_context((scratch / name).open("wb")) for name in columns}
        for part in parts:
            for rows in blocks(part.rows):
                documented += rows["documented"].tobytes()
                for at in range(2):
                    files[f"digest.{at}"].write(np.ascontiguousarray(rows["digest"][:, at]).tobytes())
                for band in range(BANDS):
                    files[f"keys.{band}"].write(np.ascontiguousarray(rows["keys"][:, band]).tobytes())
                ends = end + np.cumsum(rows["identifiers"], dtype=np.int64)
                end = int(ends[-1])
                files["ends"].write(ends.tobytes())
            with part.names.open("rb") as file:
                while data := file.read(1 << 20):
                    files["names"].write(data)
    return documented


def blocks(path: Path) -> Iterator[NDArray[Any]]:
    """The ROWs of a file, BLOCK at a time."""
    with path.open("rb") as file:
        while data := file.read(BLOCK * ROW.itemsize):
            yield np.frombuffer(data, ROW)


def _groups(path: Path) -> Iterator[list[int]]:
    """Rows that share a key, ascending, keys of 0 left out; groups of one are none."""
    total = path.stat().st_size // 8
    passes = -(-total // SORTED)
    for remainder in range(passes):
        keys, rows = _chosen(path, passes, remainder)
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        if not len(same):
            continue
        starts = same[np.concatenate([[True], np.diff(same) > 1])]
        ends = same[np.concatenate([np.diff(same) > 1, [True]])] + 2
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield rows[start:end].tolist()


def _chosen(path: Path, passes: int, remainder: int) -> tuple[Keys, Rows]:
    keys, rows = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    with path.open("rb") as file:
        at = 0
        while data := file.read(BLOCK * 8):
            block = np.frombuffer(data, "<u8")
            here = np.flatnonzero((block != 0) & (block % np.uint64(passes) == remainder))
            keys.append(block[here])
            rows.append(here + at)
            at += len(block)
    return np.concatenate(keys), np.concatenate(rows)


class _Names:
    """Identifiers and digests of rows, read when they are asked for."""

    def __init__(self, scratch: Path) -> None:
        self._stack = ExitStack()
        names = ("names", "ends", "digest.0", "digest.1")
        self._names, self._ends, *self._digests = (  # without buffers, which every read would fill for a few bytes
            self._stack.enter_context((scratch / name).open("rb", buffering=0)) for name in names
        )

    def __enter__(self) -> _Names:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def digest(self, row: int) -> bytes:
        return b"".join(_at(file, row * 8, 8) for file in self._digests)

    def span(self, row: int) -> tuple[int, int]:
        """Where the hashes of a row start and end."""
        if row == 0:
            return 0, int.from_bytes(_at(self._ends, 0, 8), "little")
        ends = _at(self._ends, row * 8 - 8, 16)
        return int.from_bytes(ends[:8], "little"), int.from_bytes(ends[8:], "little")

    def of(self, span: tuple[int, int]) -> Counter[int]:
        return Counter(array("I", _at(self._names, span[0] * 4, (span[1] - span[0]) * 4)))


def _at(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _join_alike(group: Sequence[int], names: _Names, clusters: _Clusters) -> None:
    """Join each row of a key with the first head that it is like; the others become heads."""
    heads: list[tuple[int, int, Counter[int]]] = []
    for row in group:
        cluster = clusters.first(row)
        if any(clusters.first(head) == cluster for head, _, _ in heads):
            continue
        span = names.span(row)
        size = span[1] - span[0]
        if size < LEAST:
            continue
        mine = names.of(span)
        for head, other, theirs in heads:
            if min(size, other) >= MULTISET * max(size, other) and alike(mine, theirs):
                clusters.join(head, row)
                break
        else:
            if len(heads) < HEADS:
                heads.append((row, size, mine))


class _Clusters:
    """Which rows hang together; the first of a cluster is its first pair, else its first row."""

    def __init__(self, documented: bytearray) -> None:
        self._documented = documented
        self._parent = array("i", range(len(documented)))

    def first(self, row: int) -> int:
        parent = self._parent
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    def join(self, one: int, other: int) -> None:
        one, other = self.first(one), self.first(other)
        if (not self._documented[other], other) < (not self._documented[one], one):
            one, other = other, one
        self._parent[other] = one
