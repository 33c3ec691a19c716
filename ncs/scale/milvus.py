"""An index whose candidates come from Milvus, for indexes that outgrow one machine, and its publication there.

Milvus finds the documents to score; words, names and scores are read from the index folder. A document's key is the
number of its segment and its row there. Segments are immutable; a collection's metadata has their names and digests.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ncs.errors import BadInput, IndexNotFound, IndexVersion, NcsError, StoreLost, check_k, needing
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import DEFAULT_RANKER, Ranker
from ncs.sources.files import printable
from ncs.storage.arrays import both, top_rows
from ncs.storage.commit import open_writer
from ncs.storage.documents import NAME, DocumentTable, Packed
from ncs.storage.postings import Postings, PostingTable
from ncs.storage.snapshot import SEGMENTS, Description, Snapshot, checksum, open_snapshot, read_description
from ncs.storage.vectors import VectorIndex, Vectors, read_info
from ncs.types import Mask, Matrix, Rows, Scores

FORMAT = 3
TOKEN = "NCS_MILVUS_TOKEN"  # noqa: S105  (the name of a variable)
TIMEOUT = 60.0
"""Seconds that pymilvus tries a call again before it fails for good."""
LEXICAL, DENSE = "bm25", "ncs_centred"
"""The rankers whose postings and vectors are sent."""
TEXTS = {"id": 8192, "language": 64, "kind": 64, "repository": 4096, "path": 8192}
"""Fields that others can filter by, and the bytes that they hold."""
CONTENTS = -1
"""The key of the metadata entity."""
NOTHING = 0
"""A dimension that no stem has: Milvus rejects empty sparse vectors."""
ROW_BITS = 32
_NAME_LENGTH = 200
MAX_ENTITIES = 16_384
"""Most entities of a Milvus search."""
SPARE = 16
"""Extra candidates beyond k: some may be deleted or of another snapshot."""
MAX_LISTED = 50_000
"""Most documents in a Milvus filter."""
RETRY = 0.5
"""Seconds between tries to reach a store."""
BATCH = 1000
BLOCK = 100_000
"""Documents whose postings are transposed at a time."""
SCAN_BATCH = 1 << 22
"""Postings scanned at a time."""
RANGES = 200
"""Dead files per delete request."""


@dataclass(frozen=True, slots=True)
class Target:
    """uri: what pymilvus connects to. name: of the collections, before their format, dimensions and kind.

    dense: the kind of Milvus's index over the document vectors; FLAT is exact.
    text: as a person typed it. seconds: how long a query is tried again.
    """

    uri: str
    name: str
    dense: str = "FLAT"
    text: str = ""
    seconds: float = TIMEOUT

    @classmethod
    def of(cls, text: str) -> Target:
        """Parse `milvus://host:19530/collection`, with `?dense=HNSW` at its end, or a local file, NAME.db.

        >>> Target.of("milvus://db.example:19530/code?dense=HNSW").uri, Target.of("./code.db").name
        ('http://db.example:19530', 'ncs')
        """
        if "://" not in text and text.endswith(".db"):
            return cls(str(Path(text).resolve()), "ncs", text=text)
        parts = urlsplit(text)
        name = parts.path.strip("/")
        if parts.scheme not in ("milvus", "milvus+tls") or not parts.hostname or not name:
            raise BadInput(f"{text!r} is no store; write milvus://host:19530/collection, or a file: ./code.db")
        if not name.isidentifier() or not name.isascii() or len(name) > _NAME_LENGTH or parts.username:
            raise BadInput(
                f"a collection's name is of letters, digits and _, and a password goes into ${TOKEN}: {text}"
            )
        kind, _, dense = parts.query.partition("=")
        if parts.query and (kind != "dense" or not dense.isidentifier()):
            raise BadInput(f"{parts.query!r} is no setting of a store; there is: dense=HNSW")
        scheme = "https" if parts.scheme == "milvus+tls" else "http"
        return cls(f"{scheme}://{parts.hostname}:{parts.port or 19530}", name, dense.upper() or "FLAT", text)

    def collection(self, dim: int) -> str:
        """The collection of an index with vectors of these dimensions.

        >>> Target.of("./code.db").collection(64)
        'ncs_3_64_flat'
        """
        return f"{self.name}_{FORMAT}_{dim}_{self.dense.lower()}"

    @property
    def remedy(self) -> str:
        """The command that publishes an index."""
        return f"put the index there with: ncs build --store {self.text}"


@contextmanager
def connect(target: Target, *, existing: bool = False) -> Iterator[Any]:
    """A client; its token is read from $NCS_MILVUS_TOKEN. existing: a file must be there already.

    Raises MissingExtra, IndexNotFound for such a file, and StoreLost where nobody answers.
    """
    with needing("a Milvus store", "milvus"):
        from pymilvus import MilvusClient
    if existing and "://" not in target.uri and not Path(target.uri).exists():
        raise IndexNotFound(f"there is no {target.text}; {target.remedy}")
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # we report every error, once
    with store_errors(target):
        client = MilvusClient(target.uri, token=os.environ.get(TOKEN, ""), timeout=TIMEOUT)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def store_errors(target: Target) -> Iterator[None]:
    """Turn what pymilvus raises into one line with the remedy."""
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except RpcError as error:
        reason = str(error.details()) if hasattr(error, "details") else type(error).__name__
        raise StoreLost(f"{target.text} does not answer in {target.seconds:g} s ({reason}); try again") from error
    except MilvusException as error:
        reason = str(error.message).splitlines()[0]
        if "not exist" in reason or "not found" in reason:
            raise IndexNotFound(f"{target.text} has no such collection ({reason}); {target.remedy}") from error
        lower = reason.lower()
        lost = ("connect", "unavailable", "not load", "released")  # as a server says that has just started
        if error.code == 2 or any(word in lower for word in lost):
            raise StoreLost(
                f"no Milvus answers at {target.text}; is it running, and is ${TOKEN} right? ({reason})"
            ) from error
        raise NcsError(f"{target.text}: {reason}; try again") from error


@dataclass(frozen=True, slots=True)
class Contents:
    """segments: name and digest of complete ones. sending: the incomplete one, "" for none.
    previous: names before the last publication; readers may still have them open."""

    segments: Mapping[str, str] = field(default_factory=dict)
    sending: tuple[str, str] = ("", "")
    previous: tuple[str, ...] = ()

    @classmethod
    def read(cls, client: Any, collection: str) -> Contents:
        """The contents of a loaded collection; empty where it has no description."""
        entities = client.get(collection, ids=[CONTENTS], output_fields=["payload"], timeout=TIMEOUT)
        payload = dict(entities[0]["payload"]) if entities else {}
        if not payload:
            return cls()
        return cls(dict(payload["segments"]), tuple(payload["sending"]), tuple(payload["previous"]))

    def write(self, client: Any, collection: str, dim: int) -> None:
        """Into the collection."""
        vectors = {"sparse": {NOTHING: 1.0}, "dense": np.zeros(dim, np.float32)}
        entity = {"key": CONTENTS, **vectors, **dict.fromkeys(TEXTS, ""), "payload": asdict(self)}
        client.upsert(collection, [entity], timeout=TIMEOUT)


def first_key(segment: str) -> int:
    """The key of a segment's first document.

    >>> first_key("000002") == 2 << 32
    True
    """
    return int(segment) << ROW_BITS


def key_range(segment: str, start: int = 0, stop: int = (1 << ROW_BITS) - 1) -> str:
    """An expression that is true of the documents of these rows of a segment."""
    return f"(key >= {first_key(segment) + start} and key < {first_key(segment) + stop})"


def dimension(stem: str) -> int:
    """The dimension of a stem in sparse vectors, by its letters; stems may collide, as no score depends on it.

    >>> 0 < dimension("hide") < 2**32 - 1
    True
    """
    return 1 + crc32(stem.encode(errors="surrogatepass")) % ((1 << 32) - 3)


def segment_digest(segment: Path, files: Mapping[str, Mapping[str, Any]]) -> str:
    """A digest of the checksums of the files that are sent. files: as in a snapshot."""
    digest = blake2b(digest_size=16)
    for name in (f"{LEXICAL}/impacts.npy", f"{DENSE}/vectors.npy"):
        entry = files.get(f"{SEGMENTS}/{segment.name}/{name}") or checksum(segment / name)
        digest.update(str(entry["blake2b"]).encode())
    return digest.hexdigest()


class MilvusIndex(Index):
    """An `Index` whose candidates by words and by meaning come from a store; other rankers do not use it."""

    def __init__(self, snapshot: Snapshot, target: Target) -> None:
        super().__init__(snapshot)
        self._connection = ExitStack()
        try:
            client = self._connection.enter_context(connect(target, existing=True))
            self._candidates = Candidates(client, target, snapshot)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, folder: Path, target: Target, held: Description | None = None) -> MilvusIndex:
        """Raises what `open_snapshot` and `connect` raise, and IndexVersion where the store holds another index."""
        return open_snapshot(folder, partial(cls, target=target), held=held)

    def close(self) -> None:
        """Close the folder and the store."""
        self._connection.close()
        super().close()

    def ranker(self, name: str = DEFAULT_RANKER) -> Ranker:
        """The ranker, as in Index; bm25, ncs_centred and rankers composed of them search the store."""
        is_open = name in self._rankers
        ranker = super().ranker(name)
        if not is_open and name == LEXICAL and isinstance(ranker, Bm25Ranker):
            ranker.postings = StorePostings(ranker.postings, self._candidates)
        elif not is_open and name == DENSE and isinstance(ranker, NcsRanker):
            ranker.vectors = StoreVectors(ranker.vectors, self._candidates)
        return ranker


class Candidates:
    """The rows of a snapshot that a store finds best."""

    def __init__(self, client: Any, target: Target, snapshot: Snapshot) -> None:
        """Raises IndexVersion where the collection does not hold all segments."""
        self._client, self._target = client, target
        dim = read_info(snapshot.segments[0].path / DENSE).dim
        self._collection = target.collection(dim)
        self._segments, self._live = snapshot.segments, snapshot.live
        with store_errors(target):
            client.load_collection(self._collection, timeout=target.seconds)
            segment_digests = Contents.read(client, self._collection).segments
        files = snapshot.description.files
        if any(segment_digests.get(each.name) != segment_digest(each.path, files) for each in snapshot.segments):
            raise IndexVersion(f"{target.text} holds another build than this folder; {target.remedy}")

    def search(self, field: str, query: Any, k: int, allowed: Mask | None) -> Rows | None:
        """The k best live rows of those that are allowed, or as many as there are; None beyond Milvus's limit."""
        allowed = both(allowed, self._live)
        if allowed is not None and not allowed.any():
            return np.zeros(0, np.int64)
        expression = "key >= 0"
        if allowed is not None and np.count_nonzero(allowed) <= MAX_LISTED:
            local = ((each, allowed[each.first : each.first + each.documents]) for each in self._segments)
            keys = np.concatenate([first_key(each.name) + np.flatnonzero(mask) for each, mask in local])
            expression = f"key in {keys.tolist()}"
        limit = k + SPARE
        while limit <= MAX_ENTITIES:
            hits = self._search(field, query, limit, expression)
            rows = self._rows(np.array([hit["key"] for hit in hits if hit["distance"] != 0], np.int64))
            if allowed is not None:
                rows = rows[allowed[rows]]
            if len(rows) >= k or len(hits) < limit:
                return rows
            limit = min(MAX_ENTITIES, 4 * limit) if limit < MAX_ENTITIES else MAX_ENTITIES + 1
        return None

    def _search(self, field: str, query: Any, limit: int, expression: str) -> Any:
        """Hits of Milvus; a lost one is tried for the target's seconds, and loads the collection again."""
        seconds = self._target.seconds
        end = time.monotonic() + seconds
        while True:
            try:
                with store_errors(self._target):
                    return self._client.search(
                        self._collection, [query], anns_field=field, limit=limit, filter=expression,
                        output_fields=["key"], search_params={"metric_type": "IP"}, timeout=seconds,
                    )[0]  # fmt: skip
            except StoreLost:
                if time.monotonic() >= end:
                    raise
            time.sleep(RETRY)
            with suppress(NcsError), store_errors(self._target):
                self._client.load_collection(self._collection, timeout=seconds)

    def _rows(self, keys: Rows) -> Rows:
        """The rows of these keys, ascending, without those of segments that the snapshot does not have."""
        rows = []
        for segment in self._segments:
            local = keys - first_key(segment.name)
            rows.append(segment.first + local[(local >= 0) & (local < segment.documents)])
        return np.unique(np.concatenate(rows))


class StorePostings(Postings):
    """Postings with candidates from a store and scores from the folder."""

    def __init__(self, local: Postings, candidates: Candidates) -> None:
        super().__init__(local.tables, local.statistics, local.live)
        self._candidates = candidates

    def top_rows(
        self, weights: Mapping[str, float], k: int, masks: Sequence[Mask | None] = (None,)
    ) -> list[tuple[Rows, Scores]]:
        """The top rows, as Postings gives them."""
        check_k(k)
        query: dict[int, float] = {}
        for stem, weight in weights.items():
            query[dimension(stem)] = query.get(dimension(stem), 0.0) + weight
        best = []
        for mask in masks:
            rows = self._candidates.search("sparse", query, k, mask) if query else None
            if rows is None:
                return super().top_rows(weights, k, masks)
            scores = self.scores(weights, rows)
            having = scores > 0  # not by another stem of the same dimension
            best.append(top_rows(rows[having], scores[having], k))
        return best


class StoreVectors(Vectors):
    """Vectors with candidates from a store and similarities from the folder."""

    def __init__(self, local: Vectors, candidates: Candidates) -> None:
        super().__init__(local.parts, local.live)
        self._candidates = candidates

    def search(self, query: Matrix, k: int, *, allowed: Mask | None = None) -> tuple[Rows, NDArray[np.float32]]:
        """Search as Vectors does."""
        candidates = self._candidates.search("dense", np.asarray(query, np.float32), k, allowed)
        if candidates is None:
            return super().search(query, k, allowed=allowed)
        return top_rows(candidates, self.similarities(query, candidates), k)


class Publication:
    """Publication of an index during a build or update: `before_commit`, then `finish`."""

    def __init__(self, folder: Path, target: Target, track: Track = silent) -> None:
        self._folder, self._target, self._track = folder, target, track
        self._n_sent = 0

    def before_commit(self, segments: Sequence[tuple[Path, int]]) -> None:
        """Send new segments before anybody opens the index that has them; it is committed in any case."""
        with suppress(NcsError):  # no index yet, or no store that answers: `finish` sends, and reports the error
            self._send(segments, read_description(self._folder).files)

    def finish(self) -> int:
        """Send missing segments of the committed index, and delete obsolete documents; how many were sent in all.

        Raises what `connect` raises, IndexBusy, and NcsError.
        """
        with open_writer(self._folder), Index.load(self._folder) as index:
            segments = [(segment.path, segment.documents) for segment in index.snapshot.segments]
            self._send(segments, index.description.files)
            with connect(self._target) as client, store_errors(self._target):
                _clean_up(client, self._target, index.snapshot)
        return self._n_sent

    def _send(self, segments: Sequence[tuple[Path, int]], files: Mapping[str, Mapping[str, Any]]) -> None:
        """files: as of `segment_digest`."""
        dim = read_info(segments[0][0] / DENSE).dim
        with connect(self._target) as client, store_errors(self._target):
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
        entities = segment_entities(path, start, documents)
        tracked = self._track(entities, "documents to Milvus", total=documents - start, unit="documents")
        while batch := list(islice(tracked, BATCH)):
            client.upsert(collection, batch, timeout=TIMEOUT)
            self._n_sent += len(batch)
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
                for row, packed, vector in zip(range(at, last), documents.packed(range(at, last)), dense, strict=True):
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
    for first in range(0, max(1, len(postings.rows)), SCAN_BATCH):
        rows = postings.rows[first : first + SCAN_BATCH]
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
