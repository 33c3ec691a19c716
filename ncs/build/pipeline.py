"""What a build fits to the words of the documents, and what its manifest tells of it."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.config import BuildConfig
from ncs.progress import Track
from ncs.search.rankers import Ranker, create_ranker, fit_ranker
from ncs.search.bm25 import Bm25Ranker
from ncs.sources.seen import Seen
from ncs.storage.documents import DIGESTS, Store
from ncs.storage.document_facts import Structure
from ncs.storage.words import COUNTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.build.batches import Collected
    from ncs.learn.embeddings import Embeddings
    from ncs.build.frozen_stats import Kept
    from ncs.sources import Skipped
    from ncs.storage.words import WordTable

FITTED = ("bm25", "ncs", "ncs_centred")
"""What a build fits and saves; `hybrid` and `rrf` are made of these when they are asked for."""


class Clock:
    """Seconds a stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - start, 2)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where an index is made from. began: nanoseconds since 1970. made_by: what decides the documents of a file."""

    roots: tuple[Path, ...]
    skipped: Skipped
    began: int
    made_by: str
    seen: Seen = field(default_factory=Seen)
    """What the walk met beside the files."""

    def described(self) -> dict[str, object]:
        """For the manifest."""
        from ncs.sources.repositories import address_of, is_address

        roots = [address_of(root) if is_address(root) else str(root.resolve()) for root in self.roots]
        return {"roots": roots, "began": self.began, "base_began": self.began, "made_by": self.made_by}


def dense_rankers(config: BuildConfig) -> Iterator[Ranker]:
    """One after the other: the vectors of one are enough to hold at a time."""
    return (create_ranker(name, vectors=config.vectors) for name in FITTED[1:])


def words_part(
    collected: Collected, folder: Path, config: BuildConfig, track: Track, clock: Clock, kept: Kept | None = None
) -> NDArray[np.int32]:
    """What is found by words: on the disk afterwards, no more in memory. The repository of each row, [n]."""
    with clock("structure"):
        owners = _structure(collected, folder, config, kept)
    with clock("bm25"):
        lexical = Bm25Ranker()
        lexical.learnt = kept.postings() if kept else None
        lexical.fit(collected.words, track=track)
        lexical.save(folder)
    return owners


def _structure(collected: Collected, folder: Path, config: BuildConfig, kept: Kept | None) -> NDArray[np.int32]:
    deduplicable = config.deduplicate and config.store_code
    with Store(folder / "documents.sqlite") as store:
        structure = Structure.of(collected.references, collected.words, store, deduplicate=config.deduplicate)
        if deduplicable:
            np.save(folder / DIGESTS, store.digests())
    structure = kept.structure(structure) if kept else structure
    structure.save(folder)
    np.save(folder / COUNTS, collected.words.counts())
    return structure.places.repository[structure.places.file]


def fit_all(
    rankers: Iterable[Ranker],
    words: WordTable,
    embeddings: Embeddings,
    store: Store,
    folder: Path,
    track: Track,
    clock: Clock,
) -> None:
    for ranker in rankers:
        with clock(ranker.name):
            fit_ranker(ranker, words, embeddings, store, track=track)
            ranker.save(folder)


def counts_of(collected: Collected, clock: Clock, sources: Sources | None) -> dict[str, object]:
    skipped = sources.skipped if sources else None
    return {
        **collected.counts(),
        "words": len(collected.words.vocabulary),
        "sources": sources.described() if sources else None,
        "seconds": dict(clock.seconds),
        "peak_memory_bytes": _peak_memory(),
        "skipped": dict(sorted(skipped.counts.items())) if skipped else {},
        "unreadable_files": list(skipped.unreadable) if skipped else [],
    }


def _peak_memory() -> int:
    """What this process or the largest of its children held at most; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return peak if sys.platform == "darwin" else peak * 1024


def versions() -> Mapping[str, str]:
    names = ("numpy", "faiss-cpu", "fasttext", "tree-sitter", "tree-sitter-java", "tree-sitter-python", "PyStemmer")
    installed = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), "ncs": importlib.metadata.version("neural-code-search"), **installed}
