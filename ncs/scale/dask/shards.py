"""What comes back of one repository: its files and its documents as packed where they were made, as plain bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate, pairwise
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ncs.build.batches import Batch
from ncs.errors import NcsError
from ncs.extract import Extraction
from ncs.storage.files import FileEntry

DAMAGED = (ValueError, KeyError, TypeError, OSError, EOFError, IndexError, BadZipFile)
ARRAYS = ("ids", "lengths", "names", "uses")


@dataclass(frozen=True, slots=True)
class Shard:
    """about: what else is told of the repository, as JSON. files: in order, with those of all extractions."""

    about: Mapping[str, Any]
    files: Sequence[FileEntry]
    extractions: Sequence[Extraction[Batch]]

    def to_bytes(self) -> bytes:
        """As one .npz without pickles: JSON for texts and numbers, the rest as arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        told = [_told(each, arrays, f"{number}.") for number, each in enumerate(self.extractions)]
        files = [[*astuple(entry)[:4], entry.digest.hex(), entry.bytes, entry.state] for entry in self.files]
        for name, content in (("about", self.about), ("head", {"files": files, "extractions": told})):
            arrays[name] = np.frombuffer(json.dumps(content).encode(), np.uint8)
        stream = io.BytesIO()
        np.savez(stream, allow_pickle=False, **arrays)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Shard:
        """Raises NcsError for anything else than `to_bytes` makes."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                head, about = (json.loads(arrays[name].tobytes()) for name in ("head", "about"))
                found = tuple(_read(each, arrays, f"{number}.") for number, each in enumerate(head["extractions"]))
            files = [_entry(*each) for each in head["files"]]
            return cls(about, files, found)
        except DAMAGED as error:
            raise NcsError(f"a worker sent what is no shard ({error}); do all machines run the same ncs?") from error

    @staticmethod
    def about_of(data: bytes) -> Mapping[str, Any]:
        """`about` alone; raises NcsError."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                found: Mapping[str, Any] = json.loads(arrays["about"].tobytes())
                return found
        except DAMAGED as error:
            raise NcsError(f"a worker sent what is no shard ({error}); do all machines run the same ncs?") from error


def _entry(repository: str, path: str, place: str, stamp: str, digest: str, size: int, state: int) -> FileEntry:
    return FileEntry(repository, path, place, stamp, bytes.fromhex(digest), size, state)


def _told(extraction: Extraction[Batch], arrays: dict[str, NDArray[Any]], at: str) -> dict[str, object]:
    """One extraction as JSON and, under names that begin with `at`, arrays."""
    batch = extraction.result
    for name, texts in (("bodies", [each[10] for each in batch.packed]), ("digests", batch.digests)):
        arrays[f"{at}{name}"] = np.frombuffer(b"".join(texts), np.uint8)
        arrays[f"{at}{name}.lengths"] = np.array([len(text) for text in texts], np.int64)
    names, ids, uses = batch.references
    for name, array in zip(ARRAYS, (batch.ids, batch.lengths, ids, uses), strict=True):
        arrays[f"{at}{name}"] = array
    return {
        "packed": [each[:9] for each in batch.packed],
        "kept": bool(batch.packed) and bool(batch.packed[0][9]),
        "words": list(batch.words),
        "names": list(names),
        "counts": list(extraction.counts),
        "bytes": extraction.bytes,
        "broken": list(extraction.broken),
        "failed": list(extraction.failed),
    }


def _read(told: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], at: str) -> Extraction[Batch]:
    bodies, digests = (
        list(_cut(arrays[f"{at}{name}"], arrays[f"{at}{name}.lengths"])) for name in ("bodies", "digests")
    )
    ids, lengths, names, uses = (arrays[f"{at}{name}"] for name in ARRAYS)
    kept = digests if told["kept"] else [b""] * len(digests)
    packed = [(*each, digest, body) for each, digest, body in zip(told["packed"], kept, bodies, strict=True)]
    locations = [(each[1], each[2], each[3], each[4], each[8]) for each in packed]
    batch = Batch(packed, digests, locations, told["words"], ids, lengths, (told["names"], names, uses))
    counts, broken, failed = (tuple(told[name]) for name in ("counts", "broken", "failed"))
    return Extraction(batch, len(counts), told["bytes"], len(packed), counts, broken, failed)


def _cut(joined: NDArray[np.uint8], lengths: NDArray[np.int64]) -> Iterator[bytes]:
    data = joined.tobytes()
    for start, stop in pairwise(accumulate(lengths.tolist(), initial=0)):
        yield data[start:stop]
