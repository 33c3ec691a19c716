"""An index whose candidates come from Milvus, for indexes that outgrow one machine; `ncs.scale.publish` sends it there.

Milvus finds the documents to score; words, names and scores are read from the index folder. A document's key is the
number of its segment and its row there. Segments are immutable; a collection's metadata has their names and digests.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ncs.errors import BadInput, IndexNotFound, IndexVersion, MissingExtra, NcsError, StoreLost, check_k
from ncs.index import Index
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import DEFAULT_RANKER, Ranker
from ncs.storage.arrays import both, top_rows
from ncs.storage.postings import Postings
from ncs.storage.snapshot import SEGMENTS, Description, Snapshot, checksum, open_snapshot
from ncs.storage.vectors import Vectors, read_info
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
MOST = 16_384
"""Most entities of a Milvus search."""
SPARE = 16
"""Extra candidates beyond k: some may be deleted or of another snapshot."""
LISTED = 50_000
"""Most documents in a Milvus filter."""
RETRY = 0.5
"""Seconds between tries to reach a store."""


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
def connected(target: Target, *, existing: bool = False) -> Iterator[Any]:
    """A client; its token is read from $NCS_MILVUS_TOKEN. existing: a file must be there already.

    Raises MissingExtra, IndexNotFound for such a file, and StoreLost where nobody answers.
    """
    try:
        from pymilvus import MilvusClient
    except ImportError:
        raise MissingExtra(
            "a Milvus store needs the extra `milvus`: pip install 'neural-code-search[milvus]'"
        ) from None
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
            client = self._connection.enter_context(connected(target, existing=True))
            self._candidates = Candidates(client, target, snapshot)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, folder: Path, target: Target, held: Description | None = None) -> MilvusIndex:
        """Raises what `open_snapshot` and `connected` raise, and IndexVersion where the store holds another index."""
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
            ranker._postings = StorePostings(ranker.postings, self._candidates)
        elif not is_open and name == DENSE and isinstance(ranker, NcsRanker):
            ranker._vectors = StoreVectors(ranker.vectors, self._candidates)
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
        if allowed is not None and np.count_nonzero(allowed) <= LISTED:
            expression = f"key in {self._keys(allowed)}"
        limit = k + SPARE
        while limit <= MOST:
            hits = self._search(field, query, limit, expression)
            rows = self._rows(np.array([hit["key"] for hit in hits if hit["distance"] != 0], np.int64))
            if allowed is not None:
                rows = rows[allowed[rows]]
            if len(rows) >= k or len(hits) < limit:
                return rows
            limit = min(MOST, 4 * limit) if limit < MOST else MOST + 1
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

    def _keys(self, allowed: Mask) -> list[int]:
        keys: list[int] = []
        for segment in self._segments:
            local = np.flatnonzero(allowed[segment.first : segment.first + segment.documents])
            keys += (first_key(segment.name) + local).tolist()
        return keys

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

    def top_rows(self, weights: Mapping[str, float], k: int, *, allowed: Mask | None = None) -> tuple[Rows, Scores]:
        """The top rows, as Postings gives them."""
        check_k(k)
        query: dict[int, float] = {}
        for stem, weight in weights.items():
            query[dimension(stem)] = query.get(dimension(stem), 0.0) + weight
        rows = self._candidates.search("sparse", query, k, allowed) if query else None
        if rows is None:
            return super().top_rows(weights, k, allowed=allowed)
        scores = self.scores(weights, rows)
        having = scores > 0  # not by another stem of the same dimension
        return top_rows(rows[having], scores[having], k)


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
