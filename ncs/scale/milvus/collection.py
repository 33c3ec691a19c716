"""What a document is in Milvus: its key, both vectors, what can be filtered by, and what else is told of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ncs.build.delta.postings import StackedPostings
from ncs.scale.milvus.keys import Keys
from ncs.scale.milvus.target import TIMEOUT, Target
from ncs.sources.files import printable
from ncs.storage.documents import Heading, Store
from ncs.storage.postings import Postings
from ncs.storage.uses import References
from ncs.storage.vectors import VectorIndex

FORMAT = 2
LEXICAL, DENSE = "bm25", "ncs_centred"
ABOUT = -1
"""The key of what says what the collection holds."""
TEXTS = {"id": 8192, "language": 64, "kind": 64, "repository": 4096, "path": 8192}
FIELDS = {"key", "sparse", "dense", "payload"}
BATCH = 1000
BLOCK = 100_000
"""Documents whose postings are turned round at a time."""
SCANNED = 1 << 22
"""Postings that are looked at at a time."""
NOTHING = 0
"""A dimension that no stem has: Milvus takes no empty sparse vector."""
_DIMENSIONS = (1 << 32) - 2


def dimension(stem: str) -> int:
    """Of a stem in sparse vectors: of its letters, as its number hangs on what other stems there are.

    Two stems in 65,536 times as many have the same; scores are not computed from it.

    >>> 0 < dimension("hide") < 2**32 - 1
    True
    """
    return 1 + crc32(stem.encode(errors="surrogatepass")) % (_DIMENSIONS - 1)


def create(client: Any, target: Target, name: str, dim: int) -> None:
    """An empty collection with its indices."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", DataType.INT64, is_primary=True)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dim)
    for field, length in TEXTS.items():
        schema.add_field(field, DataType.VARCHAR, max_length=length)
    schema.add_field("payload", DataType.JSON)
    indices = client.prepare_index_params()
    indices.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    indices.add_index("dense", index_type=target.dense, metric_type="IP")
    client.create_collection(name, schema=schema, index_params=indices, consistency_level="Strong")


def collections(client: Any, alias: str) -> list[str]:
    """Those that we made for an alias: that which answers first, then the younger ones before the older."""
    names = [name for name in client.list_collections(timeout=TIMEOUT) if _number(alias, name)]
    now = answering(client, alias)
    return sorted(names, key=lambda name: (name != now, -_number(alias, name)))


def next_name(alias: str, names: list[str]) -> str:
    """A name that no collection has had while these were there.

    >>> next_name("code", ["code_2_7"])
    'code_2_8'
    """
    return f"{alias}_{FORMAT}_{1 + max((_number(alias, name) for name in names), default=0)}"


def _number(alias: str, name: str) -> int:
    number = name.removeprefix(f"{alias}_{FORMAT}_")
    return int(number) if number.isdecimal() and number != name else 0


def answering(client: Any, alias: str) -> str | None:
    """The collection behind an alias; None where there is none."""
    from pymilvus.exceptions import MilvusException

    try:
        return str(client.describe_alias(alias, timeout=TIMEOUT)["collection_name"])
    except MilvusException as error:
        if "not exist" in str(error) or "not found" in str(error):
            return None
        raise


def swap(client: Any, alias: str, name: str) -> None:
    """Who asks by the alias sees this one from now on."""
    before = answering(client, alias)
    if before is None:
        client.create_alias(name, alias, timeout=TIMEOUT)
    elif before != name:
        client.alter_alias(name, alias, timeout=TIMEOUT)


def ours(client: Any, alias: str, name: str) -> bool:
    """Whether a collection was made by us for an alias, by this version or one before."""
    if not (_number(alias, name) or re.fullmatch(f"{alias}_1_[0-9a-f]{{16}}", name)):
        return False
    fields = {field["name"] for field in client.describe_collection(name, timeout=TIMEOUT)["fields"]}
    return fields >= FIELDS or fields >= FIELDS - {"key"} | {"row"}


def documents(data: Path, keys: Keys, store: Store, rows: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """These rows as Milvus takes them. payload: names, lines, and the names that it uses."""
    postings, vectors = Postings.load(data / LEXICAL), VectorIndex.load(data / DENSE)
    references = References.load(data)
    for start in range(0, len(rows), BLOCK):
        sparse = by_document(postings, rows[start : start + BLOCK])
        for at in range(start, min(start + BLOCK, len(rows)), BATCH):
            some = rows[at : min(at + BATCH, start + BLOCK)]
            used, lengths = references.of(some)
            names = np.split(used, np.cumsum(lengths)[:-1])
            told = zip(
                keys.of(some).tolist(),
                sparse,
                vectors.vectors(some),
                store.headings(some.tolist()),
                names,
                strict=False,
            )
            for key, found, vector, heading, own in told:
                apis = [references.names.word(id) for id in own.tolist()]
                yield {"key": key, "sparse": found or {NOTHING: 1.0}, "dense": vector, **_told(heading, apis)}


def _told(heading: Heading, apis: list[str]) -> dict[str, Any]:
    id, repository, path, first, last, language, kind, name, qualified_name = heading
    texts = {"id": id, "language": language, "kind": kind, "repository": repository, "path": path}
    names = {"name": _clean(name), "qualified_name": _clean(qualified_name)}
    payload = {**names, "lines": [first, last], "apis": list(map(_clean, apis))}
    return {**{field: within(field, text) for field, text in texts.items()}, "payload": payload}


def by_document(postings: Postings, rows: NDArray[np.int64]) -> Iterator[dict[int, float]]:
    """Postings the other way round: of each of these rows its stems' dimensions and what they add to its score."""
    if isinstance(postings, StackedPostings):
        late, *parts = postings.split(rows)
        base, delta = (by_document(part, own) for part, own in parts)
        for is_late in late.tolist():
            yield next(delta if is_late else base)
        return
    stems, owners, impacts = _of(postings, rows)
    dimensions = {id: dimension(postings.stems.word(id)) for id in np.unique(stems).tolist()}
    bounds = np.searchsorted(owners, np.arange(len(rows) + 1)).tolist()
    known = [dimensions[id] for id in stems.tolist()]
    for first, last in pairwise(bounds):
        yield dict(zip(known[first:last], impacts[first:last].tolist(), strict=True))


def _of(
    postings: Postings, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Stems, positions among the rows and impacts of their postings, by position. All postings are looked at."""
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    position = np.full(len(postings), -1, np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    starts = range(0, len(postings.rows), SCANNED)
    found = (start + np.flatnonzero(position[postings.rows[start : start + SCANNED]] >= 0) for start in starts)
    at = np.concatenate([np.zeros(0, np.int64), *found])
    owners = position[postings.rows[at]].astype(np.int64)
    order = np.argsort(owners, kind="stable")
    at = at[order]
    return np.searchsorted(postings.offsets, at, side="right") - 1, owners[order], postings.impacts[at]


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def within(field: str, text: str) -> str:
    """What of a text such a field holds."""
    return printable(_clean(text)).encode()[: TEXTS[field]].decode("utf-8", "ignore")


def counted(client: Any, name: str) -> int:
    """How many documents a loaded collection has. Milvus Lite looks at every document for it."""
    found = client.query(name, filter="key >= 0", output_fields=["count(*)"], timeout=TIMEOUT)
    return int(found[0]["count(*)"])
