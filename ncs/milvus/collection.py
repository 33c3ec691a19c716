"""What a document is in Milvus: its row, both vectors, what can be filtered by, and what else is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncs.lexical import Postings
from ncs.manifest import Manifest
from ncs.milvus.target import Target
from ncs.references import References
from ncs.sources.skips import shown
from ncs.store import Store
from ncs.vectors import VectorIndex

FORMAT = 1
LEXICAL, DENSE = "bm25", "ncs_centred"
ABOUT = -1
"""The row that says what the collection holds; written last, so that without it nothing is whole."""
TEXTS = {"language": 64, "kind": 64, "repository": 4096, "path": 8192}
BATCH = 1000
BLOCK = 100_000
"""Documents whose postings are turned round at a time."""


def collection_of(target: Target, manifest: Manifest) -> str:
    """The name of this index's collection: the same for the same files, so that what was begun is gone on with."""
    digest = blake2b(digest_size=8)
    for path, entry in sorted(manifest.files.items()):
        if path.startswith((f"{LEXICAL}/", f"{DENSE}/", "documents.")):
            digest.update(f"{path} {entry['blake2b']}\n".encode())
    return f"{target.alias}_{FORMAT}_{digest.hexdigest()}"


def create(client: Any, target: Target, name: str, dim: int) -> None:
    """An empty collection with its indices."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dim)
    for field, length in TEXTS.items():
        schema.add_field(field, DataType.VARCHAR, max_length=length)
    schema.add_field("payload", DataType.JSON)
    indices = client.prepare_index_params()
    indices.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    indices.add_index("dense", index_type=target.dense, metric_type="IP")
    client.create_collection(name, schema=schema, index_params=indices, consistency_level="Strong")


def about(documents: int, dim: int, stems: int) -> dict[str, Any]:
    """The row that is written last."""
    payload = {"format": FORMAT, "documents": documents, "dim": dim}
    return {
        "row": ABOUT,
        "sparse": {stems: 1.0},
        "dense": np.zeros(dim, np.float32),
        **dict.fromkeys(TEXTS, ""),
        "payload": payload,
    }


def rows_of(data: Path, store: Store, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Documents start..stop as Milvus takes them. payload: id, names, lines, and the ids of the names it uses."""
    postings, vectors = Postings.load(data / LEXICAL), VectorIndex.load(data / DENSE)
    references = References.load(data)
    sparse = by_document(postings, start, stop)
    dense = vectors.rows(np.arange(start, stop))
    for row, found, vector, document in zip(range(start, stop), sparse, dense, store.packed(start, stop), strict=True):
        id, repository, path, first, last, language, kind, name, qualified_name = document[:9]
        apis = references.ids[references.offsets[row] : references.offsets[row + 1]].tolist()
        texts = {"language": language, "kind": kind, "repository": repository, "path": path}
        yield {
            "row": row,
            "sparse": found or {len(postings.stems): 1.0},  # Milvus takes no empty one; no question has this stem
            "dense": vector,
            **{field: _within(text, TEXTS[field]) for field, text in texts.items()},
            "payload": {
                "id": _clean(id), "name": _clean(name), "qualified_name": _clean(qualified_name),
                "lines": [first, last], "apis": apis,
            },
        }  # fmt: skip


def by_document(postings: Postings, start: int, stop: int) -> Iterator[dict[int, float]]:
    """Postings the other way round: of each document its stems and what they add to its score."""
    at = np.flatnonzero((postings.rows >= start) & (postings.rows < stop))
    stems = np.searchsorted(postings.offsets, at, side="right") - 1
    rows: NDArray[np.int32] = postings.rows[at]
    order = np.argsort(rows, kind="stable")
    bounds = np.searchsorted(rows[order], np.arange(start, stop + 1)).tolist()
    stem_list, impacts = stems[order].tolist(), postings.impacts[at][order].tolist()
    for first, last in pairwise(bounds):
        yield dict(zip(stem_list[first:last], impacts[first:last], strict=True))


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _within(text: str, most: int) -> str:
    return shown(_clean(text)).encode()[:most].decode("utf-8", "ignore")
