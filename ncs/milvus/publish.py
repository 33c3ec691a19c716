"""Puts an index into Milvus: beside the one that answers, and in its place when it is whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.delta import room_of
from ncs.errors import BadInput, NcsError
from ncs.folder import open_folder
from ncs.lexical import Postings
from ncs.milvus.collection import ABOUT, BATCH, BLOCK, DENSE, LEXICAL, about, collection_of, create, rows_of
from ncs.milvus.target import TIMEOUT, Target, connected, patiently, told
from ncs.progress import Track, silent
from ncs.store import Store, open_store
from ncs.vectors import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Published:
    """collection: which one answers now. written, there: documents sent, and found there from before."""

    collection: str
    written: int
    there: int


def publish(folder: Path, target: Target, *, track: Track = silent) -> Published:
    """The index in `folder` answers at `target`, when all of it is there.

    A Milvus that is lost is waited for. Begun anew after an end of any kind it goes on where it was: batches that are
    there are not sent again, and sending one twice changes nothing, as the row of a document is its key. What answered
    before stays until then, and once more after, for readers that are open. Raises what `connected` raises, and
    NcsError.
    """
    return patiently(partial(_publish, folder, target, track), target.seconds)


def _publish(folder: Path, target: Target, track: Track) -> Published:
    data, manifest = open_folder(folder)
    if room_of(data):
        raise BadInput(f"{folder} was updated beside its base, and a store takes whole builds; run: ncs update --store")
    vectors, stems = VectorIndex.load(data / DENSE), len(Postings.load(data / LEXICAL).stems)
    with open_store(data) as store, connected(target) as client:
        name, total = collection_of(target, manifest), len(store)
        with told(target):
            if not client.has_collection(name):
                create(client, target, name, vectors.dim)
            client.load_collection(name, timeout=TIMEOUT)
            missing = _not_begun(client, name, total)
            there = total - sum(_size(total, start) for start in missing)
            sent = _batches(client, name, data, store, missing)
            written = sum(1 for _ in track(sent, "documents to Milvus", total=total - there, unit="documents"))
            if _count(client, name, 0, total) != total:
                short = {at for at in range(0, total, BATCH) if _count(client, name, at, at + BATCH) < _size(total, at)}
                written += sum(1 for _ in _batches(client, name, data, store, short))
            if (counted := _count(client, name, 0, total)) != total:
                raise NcsError(f"{target.shown} has {counted:,} of {total:,} documents; publish again")
            client.upsert(name, [about(total, vectors.dim, stems)], timeout=TIMEOUT)
            client.flush(name, timeout=TIMEOUT)
            client.load_collection(name, timeout=TIMEOUT)
            _swap(client, target.alias, name)
    return Published(name, written, there)


def _size(total: int, start: int) -> int:
    return min(BATCH, total - start)


def _not_begun(client: Any, name: str, total: int) -> set[int]:
    """The first rows of batches whose first and last document are not both there."""
    starts = range(0, total, BATCH)
    ends = sorted({row for start in starts for row in (start, start + _size(total, start) - 1)})
    found: set[int] = set()
    for at in range(0, len(ends), BATCH):
        some = client.get(name, ids=ends[at : at + BATCH], output_fields=["row"], timeout=TIMEOUT)
        found.update(each["row"] for each in some)
    return {start for start in starts if not {start, start + _size(total, start) - 1} <= found}


def _count(client: Any, name: str, start: int, stop: int) -> int:
    """How many of these documents are there. Milvus Lite looks at every document for it."""
    asked = f"row >= {start} and row < {stop}"
    found = client.query(name, filter=asked, output_fields=["count(*)"], timeout=TIMEOUT)
    return int(found[0]["count(*)"])


def _batches(client: Any, name: str, data: Path, store: Store, wanted: set[int]) -> Iterator[int]:
    """Sends these batches; a number for each document that was sent."""
    for block in range(0, len(store), BLOCK):
        stop = min(block + BLOCK, len(store))
        if wanted.isdisjoint(range(block, stop, BATCH)):
            continue
        rows = rows_of(data, store, block, stop)
        for start in range(block, stop, BATCH):
            batch = list(islice(rows, min(BATCH, stop - start)))
            if start in wanted:
                client.upsert(name, batch, timeout=TIMEOUT)
                yield from range(start, start + len(batch))


def _swap(client: Any, alias: str, name: str) -> None:
    """Readers that open from now on see this one; of the others the last that answered is kept."""
    before = answering(client, alias)
    if before is None:
        client.create_alias(name, alias, timeout=TIMEOUT)
    elif before != name:
        client.alter_alias(name, alias, timeout=TIMEOUT)
    for other in client.list_collections(timeout=TIMEOUT):
        if other.startswith(f"{alias}_") and other not in (name, before) and _ours(client, other):
            client.drop_collection(other, timeout=TIMEOUT)


def _ours(client: Any, name: str) -> bool:
    """Whether a collection of such a name was made by us."""
    return {"row", "sparse", "dense", "payload"} <= {
        field["name"] for field in client.describe_collection(name, timeout=TIMEOUT)["fields"]
    }


def answering(client: Any, alias: str) -> str | None:
    """The collection behind an alias; None where there is none."""
    from pymilvus.exceptions import MilvusException

    try:
        return str(client.describe_alias(alias, timeout=TIMEOUT)["collection_name"])
    except MilvusException as error:
        if "not exist" in str(error) or "not found" in str(error):
            return None
        raise


def is_whole(client: Any, name: str) -> dict[str, Any] | None:
    """What the last row of a collection says of it; None where it was never finished."""
    found = client.get(name, ids=[ABOUT], output_fields=["payload"], timeout=TIMEOUT)
    return dict(found[0]["payload"]) if found else None
