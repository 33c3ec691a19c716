"""Puts an index into Milvus: what a collection lacks is sent to it, what no reader needs any more is deleted.

A collection holds keys (ncs.scale.milvus.keys), and readers of several states of an index side by side: one of an index
before an update finds its documents and passes over the others. What came is sent before the index in the folder
becomes another, what went is deleted after that, when nobody reads a generation before. Weights of what is there are
those of the time it was sent; when too much has changed since, or words have other vectors, all is sent anew to another
collection.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import NcsError
from ncs.progress import Track, silent
from ncs.scale.milvus.about import About, probes, sums_of
from ncs.scale.milvus.collection import BATCH, DENSE, collections, counted, create, documents, next_name, ours, swap
from ncs.scale.milvus.difference import Difference, difference
from ncs.scale.milvus.keys import Keys
from ncs.scale.milvus.target import TIMEOUT, Target, connected, patiently, told
from ncs.storage.documents import open_store
from ncs.storage.folder import open_folder
from ncs.storage.garbage import remove_others
from ncs.storage.generations import unread, write_lock
from ncs.storage.manifest import current_generation
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

DRIFT = 0.2
"""Of the documents that a collection was filled with; when more have come or gone since all is sent anew, so that
weights are not older than that (DESIGN.md says what that does to candidates)."""
STATES = 8


@dataclass(frozen=True, slots=True)
class Published:
    """collection: which one answers now. written, deleted, there: documents sent, taken out, found there."""

    collection: str
    written: int
    deleted: int
    there: int


@dataclass
class Publication:
    """Of an index that is made or updated meanwhile: `ready` before its new files become the index, `finish` after."""

    folder: Path
    target: Target
    track: Track = silent
    _written: int = field(default=0, init=False)
    _deleted: int = field(default=0, init=False)

    def ready(self, data: Path) -> None:
        """What came is there before anybody opens the index that is to be; it becomes that in any case."""
        if current_generation(self.folder) is not None:
            with suppress(NcsError):  # then `finish` does it, or says why it cannot
                self._note(patiently(lambda: _bring(self.folder, data, self.target, self.track), self.target.seconds))

    def finish(self) -> Published:
        """The index in the folder answers at the target, when all of it is there. Raises what `connected` raises,
        IndexBusy, and NcsError."""
        return self._note(patiently(self._current, self.target.seconds))

    def _current(self) -> Published:
        with write_lock(self.folder):
            remove_others(self.folder)
            return _bring(self.folder, open_folder(self.folder)[0], self.target, self.track)

    def _note(self, done: Published) -> Published:
        self._written, self._deleted = self._written + done.written, self._deleted + done.deleted
        there = done.there + done.written - self._written
        return Published(done.collection, self._written, self._deleted, there)


def publish(folder: Path, target: Target, *, track: Track = silent) -> Published:
    """The index in `folder` answers at `target`, when all of it is there.

    A Milvus that is lost is waited for. Begun anew after an end of any kind it goes on where it was: what is there is
    not sent again, and sending it twice changes nothing. Raises what `Publication.finish` raises.
    """
    return Publication(folder, target, track).finish()


def _bring(folder: Path, data: Path, target: Target, track: Track) -> Published:
    """data: the files of the index that answers, or of the one that is to."""
    keys, current = Keys.kept(data), current_generation(folder)
    standing = Keys.load(folder / current) if current else None
    with connected(target) as client, told(target):
        name, about, change = _chosen(client, target, data, keys)
        gone = change.extra if not about.states else _unneeded(folder, standing, change.extra)
        if len(change.missing) or len(gone):
            states = about.states
            if len(gone):  # only these two need nothing of it
                states = tuple(state for state in states if state in {keys.state, standing and standing.state})
            sums = np.array(about.sums, object)
            sums[change.parts] = ""
            moved = about.moved + max(len(change.missing), len(gone)) if about.states else 0
            about = replace(about, states=states, moved=moved, sums=tuple(sums))
            about.write(client, name)
            _send(client, name, data, keys, change.missing, track)
            _delete(client, name, gone)
            _check(client, name, target, len(keys) + len(change.extra) - len(gone))
        left = np.setdiff1d(change.extra, gone, assume_unique=True)
        held = np.sort(np.concatenate([keys.rising, left])) if len(left) else keys.rising
        states = (*(state for state in about.states if state != keys.state), keys.state)[-STATES:]
        now = replace(about, states=states, sums=sums_of(held))
        if now != about or len(change.missing) or len(gone):
            now.write(client, name)
            client.flush(name, timeout=TIMEOUT)
            client.load_collection(name, timeout=TIMEOUT)
        swap(client, target.alias, name)
        if unread(folder):
            _drop_others(client, target.alias, name, folder / current if current else None)
    return Published(name, len(change.missing), len(gone), len(keys) - len(change.missing))


def _chosen(client: Any, target: Target, data: Path, keys: Keys) -> tuple[str, About, Difference]:
    """The collection that is brought up to date: the one that answers, or one that was begun; else a new one."""
    wanted, names = keys.rising, collections(client, target.alias)
    for name in names:
        client.load_collection(name, timeout=TIMEOUT)
        about = About.read(client, name)
        if about is None or about.dense != target.dense or not about.fits(data):
            continue
        change = difference(client, name, about, wanted)
        if not about.states or about.moved + len(change) <= DRIFT * about.begun:
            return name, about, change
    name, dim = next_name(target.alias, names), VectorIndex.load(data / DENSE).dim
    about = About(dim, target.dense, probes(data), len(keys))
    create(client, target, name, dim)
    client.load_collection(name, timeout=TIMEOUT)
    about.write(client, name)
    return name, about, difference(client, name, about, wanted)


def _unneeded(folder: Path, standing: Keys | None, extra: Numbers) -> Numbers:
    """What no reader needs: neither of the index that answers, nor of one before, if any is read."""
    if not unread(folder):
        return extra[:0]
    return extra if standing is None else extra[standing.rows(extra) < 0]


def _send(client: Any, name: str, data: Path, keys: Keys, missing: Numbers, track: Track) -> None:
    rows = np.sort(keys.rows(missing))
    with open_store(data) as store:
        found = documents(data, keys, store, rows)
        for _ in track(_batches(client, name, found), "documents to Milvus", total=len(rows), unit="documents"):
            pass


def _batches(client: Any, name: str, found: Iterator[dict[str, Any]]) -> Iterator[int]:
    """Sends them; a number for each document that was sent."""
    while batch := list(islice(found, BATCH)):
        client.upsert(name, batch, timeout=TIMEOUT)
        yield from range(len(batch))


def _delete(client: Any, name: str, gone: Numbers) -> None:
    for at in range(0, len(gone), BATCH):
        client.delete(name, ids=gone[at : at + BATCH].tolist(), timeout=TIMEOUT)


def _check(client: Any, name: str, target: Target, total: int) -> None:
    """What is wrong is looked for the next time, as there are no sums."""
    if (there := counted(client, name)) != total:
        about = About.read(client, name)
        if about is not None:
            replace(about, sums=About.sums).write(client, name)
        raise NcsError(f"{target.shown} has {there:,} documents and should have {total:,}; publish again")


def _drop_others(client: Any, alias: str, name: str, standing: Path | None) -> None:
    """Collections that no reader needs; that of the index that answers, in `standing`, stays."""
    keys = Keys.load(standing) if standing else None
    for other in client.list_collections(timeout=TIMEOUT):
        if other == name or not ours(client, alias, other):
            continue
        if standing is not None and keys is not None:
            client.load_collection(other, timeout=TIMEOUT)
            about = About.read(client, other)
            if about is not None and about.holds(standing, keys):
                continue
        client.drop_collection(other, timeout=TIMEOUT)
