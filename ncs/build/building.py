"""How an index is made: files into documents, words into rankers, a generation that is complete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.build import first_segment as early
from ncs.learn.confidence import keep_tuned
from ncs.config import BuildConfig
from ncs.build.delta.seen_files import save_seen
from ncs.errors import BadInput, NcsError
from ncs.build.pipeline import Clock, Sources, counts_of, dense_rankers, fit_all, versions, words_part
from ncs.storage.folder import open_folder
from ncs.build.request import Ready, Recipe, known_files
from ncs.storage.generations import Generation, new_generation
from ncs.build.frozen_stats import Kept, words_held
from ncs.storage.manifest import current_generation
from ncs.storage.map_files import keep_map
from ncs.build.memory import Budget, expected
from ncs.progress import Track
from ncs.search.rankers import KeepsCopy, NeedsMore, Ranker, requested_ranker
from ncs.storage.documents import Store, open_store
from ncs.learn.word_vectors import word_vectors

if TYPE_CHECKING:
    from ncs.build.batches import Collected
    from ncs.build.file_cache import Known
    from ncs.learn.fasttext import Trainer
    from ncs.sources import Skipped

SPACE = 4
"""Bytes an index may take for a byte of source, temporary ones included; 3.6 without these (DESIGN.md)."""


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
    kept: all else that it learnt too (ncs.build.frozen_stats), so that this index ranks as it does.
    reuse: files that the index in `folder` holds and that have not changed are taken over from it.
    """
    from ncs.extract.readers import why_unread
    from ncs.build.ingest import MovedError
    from ncs.build.file_cache import made_by
    from ncs.sources import Skipped, count
    from ncs.sources.repositories import address_of, is_address

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
                if reuse and current is None and size >= early.LARGE and config.store_code:
                    generation = early.from_first(recipe, sources, generation, total, size)
                known = _standing(folder, config, open_meanwhile) if reuse and recipe.scheduler is None else None
                collected = _read(recipe, sources, generation, known, total)
            budget.check(config.corpus(len(collected.words), len(collected.words.vocabulary)))
            also = Kept(learnt) if kept and learnt else None
            with closing(collected.words):
                told = recipe.track, clock, sources, learnt, _trainer(recipe), also
                learn(collected, generation, config, requested, *told, recipe.ready)
            if recipe.scheduler is not None:
                _discard(folder)
    except MovedError:
        make(recipe, folder, learnt, reuse=False, kept=kept)


def _discard(folder: Path) -> None:
    """What workers have read is in the index now."""
    from ncs.scale.dask.kept import Kept

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
    from ncs.build.ingest import read

    if recipe.scheduler is None:
        files = recipe.files(sources.skipped, known, sources.seen)
        tracked = recipe.track(files, "reading functions", total=total, unit="files")
        collected = read(tracked, generation.path, recipe.config, recipe.workers, known)
    else:
        from ncs.scale.dask.build import read as read_on_cluster
        from ncs.scale.dask.kept import Kept

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
    from ncs.scale.dask.training import trainer_at

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
    ready: Ready | None = None,
) -> None:
    """Words into rankers; then the generation is complete.

    learnt: the folder of an index whose word vectors are taken over instead of training. trainer: what runs fastText.
    kept: what else is not learnt anew. ready: told before the generation is complete.
    """
    from ncs.learn.calibration import calibrated
    from ncs.learn.embeddings import chosen
    from ncs.learn.head_calibration import weigh_head

    words = collected.words
    owners = words_part(collected, generation.path, config, track, clock, kept)
    if sources:
        collected.sources.save(generation.path)
        save_seen(generation.path, sources.seen, collected.sources)
        if learnt in (None, generation.folder) and len(words) >= early.EARLY and not early.complete(generation.folder):
            generation = early.from_all(collected, generation, config, clock, sources)
    folder = generation.path
    with clock("embeddings"):
        how = chosen(config.embeddings, owners, config.fasttext, config.lsa)
        embeddings, training = word_vectors(words, how, config.warm_start, track, folder, learnt, trainer)
        embeddings.save(folder)
        training = {**training, "held": words_held(words, embeddings)}
    with Store(folder / "documents.sqlite") as store:
        dense = dense_rankers(config) if kept is None else kept.teach(dense_rankers(config), words.vocabulary)
        fit_all(chain(dense, requested), words, embeddings, store, folder, track, clock)
        with clock("calibration"):
            weighed = weigh_head(folder, store)
            found = calibrated(folder, store) if kept is None else kept.calibrate(folder)
            calibration = {**found, **({"head": weighed} if weighed else {})}
        points, said = keep_map(generation.folder, folder, store)
    tuned = keep_tuned(generation.folder, folder)
    counts = counts_of(collected, clock, sources)
    counts |= {"calibration": calibration, "embeddings": embeddings.method, "training": training}
    counts |= {"map": points} if points else {}
    notes = (*(sources.skipped.notes if sources else ()), *embeddings.notes, *tuned, *said)
    if ready:
        ready(folder)
    generation.commit(config=asdict(config), counts=counts, notes=notes, versions=versions())


def nothing_found(roots: Sequence[Path], skipped: Skipped) -> str:
    from ncs.extract.readers import ungrammatical

    where = ", ".join(str(root) for root in roots)
    passed = ", ".join(f"{n} {reason}" for reason, n in sorted(skipped.counts.items()))
    remedy = next(ungrammatical({}, skipped.counts), "name a folder with source files")
    return f"no function found in {where} (skipped: {passed or 'nothing'}); {remedy}"
