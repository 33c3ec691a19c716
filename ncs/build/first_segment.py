"""Answers by words before a first build is complete: of the first files that it reads, then of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.config import BuildConfig
from ncs.errors import NcsError
from ncs.build.pipeline import FITTED, Clock, Sources, counts_of, dense_rankers, fit_all, versions, words_part
from ncs.storage.generations import Generation
from ncs.storage.manifest import current_generation, read_manifest
from ncs.progress import silent
from ncs.sources.seen import Seen
from ncs.storage.documents import Store
from ncs.learn.word_vectors import PENDING

if TYPE_CHECKING:
    from ncs.build.batches import Collected
    from ncs.build.request import Recipe
    from ncs.sources import SourceFile

EARLY = 2_000
"""Documents from which on a first build lets an index answer by words while their vectors are learnt."""
LARGE = 32 << 20
"""Bytes of source from which on its first files answer alone: below, two cores have read all of them in ten seconds."""
SHARE = 0.25
"""Of these bytes. Reading is an eighth to a fifth of a build on two cores: answers come after a twentieth of it.
What was read is taken over by the build that goes on, for some two percent of its time."""


def complete(folder: Path) -> bool:
    """Whether an index there answers with all that it will: then nothing less may take its place."""
    if current_generation(folder) is None:
        return False
    try:
        return "pending" not in read_manifest(folder).counts
    except NcsError:
        return True  # damaged, or of another version: not ours to say


def from_first(recipe: Recipe, sources: Sources, generation: Generation, files: int, size: int) -> Generation:
    """Let the first of so many files and bytes answer; the generation to go on with, in which is nothing yet."""
    from ncs.extract.readers import why_unread
    from ncs.build.ingest import read
    from ncs.sources import Skipped

    config = recipe.config
    part, clock = replace(sources, skipped=Skipped(unwanted=why_unread), seen=Seen()), Clock()
    first = _of_bytes(recipe.files(part.skipped, None, part.seen), SHARE * size)
    tracked = recipe.track(first, "reading first files", total=None, unit="files")
    with clock("extract"):
        collected = read(tracked, generation.path, config, recipe.workers)
    if collected.documents:
        with closing(collected.words):
            words_part(collected, generation.path, config, silent, clock)
            collected.sources.save(generation.path)
            pending = f"{collected.files:,} of {files:,} files were read so far; they are found by their words only"
            _commit(collected, generation, config, clock, part, pending)
    return generation.next()


def _of_bytes(files: Iterable[SourceFile], size: float) -> Iterator[SourceFile]:
    """The first files that have so many bytes together."""
    for file in files:
        yield file
        size -= len(file.data)
        if size <= 0:
            return


def from_all(
    collected: Collected, generation: Generation, config: BuildConfig, clock: Clock, sources: Sources
) -> Generation:
    """Let all files answer while vectors of their words are learnt; the generation to go on with."""
    _commit(collected, generation, config, clock, sources, PENDING)
    following = generation.next()
    standing = generation.folder / str(current_generation(generation.folder))
    following.begin_with(standing, without=("embeddings.npy", "embeddings.json", *FITTED[1:]))
    return following


def _commit(
    collected: Collected, generation: Generation, config: BuildConfig, clock: Clock, sources: Sources, pending: str
) -> None:
    """With vectors of zeros."""
    from ncs.learn.embeddings import Embeddings

    nothing = Embeddings(np.zeros((len(collected.words.vocabulary), 1), np.float32))
    nothing.save(generation.path)
    with Store(generation.path / "documents.sqlite") as store:
        fit_all(dense_rankers(config), collected.words, nothing, store, generation.path, silent, Clock())
    counts = {**counts_of(collected, clock, sources), "embeddings": nothing.method, "pending": pending}
    generation.commit(config=asdict(config), counts=counts, versions=versions())
