"""A Milvus store: its address, the connection, and collections with their metadata.

A document's key is the number of its segment and its row there. Segments are immutable;
a collection's metadata has the names and digests of its segments.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np

from ncs.errors import BadInput, IndexNotFound, MissingExtra, NcsError, StoreLost
from ncs.storage.snapshot import SEGMENTS, checksum

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
_FILE_NAME = "ncs"
_NAME_LENGTH = 200


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
        """Of `milvus://host:19530/collection`, with `?dense=HNSW` at its end, or of a local file, NAME.db.

        >>> Target.of("milvus://db.example:19530/code?dense=HNSW").uri, Target.of("./code.db").name
        ('http://db.example:19530', 'ncs')
        """
        if "://" not in text:
            if not text.endswith(".db"):
                raise BadInput(f"{text!r} is no store; write milvus://host:19530/collection, or a file: ./code.db")
            return cls(str(Path(text).resolve()), _FILE_NAME, text=text)
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
    """What pymilvus raises, as one line with the remedy."""
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
        if "connect" in lower or "unavailable" in lower or "not load" in lower or error.code == 2:
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
        """Of a loaded collection; nothing where it says nothing."""
        entities = client.get(collection, ids=[CONTENTS], output_fields=["payload"], timeout=TIMEOUT)
        payload = dict(entities[0]["payload"]) if entities else {}
        if not payload:
            return cls()
        return cls(dict(payload["segments"]), tuple(payload["sending"]), tuple(payload["previous"]))

    def write(self, client: Any, collection: str, dim: int) -> Contents:
        """Into the collection."""
        vectors = {"sparse": {NOTHING: 1.0}, "dense": np.zeros(dim, np.float32)}
        entity = {"key": CONTENTS, **vectors, **dict.fromkeys(TEXTS, ""), "payload": asdict(self)}
        client.upsert(collection, [entity], timeout=TIMEOUT)
        return self


def create_collection(client: Any, target: Target, dim: int) -> None:
    """An empty collection with its indices."""
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


def first_key(segment: str) -> int:
    """The key of a segment's first document.

    >>> first_key("000002") == 2 << 32
    True
    """
    return int(segment) << ROW_BITS


def key_range(segment: str, start: int = 0, stop: int = (1 << ROW_BITS) - 1) -> str:
    """An expression that is true of the documents of these rows of a segment."""
    return f"(key >= {first_key(segment) + start} and key < {first_key(segment) + stop})"


def count_documents(client: Any, collection: str, segment: str) -> int:
    """How many documents of a segment a loaded collection has."""
    counts = client.query(collection, filter=key_range(segment), output_fields=["count(*)"], timeout=TIMEOUT)
    return int(counts[0]["count(*)"])


def dimension(stem: str) -> int:
    """Of a stem in sparse vectors, by its letters; stems may collide, as scores are not computed from it.

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
