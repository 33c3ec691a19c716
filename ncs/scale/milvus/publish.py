"""Sending an index to Milvus: missing segments, and deletions for tombstones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import NcsError
from ncs.progress import Track, silent
from ncs.scale.milvus.store import (
    DENSE,
    LEXICAL,
    NOTHING,
    TEXTS,
    TIMEOUT,
    Contents,
    Target,
    connected,
    count_documents,
    create_collection,
    dimension,
    first_key,
    key_range,
    segment_digest,
    store_errors,
)
from ncs.sources.files import printable
from ncs.storage.commit import open_writer
from ncs.storage.documents import NAME, DocumentTable
from ncs.storage.postings import PostingTable
from ncs.storage.snapshot import Snapshot, open_snapshot, read_description, snapshot_number
from ncs.storage.vectors import VectorIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.packing import Packed

BATCH = 1000
BLOCK = 100_000
"""Documents whose postings are transposed at a time."""
SCANNED = 1 << 22
"""Postings scanned at a time."""
RANGES = 200
"""Dead files per delete request."""


@dataclass(frozen=True, slots=True)
class Published:
    """collection: which one holds the index. sent, present: documents that were sent, and that were there."""

    collection: str
    sent: int
    present: int


@dataclass
class Publication:
    """Publication of an index during a build or update: `before_commit`, then `finish`."""

    folder: Path
    target: Target
    track: Track = silent
    _sent: int = field(default=0, init=False)

    def before_commit(self, segments: Sequence[tuple[Path, int]], statistics: Path, tombstones: object) -> None:
        """Send new segments before anybody opens the index that has them; it is committed in any case."""
        if snapshot_number(self.folder) is not None:
            with suppress(NcsError):  # `finish` tries again, and reports the error
                self._send(segments)

    def finish(self) -> Published:
        """Send missing segments of the committed index, and delete obsolete documents.

        Raises what `connected` raises, IndexBusy, and NcsError.
        """
        with open_writer(self.folder), open_snapshot(self.folder, _same) as snapshot:
            self._send([(segment.path, segment.documents) for segment in snapshot.segments])
            with connected(self.target) as client, store_errors(self.target):
                collection = _clean_up(client, self.target, snapshot)
            return Published(collection, self._sent, len(snapshot) - self._sent)

    def _send(self, segments: Sequence[tuple[Path, int]]) -> None:
        files = {}
        with suppress(NcsError):
            files = dict(read_description(self.folder).files)
        dim = VectorIndex.load(segments[0][0] / DENSE).dim
        with connected(self.target) as client, store_errors(self.target):
            collection = self.target.collection(dim)
            if not client.has_collection(collection, timeout=TIMEOUT):
                create_collection(client, self.target, dim)
            client.load_collection(collection, timeout=TIMEOUT)
            contents = Contents.read(client, collection)
            for path, documents in segments:
                digest = segment_digest(path, files)
                if contents.segments.get(path.name) != digest:
                    start = _begin(client, collection, dim, contents, path.name, digest)
                    self._send_segment(client, collection, path, start, documents)
                    segments_sent = {**contents.segments, path.name: digest}
                    contents = replace(contents, segments=segments_sent, sending=("", "")).write(
                        client, collection, dim
                    )
            client.flush(collection, timeout=TIMEOUT)

    def _send_segment(self, client: Any, collection: str, path: Path, start: int, documents: int) -> None:
        entities = segment_entities(path, start, documents)
        keys = _upsert(client, collection, entities)
        for _ in self.track(keys, "documents to Milvus", total=documents - start, unit="documents"):
            self._sent += 1
        stored = count_documents(client, collection, path.name)
        if stored != documents:
            raise NcsError(
                f"{self.target.text} has {stored:,} of {documents:,} documents of a segment; publish again with:"
                f" ncs build --store {self.target.text}"
            )


def publish(folder: Path, target: Target, *, track: Track = silent) -> Published:
    """Send the index in `folder` to `target`; what is there already is not sent again.

    Raises what `Publication.finish` raises.
    """
    return Publication(folder, target, track).finish()


def _same(snapshot: Snapshot) -> Snapshot:
    return snapshot


def _begin(client: Any, collection: str, dim: int, contents: Contents, segment: str, digest: str) -> int:
    """The first row of a segment to send: 0, or where a killed publication stopped."""
    if contents.sending == (segment, digest):
        return max(0, count_documents(client, collection, segment) - BATCH)
    client.delete(collection, filter=key_range(segment), timeout=TIMEOUT)  # of another index, or half of one
    replace(contents, sending=(segment, digest)).write(client, collection, dim)
    return 0


def _upsert(client: Any, collection: str, entities: Iterator[dict[str, Any]]) -> Iterator[int]:
    """Send them; the key of each document that was sent."""
    while batch := list(islice(entities, BATCH)):
        client.upsert(collection, batch, timeout=TIMEOUT)
        yield from (each["key"] for each in batch)


def _clean_up(client: Any, target: Target, snapshot: Snapshot) -> str:
    """Delete tombstones and segments of neither this nor the previous snapshot; returns the collection's name."""
    dim = VectorIndex.load(snapshot.segments[0].path / DENSE).dim
    collection = target.collection(dim)
    contents = Contents.read(client, collection)
    for segment in snapshot.segments:
        ranges = [key_range(segment.name, start, stop) for start, stop in segment.dead_rows() if stop > start]
        for at in range(0, len(ranges), RANGES):
            client.delete(collection, filter=" or ".join(ranges[at : at + RANGES]), timeout=TIMEOUT)
    current = {segment.name for segment in snapshot.segments}
    unneeded = contents.segments.keys() - current - set(contents.previous)
    for name in unneeded:
        client.delete(collection, filter=key_range(name), timeout=TIMEOUT)
    remaining = {name: digest for name, digest in contents.segments.items() if name not in unneeded}
    replace(contents, segments=remaining, previous=tuple(sorted(current))).write(client, collection, dim)
    for other in client.list_collections(timeout=TIMEOUT):
        if other != collection and _is_ours(client, target, other):
            _retire(client, other)
    return collection


def _is_ours(client: Any, target: Target, collection: str) -> bool:
    """Whether it was made for this target: by its name and fields."""
    if not re.fullmatch(rf"{target.name}_\d+_\d+_[a-z]\w*", collection):
        return False
    fields = {each["name"] for each in client.describe_collection(collection, timeout=TIMEOUT)["fields"]}
    return fields >= {"key", "sparse", "dense", "payload", *TEXTS}


def _retire(client: Any, collection: str) -> None:
    """Drop a collection unused since the publication before the last."""
    client.load_collection(collection, timeout=TIMEOUT)
    contents = Contents.read(client, collection)
    if not contents.previous:
        client.drop_collection(collection, timeout=TIMEOUT)
        return
    dim = next(each for each in client.describe_collection(collection)["fields"] if each["name"] == "dense")
    replace(contents, previous=()).write(client, collection, int(dim["params"]["dim"]))


def segment_entities(path: Path, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """The documents of these rows of a segment, as Milvus takes them."""
    postings, vectors = PostingTable.load(path / LEXICAL), VectorIndex.load(path / DENSE)
    with DocumentTable(path / NAME) as documents:
        for first in range(start, stop, BLOCK):
            sparse = sparse_vectors(postings, first, min(first + BLOCK, stop))
            for at in range(first, min(first + BLOCK, stop), BATCH):
                last = min(at + BATCH, first + BLOCK, stop)
                dense = vectors.vectors(np.arange(at, last))
                for row, packed, vector in zip(range(at, last), documents.packed(at, last), dense, strict=True):
                    key = first_key(path.name) + row
                    yield {"key": key, "sparse": next(sparse) or {NOTHING: 1.0}, "dense": vector, **_texts(packed)}


def _texts(packed: Packed) -> dict[str, Any]:
    id, repository, path, start, end, language, kind, name, qualified_name, *_ = packed
    texts = {"id": id, "language": language, "kind": kind, "repository": repository, "path": path}
    payload = {"name": printable(name), "qualified_name": printable(qualified_name), "lines": [start, end]}
    fields = {key: printable(text).encode()[: TEXTS[key]].decode("utf-8", "ignore") for key, text in texts.items()}
    return {**fields, "payload": payload}


def sparse_vectors(postings: PostingTable, start: int, stop: int) -> Iterator[dict[int, float]]:
    """The postings transposed: of each of these rows its stems' dimensions, and what they add to its score."""
    at = np.concatenate([np.zeros(0, np.int64), *_positions(postings.rows, start, stop)])
    owners = postings.rows[at].astype(np.int64) - start
    at = at[np.argsort(owners, kind="stable")]
    stems = np.searchsorted(postings.offsets, at, side="right") - 1
    dimensions = {id: dimension(postings.stems.word(id)) for id in np.unique(stems).tolist()}
    keys, impacts = [dimensions[id] for id in stems.tolist()], postings.impacts[at].tolist()
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=stop - start))])
    for first, last in pairwise(bounds.tolist()):
        yield dict(zip(keys[first:last], impacts[first:last], strict=True))


def _positions(rows: NDArray[np.int32], start: int, stop: int) -> Iterator[NDArray[np.int64]]:
    """The positions of these rows in the postings, by a full scan."""
    for at in range(0, len(rows), SCANNED):
        part = rows[at : at + SCANNED]
        yield at + np.flatnonzero((part >= start) & (part < stop))
