"""Sending an index to Milvus: missing segments, and deletions for tombstones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ncs.errors import NcsError
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.scale.milvus import (
    DENSE,
    LEXICAL,
    NOTHING,
    TEXTS,
    TIMEOUT,
    Contents,
    Target,
    connected,
    dimension,
    first_key,
    key_range,
    segment_digest,
    store_errors,
)
from ncs.sources.files import printable
from ncs.storage.commit import open_writer
from ncs.storage.documents import NAME, DocumentTable, Packed
from ncs.storage.postings import PostingTable
from ncs.storage.snapshot import Snapshot, read_description
from ncs.storage.vectors import VectorIndex, read_info

BATCH = 1000
BLOCK = 100_000
"""Documents whose postings are transposed at a time."""
SCANNED = 1 << 22
"""Postings scanned at a time."""
RANGES = 200
"""Dead files per delete request."""


class Publication:
    """Publication of an index during a build or update: `before_commit`, then `finish`."""

    def __init__(self, folder: Path, target: Target, track: Track = silent) -> None:
        self._folder, self._target, self._track = folder, target, track
        self._n_sent = 0

    def before_commit(self, segments: Sequence[tuple[Path, int]], statistics: Path, tombstones: object) -> None:
        """Send new segments before anybody opens the index that has them; it is committed in any case."""
        with suppress(NcsError):  # no index yet, or no store that answers: `finish` sends, and reports the error
            read_description(self._folder)
            self._send(segments)

    def finish(self) -> int:
        """Send missing segments of the committed index, and delete obsolete documents; how many were sent in all.

        Raises what `connected` raises, IndexBusy, and NcsError.
        """
        with open_writer(self._folder), Index.load(self._folder) as index:
            self._send([(segment.path, segment.documents) for segment in index.snapshot.segments])
            with connected(self._target) as client, store_errors(self._target):
                _clean_up(client, self._target, index.snapshot)
        return self._n_sent

    def _send(self, segments: Sequence[tuple[Path, int]]) -> None:
        files = {}
        with suppress(NcsError):
            files = dict(read_description(self._folder).files)
        dim = read_info(segments[0][0] / DENSE).dim
        with connected(self._target) as client, store_errors(self._target):
            collection = self._target.collection(dim)
            if not client.has_collection(collection, timeout=TIMEOUT):
                _create_collection(client, self._target, dim)
            client.load_collection(collection, timeout=TIMEOUT)
            contents = Contents.read(client, collection)
            for path, documents in segments:
                digest = segment_digest(path, files)
                if contents.segments.get(path.name) == digest:
                    continue
                if contents.sending == (path.name, digest):  # where a publication was killed
                    start = max(0, _count(client, collection, path.name) - BATCH)
                else:
                    start = 0
                    client.delete(collection, filter=key_range(path.name), timeout=TIMEOUT)  # of another index
                    contents = replace(contents, sending=(path.name, digest))
                    contents.write(client, collection, dim)
                self._send_segment(client, collection, path, start, documents)
                sent = {**contents.segments, path.name: digest}
                contents = replace(contents, segments=sent, sending=("", ""))
                contents.write(client, collection, dim)
            client.flush(collection, timeout=TIMEOUT)

    def _send_segment(self, client: Any, collection: str, path: Path, start: int, documents: int) -> None:
        keys = _upsert(client, collection, segment_entities(path, start, documents))
        for _ in self._track(keys, "documents to Milvus", total=documents - start, unit="documents"):
            self._n_sent += 1
        stored = _count(client, collection, path.name)
        if stored != documents:
            raise NcsError(
                f"{self._target.text} has {stored:,} of {documents:,} documents of a segment; publish again with:"
                f" ncs build --store {self._target.text}"
            )


def _create_collection(client: Any, target: Target, dim: int) -> None:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", DataType.INT64, is_primary=True)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dim)
    for name, length in TEXTS.items():
        schema.add_field(name, DataType.VARCHAR, max_length=length)
    schema.add_field("payload", DataType.JSON)
    indices = client.prepare_index_params()
    indices.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    indices.add_index("dense", index_type=target.dense, metric_type="IP")
    client.create_collection(
        target.collection(dim), schema=schema, index_params=indices, consistency_level="Strong", timeout=TIMEOUT
    )


def _count(client: Any, collection: str, segment: str) -> int:
    """The number of documents of a segment in a loaded collection."""
    counts = client.query(collection, filter=key_range(segment), output_fields=["count(*)"], timeout=TIMEOUT)
    return int(counts[0]["count(*)"])


def _upsert(client: Any, collection: str, entities: Iterator[dict[str, Any]]) -> Iterator[int]:
    """Send them; the key of each document that was sent."""
    while batch := list(islice(entities, BATCH)):
        client.upsert(collection, batch, timeout=TIMEOUT)
        yield from (each["key"] for each in batch)


def _clean_up(client: Any, target: Target, snapshot: Snapshot) -> None:
    """Delete tombstones, segments of neither this nor the previous snapshot, and older collections."""
    dim = read_info(snapshot.segments[0].path / DENSE).dim
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
        if other != collection and re.fullmatch(rf"{target.name}_\d+_\d+_[a-z]\w*", other):
            _retire(client, other)


def _retire(client: Any, collection: str) -> None:
    """Drop a collection of ours that was not used since the publication before the last."""
    fields = {each["name"]: each for each in client.describe_collection(collection, timeout=TIMEOUT)["fields"]}
    if not fields.keys() >= {"key", "sparse", "dense", "payload", *TEXTS}:
        return
    client.load_collection(collection, timeout=TIMEOUT)
    contents = Contents.read(client, collection)
    if contents.previous:
        replace(contents, previous=()).write(client, collection, int(fields["dense"]["params"]["dim"]))
    else:
        client.drop_collection(collection, timeout=TIMEOUT)


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
    positions = []
    for first in range(0, max(1, len(postings.rows)), SCANNED):
        rows = postings.rows[first : first + SCANNED]
        positions.append(first + np.flatnonzero((rows >= start) & (rows < stop)))
    at = np.concatenate(positions)
    owners = postings.rows[at].astype(np.int64) - start
    at = at[np.argsort(owners, kind="stable")]
    stems = np.searchsorted(postings.offsets, at, side="right") - 1
    dimensions = {id: dimension(postings.stems.word(id)) for id in np.unique(stems).tolist()}
    keys, impacts = [dimensions[id] for id in stems.tolist()], postings.impacts[at].tolist()
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=stop - start))])
    for first, last in pairwise(bounds.tolist()):
        yield dict(zip(keys[first:last], impacts[first:last], strict=True))
