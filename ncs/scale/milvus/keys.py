"""The numbers by which a store knows documents, kept beside an index: a document's number is of its id and its content.

So a document that changes is another one to the store: the one before stays until no reader needs it, what a collection
holds is a set of numbers, and what an update sends and deletes is the difference of two sets. Numbers do not hang on
rows, on what other documents there are, or on the weights of words, which move with the corpus.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta import room_of
from ncs.build.delta.rows import Stack
from ncs.errors import IndexDamaged
from ncs.storage.documents import NAME, Store
from ncs.storage.minhash import hash_words
from ncs.storage.packing import to_bytes
from ncs.storage.uses import References
from ncs.storage.words import WordTable
from ncs.types import FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

ROOM = "keys"
"""Beside an index that a store holds, and beside its delta (ncs.build.delta.making.BASE knows this name)."""
KEYS, ORDER, STATE = "keys.npy", "order.npy", "state.json"
"""int64 [n] by row, not negative; int32 [n]: the rows in the order of the keys; what all keys together come to."""
PART = 1 << 14
"""Documents that are looked at at once."""
_FACTORS = np.frombuffer(b"".join(blake2b(field.encode(), digest_size=8).digest() for field in FIELDS), "<u8") | 1
UNKNOWN = -1


@dataclass(frozen=True)
class Keys:
    """keys and order as on the disk; late: the keys of a delta's documents; stack: which of both are rows."""

    state: str
    keys: Numbers
    order: NDArray[np.int32]
    late: Numbers
    stack: Stack | None

    @classmethod
    def load(cls, data: Path) -> Keys | None:
        """Memory-mapped but for the delta's; None where this index was not put into a store. Raises IndexDamaged."""
        room = room_of(data)
        if not ((room or data) / ROOM).is_dir():
            return None
        try:
            keys, order = (np.asarray(np.load(data / ROOM / name, mmap_mode="r")) for name in (KEYS, ORDER))
            late = np.load(room / ROOM / KEYS) if room else np.zeros(0, np.int64)
            state = json.loads(((room or data) / ROOM / STATE).read_bytes())["state"]
        except (OSError, ValueError, EOFError, KeyError) as error:
            raise IndexDamaged(f"cannot read {data / ROOM} ({error}); build the index again") from error
        return cls(state, keys, order, late, Stack.load(room, len(keys), len(late)) if room else None)

    @classmethod
    def kept(cls, data: Path) -> Keys:
        """Of an index, made where they are not there: of a base once, of its delta with every update."""
        room = room_of(data)
        if not (data / ROOM).is_dir():
            keys = keys_in(data)
            _save(data, keys, _state(keys))
        if room and not (room / ROOM).is_dir():
            keys, late = np.load(data / ROOM / KEYS, mmap_mode="r"), keys_in(room)
            stack = Stack.load(room, len(keys), len(late))
            _save(room, late, _state(np.concatenate([keys, late])[stack.held]))
        found = cls.load(data)
        if found is None:
            raise IndexDamaged(f"{data / ROOM} is gone; try again")
        return found

    def __len__(self) -> int:
        """How many documents."""
        return len(self.stack) if self.stack else len(self.keys)

    def of(self, rows: Numbers) -> Numbers:
        """The keys of these rows."""
        if self.stack is None:
            return np.asarray(self.keys[rows])
        late, early, others = self.stack.split(rows)
        found = np.zeros(len(rows), np.int64)
        found[~late], found[late] = self.keys[early], self.late[others]
        return found

    def rows(self, keys: Numbers) -> Numbers:
        """The rows that have these keys, UNKNOWN for keys that none has."""
        found = _sought(self.keys, self.order, keys)
        if self.stack is None:
            return found
        late = _sought(self.late, self._late_order, keys)
        early = np.where(found >= 0, self.stack.row[np.maximum(found, 0)], UNKNOWN)
        if not len(self.late):
            return early
        others = np.where(late >= 0, self.stack.row[np.maximum(late, 0) + self.stack.base], UNKNOWN)
        return np.where(early >= 0, early, others).astype(np.int64)

    @cached_property
    def rising(self) -> Numbers:
        """The keys of all documents."""
        return np.sort(self.of(np.arange(len(self))))

    @cached_property
    def _late_order(self) -> NDArray[np.int32]:
        return np.argsort(self.late).astype(np.int32)


def _sought(keys: Numbers, order: NDArray[np.int32], wanted: Numbers) -> Numbers:
    """Where each of some numbers stands among keys, UNKNOWN for those that are not there; reads what it looks at."""
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(keys), np.int64)
    while (open_ := np.flatnonzero(low < high)).size:
        middle = (low[open_] + high[open_]) // 2
        less = keys[order[middle]] < wanted[open_]
        low[open_[less]], high[open_[~less]] = middle[less] + 1, middle[~less]
    found = np.full(len(wanted), UNKNOWN, np.int64)
    inside = np.flatnonzero(low < len(keys))
    at = order[low[inside]].astype(np.int64)
    met = keys[at] == wanted[inside]
    found[inside[met]] = at[met]
    return found


def keys_in(folder: Path) -> Numbers:
    """The keys of the documents of a base, or of a delta, by their rows; of those that are equal in all the second and
    further ones are numbered on."""
    found = [np.zeros(0, np.int64)]
    with Store(folder / NAME) as store:
        found += _parts(store, WordTable.of_folder(folder), References.of_folder(folder))
    keys = np.concatenate(found)
    while len(again := _repeated(keys)):
        keys[again] = (keys[again] + 1) & np.iinfo(np.int64).max
    return keys


def _parts(store: Store, words: WordTable, references: References) -> Iterator[Numbers]:
    marks, names = hash_words(words.vocabulary), hash_words(references.names)
    for start in range(0, len(store), PART):
        rows = np.arange(start, min(start + PART, len(store)))
        ids, lengths = words.part(start, start + len(rows))
        said = (_sums(marks[ids], lengths).reshape(-1, len(FIELDS)) * _FACTORS).sum(axis=1, dtype=np.uint64)
        ids, lengths = references.of(rows)
        used = _sums(names[ids], lengths)
        contents = np.stack([said, used], axis=1).tobytes()
        told = store.headings(rows.tolist())
        digests = (_digest(heading, contents[16 * at : 16 * at + 16]) for at, heading in enumerate(told))
        yield (np.frombuffer(b"".join(digests), "<u8") >> np.uint64(1)).astype(np.int64)


def _sums(marks: Hashes, lengths: NDArray[np.int64]) -> Hashes:
    """The sum of each of some lists of numbers, joined in `marks`; the order of words is nothing to what is sent."""
    totals = np.zeros(len(marks) + 1, np.uint64)
    np.cumsum(marks, out=totals[1:])
    ends = np.cumsum(lengths)
    found: Hashes = totals[ends] - totals[ends - lengths]
    return found


def _digest(heading: tuple[object, ...], content: bytes) -> bytes:
    return blake2b(to_bytes("\0".join(map(str, heading))) + content, digest_size=8).digest()


def _repeated(keys: Numbers) -> Numbers:
    """Where keys stand that stood before."""
    order = np.argsort(keys, kind="stable")
    found: Numbers = order[1:][np.diff(keys[order]) == 0]
    return found


def _state(keys: Numbers) -> str:
    """What a set of keys comes to, whatever their order."""
    return f"{len(keys)}-{int(keys.astype(np.uint64).sum(dtype=np.uint64)):016x}"


def _save(folder: Path, keys: Numbers, state: str) -> None:
    """Into `<folder>/keys/`, at once."""
    room = folder / f"{ROOM}.part"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir()
    np.save(room / KEYS, keys)
    np.save(room / ORDER, np.argsort(keys).astype(np.int32))
    (room / STATE).write_text(json.dumps({"state": state}), encoding="utf-8")
    room.rename(folder / ROOM)
