"""How an index is made: files into documents, words into rankers, a generation that is complete."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.confidence import keep_tuned
from ncs.config import BuildConfig
from ncs.delta.seen_files import save_seen
from ncs.errors import BadInput, NcsError
from ncs.folder import open_folder
from ncs.freshness import Recipe, known_files
from ncs.generations import Generation, new_generation
from ncs.kept import Kept, words_held
from ncs.manifest import current_generation
from ncs.map_files import keep_map
from ncs.memory import Budget, expected
from ncs.progress import Track, silent
from ncs.rankers import KeepsCopy, NeedsMore, Ranker, create_ranker, fit_ranker, requested_ranker
from ncs.rankers.bm25 import Bm25Ranker
from ncs.sources.seen import Seen
from ncs.store import DIGESTS, Store, open_store
from ncs.structure import Structure
from ncs.vocabulary import COUNTS
from ncs.word_vectors import PENDING, word_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.batches import Collected
    from ncs.embeddings import Embeddings
    from ncs.reuse import Known
    from ncs.skipgram import Trainer
    from ncs.sources import Skipped
    from ncs.vocabulary import WordTable

SPACE = 4
"""Bytes an index may take for a byte of source, temporary ones included; 3.6 without these (DESIGN.md)."""
EARLY = 2_000
"""Documents from which on a first build lets an index answer by words while their vectors are learnt."""
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


def requested_rankers(texts: Iterable[str], standing: Path | None = None) -> list[Ranker]:
    """The rankers on request, written as `unif:head=HEAD`, sure to have what they need.

    standing: the data folder of the index that stands, from which a ranker may take its own copy of what is gone.
    """
    rankers = [requested_ranker(text) for text in texts]
    for ranker in rankers:
        if standing is not None and isinstance(ranker, KeepsCopy):
            ranker.take_over(standing)
        if isinstance(ranker, NeedsMore):
            ranker.prepare()
    return rankers


def make(recipe: Recipe, folder: Path, learnt: Path | None = None, *, reuse: bool = True, kept: bool = False) -> None:
    """Build the next generation of the index in `folder`.

    learnt: the folder of an index whose word vectors are taken over instead of training; it may be `folder`.
    kept: all else that it learnt too (ncs.kept), so that this index ranks as it does.
    reuse: files that the index in `folder` holds and that have not changed are taken over from it.
    """
    from ncs.extract.readers import why_unread
    from ncs.reading import MovedError
    from ncs.reuse import made_by
    from ncs.sources import Skipped, count
    from ncs.sources.addresses import address_of, is_address

    config = recipe.config
    current = current_generation(folder)
    requested = requested_rankers(config.rankers, folder / current if current else None)
    sources = Sources(recipe.roots, Skipped(unwanted=why_unread), time.time_ns(), made_by())
    if recipe.scheduler is None and (away := next(filter(is_address, recipe.roots), None)):
        raise BadInput(f"a cluster reads {address_of(away)}, not this machine; name one with --scheduler")
    total, size, budget = 0, 0, Budget.of(recipe.memory)
    if recipe.scheduler is None:  # what a cluster reads, this machine need not see
        total, size = count(recipe.roots, wanted=recipe.wanted(), revision=config.revision, force=recipe.force)
        budget.check(config.corpus(*expected(size)))
        recipe = replace(recipe, workers=budget.workers(recipe.workers, expected(size)[0]))
    try:
        with new_generation(folder, needed_bytes=SPACE * size) as generation:
            clock = Clock()
            with clock("extract"), ExitStack() as open_meanwhile:
                known = _standing(folder, config, open_meanwhile) if reuse and recipe.scheduler is None else None
                collected = _read(recipe, sources, generation, known, total)
            budget.check(config.corpus(len(collected.words), len(collected.words.vocabulary)))
            also = Kept(learnt) if kept and learnt else None
            with closing(collected.words):
                told = recipe.track, clock, sources, learnt, _trainer(recipe), also
                learn(collected, generation, config, requested, *told)
            if recipe.scheduler is not None:
                _discard(folder)
    except MovedError:
        make(recipe, folder, learnt, reuse=False, kept=kept)


def _discard(folder: Path) -> None:
    """What workers have read is in the index now."""
    from ncs.cluster.kept import Kept

    Kept.beside(folder).discard()


def _standing(folder: Path, config: BuildConfig, open_meanwhile: ExitStack) -> Known | None:
    """What the index that stands in the folder can spare a build; the write lock keeps its files there."""
    if current_generation(folder) is None:
        return None
    try:
        data, manifest = open_folder(folder)
        return known_files(data, manifest, open_meanwhile.enter_context(open_store(data)), config)
    except (NcsError, OSError):
        return None  # damaged, or of another version: then all is read


def _read(recipe: Recipe, sources: Sources, generation: Generation, known: Known | None, total: int) -> Collected:
    from ncs.extract.readers import read_as_text, ungrammatical
    from ncs.reading import read

    if recipe.scheduler is None:
        files = recipe.files(sources.skipped, known, sources.seen)
        tracked = recipe.track(files, "reading functions", total=total, unit="files")
        collected = read(tracked, generation.path, recipe.config, recipe.workers, known)
    else:
        from ncs.cluster.build import read as read_on_cluster
        from ncs.cluster.kept import Kept

        kept = Kept.beside(generation.folder)
        collected = read_on_cluster(recipe, sources.skipped, generation.path, recipe.scheduler, kept)
    texts = read_as_text(entry.path for entry in collected.sources.entries)
    collected.tally["text_files"] = texts
    for line in ungrammatical(texts, sources.skipped.counts):
        sources.skipped.note(line)
    if not collected.documents:
        raise BadInput(nothing_found(recipe.roots, sources.skipped))
    return collected


def _trainer(recipe: Recipe) -> Trainer | None:
    if recipe.scheduler is None:
        return None
    from ncs.cluster.training import trainer_at

    return trainer_at(recipe.scheduler)


def learn(
    collected: Collected,
    generation: Generation,
    config: BuildConfig,
    requested: Sequence[Ranker],
    track: Track,
    clock: Clock,
    sources: Sources | None = None,
    learnt: Path | None = None,
    trainer: Trainer | None = None,
    kept: Kept | None = None,
) -> None:
    """Words into rankers; then the generation is complete.

    learnt: the folder of an index whose word vectors are taken over instead of training. trainer: what runs fastText.
    kept: what else is not learnt anew.
    """
    from ncs.calibration import calibrated
    from ncs.embeddings import chosen
    from ncs.head_calibration import weigh_head

    words = collected.words
    owners = _words_part(collected, generation.path, config, track, clock, kept)
    if sources:
        collected.sources.save(generation.path)
        save_seen(generation.path, sources.seen, collected.sources)
        if learnt is None and len(words) >= EARLY and current_generation(generation.folder) is None:
            generation = _answer_early(collected, generation, config, clock, sources)
    folder = generation.path
    with clock("embeddings"):
        how = chosen(config.embeddings, owners, config.fasttext, config.lsa)
        embeddings, training = word_vectors(words, how, config.warm_start, track, folder, learnt, trainer)
        embeddings.save(folder)
        training = {**training, "held": words_held(words, embeddings)}
    with Store(folder / "documents.sqlite") as store:
        dense = _dense(config) if kept is None else kept.teach(_dense(config), words.vocabulary)
        _fit(chain(dense, requested), words, embeddings, store, folder, track, clock)
        with clock("calibration"):
            weighed = weigh_head(folder, store)
            found = calibrated(folder, store) if kept is None else kept.calibrate(folder)
            calibration = {**found, **({"head": weighed} if weighed else {})}
        points, said = keep_map(generation.folder, folder, store)
    tuned = keep_tuned(generation.folder, folder)
    counts = _counts(collected, clock, sources)
    counts |= {"calibration": calibration, "embeddings": embeddings.method, "training": training}
    counts |= {"map": points} if points else {}
    notes = (*(sources.skipped.notes if sources else ()), *embeddings.notes, *tuned, *said)
    generation.commit(config=asdict(config), counts=counts, notes=notes, versions=_versions())


def _dense(config: BuildConfig) -> Iterator[Ranker]:
    """One after the other: the vectors of one are enough to hold at a time."""
    return (create_ranker(name, vectors=config.vectors) for name in FITTED[1:])


def _words_part(
    collected: Collected, folder: Path, config: BuildConfig, track: Track, clock: Clock, kept: Kept | None
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
        _fit(_dense(config), collected.words, nothing, store, generation.path, silent, Clock())
    counts = {**_counts(collected, clock, sources), "embeddings": nothing.method, "pending": PENDING}
    manifest = generation.commit(config=asdict(config), counts=counts, versions=_versions())
    following = generation.next()
    following.begin_with(
        generation.folder / manifest.generation, without=("embeddings.npy", "embeddings.json", *FITTED[1:])
    )
    return following


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
        from ncs.sources.addresses import address_of, is_address

        roots = [address_of(root) if is_address(root) else str(root.resolve()) for root in self.roots]
        return {"roots": roots, "began": self.began, "base_began": self.began, "made_by": self.made_by}


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
