"""How an index is made: files into documents, words into rankers, a generation that is complete."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.generations import Generation
from ncs.progress import Track
from ncs.rankers import NeedsMore, Ranker, create_ranker, fit_ranker, requested_ranker
from ncs.store import Store
from ncs.structure import Structure

if TYPE_CHECKING:
    from ncs.batches import Collected
    from ncs.embeddings import FastTextConfig
    from ncs.sources import Skipped, SourceFile

SPACE = 4
"""Bytes an index may take for a byte of source, temporary ones included; 3.5 without these (DESIGN.md)."""
FITTED = ("bm25", "ncs", "ncs_centred")
"""What a build fits and saves; `hybrid` and `rrf` are made of these when they are asked for."""


def _default_fasttext() -> FastTextConfig:
    from ncs.embeddings import FastTextConfig

    return FastTextConfig()


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """What decides an index's content; it is kept in the manifest. (Workers do not: they change nothing.)"""

    fasttext: FastTextConfig = field(default_factory=_default_fasttext)
    java_frontend: str = "tree-sitter"
    outside: bool = True
    """Classes and top-level code are documents too, beside functions."""
    store_code: bool = True
    deduplicate: bool = True
    revision: str | None = None
    rankers: tuple[str, ...] = ()
    """Rankers on request, fitted and saved besides FITTED: `two_field`, `ncs_enhanced:pairs=pairs.jsonl.gz`."""

    def __post_init__(self) -> None:
        """Raise BadInput for a ranker that cannot be built as it is asked for."""
        for text in self.rankers:
            requested_ranker(text)


class Clock:
    """Seconds a stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - start, 2)


def extract(files: Iterable[SourceFile], folder: Path, config: BuildConfig, workers: int | None) -> Collected:
    """Files into documents in the store and words in a table, in the order of the files."""
    from ncs.batches import Collector, pack_batch
    from ncs.extract import extract_files

    finish = partial(pack_batch, code=config.store_code)
    with Collector(folder, config.store_code, config.deduplicate) as collector:
        for extraction in extract_files(
            files, workers=workers, frontend=config.java_frontend, outside=config.outside, finish=finish
        ):
            collector.add(extraction.result)
            collector.note_files(extraction)
        return collector.finish()


def requested_rankers(config: BuildConfig) -> list[Ranker]:
    """The rankers on request, sure to have what they need."""
    rankers = [requested_ranker(text) for text in config.rankers]
    for ranker in rankers:
        if isinstance(ranker, NeedsMore):
            ranker.prepare()
    return rankers


def learn(
    collected: Collected,
    generation: Generation,
    config: BuildConfig,
    requested: Sequence[Ranker],
    track: Track,
    clock: Clock,
    skipped: Skipped | None,
) -> None:
    """Words into rankers; then the generation is complete."""
    from ncs.calibration import calibrated
    from ncs.embeddings import Embeddings

    words, folder = collected.words, generation.path
    words.save(folder)
    with clock("embeddings"):
        embeddings = Embeddings.train(words, config.fasttext, track=track, folder=folder)
        embeddings.save(folder)
    with Store(folder / "documents.sqlite") as store:
        with clock("structure"):
            structure = Structure.of(collected.references, words, store, deduplicate=config.deduplicate)
            structure.save(folder)
        for ranker in chain(map(create_ranker, FITTED), requested):
            with clock(ranker.name):
                fit_ranker(ranker, words, embeddings, store, track=track)
                ranker.save(folder)
                del ranker
        with clock("calibration"):
            calibration = calibrated(folder, store)
    counts = {
        **collected.counts(),
        "calibration": calibration,
        "words": len(words.vocabulary),
        "embeddings": embeddings.method,
        "seconds": clock.seconds,
        "peak_memory_bytes": _peak_memory(),
        "skipped": dict(sorted(skipped.counts.items())) if skipped else {},
        "unreadable_files": list(skipped.unreadable) if skipped else [],
    }
    notes = (*(skipped.notes if skipped else ()), *embeddings.notes)
    generation.commit(config=asdict(config), counts=counts, notes=notes, versions=_versions())


def _peak_memory() -> int:
    """What this process or the largest of its children held at most; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return peak if sys.platform == "darwin" else peak * 1024


def _versions() -> Mapping[str, str]:
    names = ("numpy", "faiss-cpu", "fasttext", "tree-sitter", "tree-sitter-java", "tree-sitter-python", "PyStemmer")
    installed = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), "ncs": importlib.metadata.version("neural-code-search"), **installed}


def nothing_found(roots: Sequence[Path], skipped: Skipped) -> str:
    from ncs.extract.languages import missing

    where = ", ".join(str(root) for root in roots)
    passed = ", ".join(f"{n} {reason}" for reason, n in sorted(skipped.counts.items()))
    remedy = next(missing(skipped.counts), "name a folder with source files")
    return f"no function found in {where} (skipped: {passed or 'nothing'}); {remedy}"
