"""How an index is made: files into documents, words into rankers, a generation that is complete."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.confidence import keep_tuned
from ncs.errors import BadInput, IndexVersion
from ncs.generations import Generation, new_generation
from ncs.manifest import Manifest, current_generation
from ncs.progress import Track, silent
from ncs.rankers import NeedsMore, Ranker, create_ranker, fit_ranker, requested_ranker
from ncs.rankers.bm25 import Bm25Ranker
from ncs.store import Store
from ncs.structure import Structure
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from ncs.batches import Collected
    from ncs.embeddings import Choice, Embeddings, FastTextConfig, LsaConfig
    from ncs.reading import Changes
    from ncs.reuse import Known
    from ncs.sources import Skipped, SourceFile
    from ncs.vocabulary import WordTable

SPACE = 4
"""Bytes an index may take for a byte of source, temporary ones included; 3.6 without these (DESIGN.md)."""
EARLY = 2_000
"""Documents from which on a first build lets an index answer by words while their vectors are learnt."""
PENDING = "word vectors are being learnt: so far words themselves are found, not their meaning"
DRIFT, GROWTH = 0.02, 1.5
"""Past these an update advises to learn word vectors anew."""
DECIDES_DOCUMENTS = ("java_frontend", "outside", "store_code", "deduplicate")
FITTED = ("bm25", "ncs", "ncs_centred")
"""What a build fits and saves; `hybrid` and `rrf` are made of these when they are asked for."""


def _default_fasttext() -> FastTextConfig:
    from ncs.embeddings import FastTextConfig

    return FastTextConfig()


def _default_lsa() -> LsaConfig:
    from ncs.embeddings import LsaConfig

    return LsaConfig()


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """What decides an index's content; it is kept in the manifest. (Workers do not: they change nothing.)"""

    fasttext: FastTextConfig = field(default_factory=_default_fasttext)
    lsa: LsaConfig = field(default_factory=_default_lsa)
    embeddings: Choice = "auto"
    """Which of the two learns the word vectors; "auto": see ncs.embeddings.chosen."""
    warm_start: str | None = None
    """Other code that word vectors learn from too: `stdlib`, an index, or source files (ncs.warm_start)."""
    java_frontend: str = "tree-sitter"
    outside: bool = True
    """Classes and top-level code are documents too, beside functions."""
    texts: bool = True
    """Files without a grammar are read too, as text (ncs.extract.texts)."""
    store_code: bool = True
    deduplicate: bool = True
    revision: str | None = None
    rankers: tuple[str, ...] = ()
    """Rankers on request, fitted and saved besides FITTED: `two_field`, `ncs_enhanced:pairs=pairs.jsonl.gz`."""

    def __post_init__(self) -> None:
        """Raise BadInput for a ranker that cannot be built as it is asked for, or for word vectors of no kind."""
        if self.embeddings not in ("auto", "fasttext", "lsa"):
            raise BadInput(f"word vectors are learnt by auto, fasttext or lsa, not {self.embeddings!r}")
        for text in self.rankers:
            requested_ranker(text)

    @classmethod
    def of(cls, manifest: Manifest) -> BuildConfig:
        """Of an index that stands; raises IndexVersion where this ncs does not know its settings."""
        from ncs.embeddings import FastTextConfig, LsaConfig

        found: dict[str, Any] = dict(manifest.config)
        try:
            fasttext, lsa = FastTextConfig(**found.pop("fasttext")), LsaConfig(**found.pop("lsa", {}))
            return cls(fasttext=fasttext, lsa=lsa, **{**found, "rankers": tuple(found.get("rankers", ()))})
        except (KeyError, TypeError) as error:
            raise IndexVersion(
                f"the index was built with other settings than this ncs has ({error}); build it again"
            ) from error

    def same_documents(self, other: BuildConfig) -> bool:
        """Whether files give the same documents by both."""
        return all(getattr(self, name) == getattr(other, name) for name in DECIDES_DOCUMENTS)


class Clock:
    """Seconds a stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - start, 2)


def requested_rankers(config: BuildConfig) -> list[Ranker]:
    """The rankers on request, sure to have what they need."""
    rankers = [requested_ranker(text) for text in config.rankers]
    for ranker in rankers:
        if isinstance(ranker, NeedsMore):
            ranker.prepare()
    return rankers


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a build is asked to do."""

    roots: tuple[Path, ...]
    config: BuildConfig
    workers: int | None = None
    force: bool = False
    track: Track = silent

    def wanted(self) -> Callable[[str], bool]:
        """Whether a file is read, by its path."""
        from ncs.extract.readers import readable, without_texts

        return readable if self.config.texts else without_texts

    def files(self, skipped: Skipped, known: Known | None) -> Iterator[SourceFile]:
        """Its source files in order; those that are known to be unchanged without their contents."""
        from ncs.sources import walk

        unchanged = known.unchanged if known else lambda origin: False
        wanted, revision = self.wanted(), self.config.revision
        return walk(
            self.roots, wanted=wanted, revision=revision, force=self.force, skipped=skipped, unchanged=unchanged
        )


def known_files(data: Path, manifest: Manifest, store: Store, config: BuildConfig) -> Known | None:
    """What an index can spare a build; None where it was made otherwise, or keeps too little.

    Without its code an index does not keep what tells a copy from its original either.
    """
    from ncs.file_table import FileTable
    from ncs.reuse import Known, made_by

    sources, table = manifest.counts.get("sources"), FileTable.load(data)
    if not isinstance(sources, dict) or table is None or not config.store_code or sources["made_by"] != made_by():
        return None
    if not config.same_documents(BuildConfig.of(manifest)):
        return None
    return Known(data, store, table, int(sources["began"]))


def changes_since(recipe: Recipe, data: Path, known: Known | None) -> Changes:
    """Which files differ from those of the index in `data`."""
    from ncs.file_table import FileTable
    from ncs.reading import changes
    from ncs.sources import Skipped

    table = known.table if known else FileTable.load(data)
    return changes(recipe.files(Skipped(), known), table.entries if table else ())


def make(recipe: Recipe, folder: Path, known: Known | None = None, learnt: tuple[Path, Manifest] | None = None) -> None:
    """Build the next generation of the index in `folder`; known, learnt: what is taken over from another one."""
    from ncs.extract.readers import why_unread
    from ncs.reading import MovedError
    from ncs.reuse import made_by
    from ncs.sources import Skipped, count

    config = recipe.config
    requested = requested_rankers(config)
    sources = Sources(recipe.roots, Skipped(unwanted=why_unread), time.time_ns(), made_by())
    total, size = count(recipe.roots, wanted=recipe.wanted(), revision=config.revision, force=recipe.force)
    try:
        with new_generation(folder, needed_bytes=SPACE * size) as generation:
            clock = Clock()
            with clock("extract"):
                collected = _read(recipe, sources, generation, known, total)
            learn(collected, generation, config, requested, recipe.track, clock, sources, learnt)
    except MovedError:
        make(recipe, folder, None, learnt)


def _read(recipe: Recipe, sources: Sources, generation: Generation, known: Known | None, total: int) -> Collected:
    from ncs.extract.readers import read_as_text, ungrammatical
    from ncs.reading import read

    files = recipe.files(sources.skipped, known)
    tracked = recipe.track(files, "reading functions", total=total, unit="files")
    collected = read(tracked, generation.path, recipe.config, recipe.workers, known)
    texts = read_as_text(entry.path for entry in collected.sources.entries)
    collected.tally["text_files"] = texts
    for line in ungrammatical(texts, sources.skipped.counts):
        sources.skipped.note(line)
    if not collected.documents:
        raise BadInput(nothing_found(recipe.roots, sources.skipped))
    return collected


def learn(
    collected: Collected,
    generation: Generation,
    config: BuildConfig,
    requested: Sequence[Ranker],
    track: Track,
    clock: Clock,
    sources: Sources | None = None,
    learnt: tuple[Path, Manifest] | None = None,
) -> None:
    """Words into rankers; then the generation is complete.

    learnt: the files and manifest of an index whose word vectors are taken over instead of training.
    """
    from ncs.calibration import calibrated
    from ncs.embeddings import chosen
    from ncs.head_calibration import weigh_head

    words = collected.words
    words.save(generation.path)
    with Store(generation.path / "documents.sqlite") as store, clock("structure"):
        structure = Structure.of(collected.references, words, store, deduplicate=config.deduplicate)
        structure.save(generation.path)
        owners = structure.places.repository[structure.places.file]
    with clock("bm25"):
        lexical = Bm25Ranker()
        lexical.fit(words, track=track)
        lexical.save(generation.path)
    if sources:
        collected.sources.save(generation.path)
        if learnt is None and len(words) >= EARLY and current_generation(generation.folder) is None:
            generation = _answer_early(collected, generation, config, clock, sources)
    folder = generation.path
    with clock("embeddings"):
        how = chosen(config.embeddings, owners, config.fasttext, config.lsa)
        embeddings, training = _word_vectors(words, how, config.warm_start, track, folder, learnt)
        embeddings.save(folder)
    with Store(folder / "documents.sqlite") as store:
        _fit([*map(create_ranker, FITTED[1:]), *requested], words, embeddings, store, folder, track, clock)
        with clock("calibration"):
            weighed = weigh_head(folder, store)
            calibration = {**calibrated(folder, store), **({"head": weighed} if weighed else {})}
    kept = keep_tuned(generation.folder, folder)
    counts = _counts(collected, clock, sources)
    counts |= {"calibration": calibration, "embeddings": embeddings.method, "training": training}
    notes = (*(sources.skipped.notes if sources else ()), *embeddings.notes, *kept)
    generation.commit(config=asdict(config), counts=counts, notes=notes, versions=_versions())


def _fit(
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


def _counts(collected: Collected, clock: Clock, sources: Sources | None) -> dict[str, object]:
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


def _answer_early(
    collected: Collected, generation: Generation, config: BuildConfig, clock: Clock, sources: Sources
) -> Generation:
    """Where nothing answers yet, answer by words while their vectors are learnt; the generation to go on with."""
    from ncs.embeddings import Embeddings

    nothing = Embeddings(np.zeros((len(collected.words.vocabulary), 1), np.float32))
    nothing.save(generation.path)
    with Store(generation.path / "documents.sqlite") as store:
        _fit(map(create_ranker, FITTED[1:]), collected.words, nothing, store, generation.path, silent, Clock())
    counts = {**_counts(collected, clock, sources), "embeddings": nothing.method, "pending": PENDING}
    generation.commit(config=asdict(config), counts=counts, versions=_versions())
    return generation.next(without=("embeddings.npy", "embeddings.json", *FITTED[1:]))


def _word_vectors(
    words: WordTable,
    how: FastTextConfig | LsaConfig,
    other: str | None,
    track: Track,
    folder: Path,
    learnt: tuple[Path, Manifest] | None,
) -> tuple[Embeddings, dict[str, object]]:
    """Learnt from these words or taken over; and from how much they were learnt, how much had none then and has now."""
    from ncs.embeddings import Embeddings
    from ncs.reuse import carried_over
    from ncs.warm_start import train_beside

    if learnt is None:
        then: dict[str, object] = {"documents": len(words)}
        if other:
            embeddings, then["warm_start"] = train_beside(words, other, how, track=track, folder=folder)
        else:
            embeddings = Embeddings.train(words, how, track=track, folder=folder)
        then["without_vector"] = _without_vector(words, embeddings)
    else:
        embeddings = carried_over(learnt[0], words)
        then = {**cast(Mapping[str, object], learnt[1].counts.get("training") or {})}
    return embeddings, {**then, "without_vector_now": _without_vector(words, embeddings)}


def _without_vector(words: WordTable, embeddings: Embeddings) -> float:
    """The share of the words of NCS_FIELDS that have no vector: rare ones, and those that came after the training."""
    has = np.einsum("ij,ij->i", embeddings.vectors, embeddings.vectors) > 0
    ids, _ = words.select(NCS_FIELDS)
    return round(float(1 - has[ids].mean()), 6) if len(ids) else 0.0


def retraining_advice(manifest: Manifest) -> str | None:
    """Whether word vectors should be learnt anew, and why; None while they serve.

    They should where DRIFT more of the words have none than when they were learnt, and where the corpus is
    GROWTH times what it was then.
    """
    training: dict[str, Any] = dict(cast(Mapping[str, object], manifest.counts.get("training") or {}))
    missing = training.get("without_vector_now", 0) - training.get("without_vector", 0)
    documents, then = cast(int, manifest.counts.get("documents", 0)), training.get("documents", 0)
    if missing > DRIFT:
        return f"{missing:.1%} of the words are newer than the word vectors; learn them with: ncs update --retrain"
    if then and documents > GROWTH * then:
        return f"word vectors were learnt from {then:,} documents of {documents:,}; learn again: ncs update --retrain"
    return None


@dataclass(frozen=True, slots=True)
class Sources:
    """Where an index is made from. began: nanoseconds since 1970. made_by: what decides the documents of a file."""

    roots: tuple[Path, ...]
    skipped: Skipped
    began: int
    made_by: str

    def described(self) -> dict[str, object]:
        """For the manifest."""
        return {"roots": [str(root.resolve()) for root in self.roots], "began": self.began, "made_by": self.made_by}


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
    from ncs.extract.readers import ungrammatical

    where = ", ".join(str(root) for root in roots)
    passed = ", ".join(f"{n} {reason}" for reason, n in sorted(skipped.counts.items()))
    remedy = next(ungrammatical({}, skipped.counts), "name a folder with source files")
    return f"no function found in {where} (skipped: {passed or 'nothing'}); {remedy}"
