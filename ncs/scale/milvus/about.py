"""What a collection says of itself, in an entity of its own: which states of an index it holds, and sums of its keys.

The sums tell a later update where to look for differences, so that it need not read all keys; where an update is under
way there are none, so that after its end, of whatever kind, the next one looks there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.learn.embeddings import Embeddings
from ncs.scale.milvus.collection import ABOUT, FORMAT, NOTHING, TEXTS
from ncs.scale.milvus.keys import Keys
from ncs.scale.milvus.target import TIMEOUT
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

BUCKETS = 1024
"""Parts of the keys that have a sum each."""
SHIFT = 63 - 10
PROBES = 64
"""Words whose vectors are remembered, to know whether documents' vectors can be compared with others."""


@dataclass(frozen=True)
class About:
    """dim, dense, probes: what makes vectors comparable. begun: documents when it was filled; moved: how many came or
    went since. states: of folders whose documents it all holds; none while it is filled. sums: of keys, by BUCKETS; ""
    where what is there is not known."""

    dim: int
    dense: str
    probes: Mapping[str, str]
    begun: int
    moved: int = 0
    states: tuple[str, ...] = ()
    sums: tuple[str, ...] = ("",) * BUCKETS
    format: int = FORMAT

    @classmethod
    def read(cls, client: Any, name: str) -> About | None:
        """Of a loaded collection; None where it says nothing, or in another format."""
        found = client.get(name, ids=[ABOUT], output_fields=["payload"], timeout=TIMEOUT)
        told = dict(found[0]["payload"]) if found else {}
        if told.get("format") != FORMAT:
            return None
        return cls(**{**told, "states": tuple(told["states"]), "sums": tuple(told["sums"].split(","))})

    def write(self, client: Any, name: str) -> None:
        """Into the collection."""
        payload = {**asdict(self), "sums": ",".join(self.sums)}
        vectors = {"sparse": {NOTHING: 1.0}, "dense": np.zeros(self.dim, np.float32)}
        client.upsert(
            name, [{"key": ABOUT, **vectors, **dict.fromkeys(TEXTS, ""), "payload": payload}], timeout=TIMEOUT
        )

    def holds(self, data: Path, keys: Keys) -> bool:
        """Whether all documents of this index are there, with vectors of its kind."""
        return keys.state in self.states and self.fits(data)

    def fits(self, data: Path) -> bool:
        """Whether the vectors of an index may stand beside those that are there: words have the same vectors."""
        if self.dim != Embeddings.of_folder(data).vectors.shape[1]:
            return False
        now = _vectors(data, self.probes)
        return all(self.probes[word] == told for word, told in now.items()) and bool(now or not self.probes)


def probes(data: Path) -> dict[str, str]:
    """Some words of an index, and what their vectors come to."""
    words = Vocabulary.of_folder(data)
    some = np.unique(np.linspace(0, max(0, len(words) - 1), min(16 * PROBES, len(words))).astype(np.int64))
    known = _vectors(data, [words.word(id) for id in some.tolist()])
    return dict(list(known.items())[:: max(1, len(known) // PROBES)][:PROBES])


def _vectors(data: Path, words: Any) -> dict[str, str]:
    """What the vectors of words come to, of those that have one."""
    vocabulary, vectors = Vocabulary.of_folder(data), Embeddings.of_folder(data).vectors
    found = {}
    for word in words:
        id = vocabulary.id(word)
        if id is not None and vectors[id].any():
            found[word] = blake2b(np.ascontiguousarray(vectors[id]).tobytes(), digest_size=4).hexdigest()
    return found


def bucket_of(keys: Numbers) -> Numbers:
    """The number of each key's part."""
    return keys >> SHIFT


def sums_of(keys: Numbers) -> tuple[str, ...]:
    """Of rising keys, by BUCKETS: how many there are and what they come to."""
    bounds = np.searchsorted(bucket_of(keys), np.arange(BUCKETS + 1))
    totals = np.zeros(len(keys) + 1, np.uint64)
    np.cumsum(keys.astype(np.uint64), out=totals[1:])
    sums, counts = totals[bounds[1:]] - totals[bounds[:-1]], np.diff(bounds)
    return tuple(f"{count:x}:{total:x}" for count, total in zip(counts.tolist(), sums.tolist(), strict=True))
