"""Documents of many repositories, read by the workers of a cluster, put together in the order of a single machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.build.batches import Batch, Collected, Collector
from ncs.build.file_cache import made_by
from ncs.scale.dask import addresses
from ncs.scale.dask.job import Job
from ncs.scale.dask.kept import Kept
from ncs.scale.dask.parts import Key, Part, name_of
from ncs.scale.dask.shards import Shard
from ncs.scale.dask.spread import SpreadWords
from ncs.scale.dask.tasks import LOCAL, Tasks, connected
from ncs.sources.repositories import address_of, is_address
from ncs.sources.roots import Names, check_roots
from ncs.storage.files import BROKEN, FAILED, READ

if TYPE_CHECKING:
    from ncs.build.request import Recipe
    from ncs.extract import Extraction
    from ncs.progress import Track
    from ncs.sources import Skipped


def read(recipe: Recipe, skipped: Skipped, folder: Path, scheduler: str, kept: Kept | None = None) -> Collected:
    """What `ncs.build.ingest.read` gives without an index that stands: nothing is taken over, all is read.

    scheduler: an address, or LOCAL. kept: what a build before this one has read, and what this one leaves to the next.
    What cannot be read on two workers is left out and named in `skipped`.
    Raises what `walk` raises, and NcsError where the cluster is gone.
    """
    config = recipe.config
    with (
        connected(scheduler, recipe.workers) as client,
        tempfile.TemporaryDirectory(prefix="shards-", dir=folder) as spool,
        Collector(folder, config.store_code, config.deduplicate) as collector,
    ):
        _Reader(recipe, skipped, Tasks(client, recipe.give_up), Path(spool), collector, kept).run(recipe.track)
        collected = collector.finish()
    return collected if scheduler == LOCAL else replace(collected, words=SpreadWords(collected.words, scheduler))


class _Reader:
    """Shards come in any order and wait on the disk until their turn."""

    def __init__(
        self, recipe: Recipe, skipped: Skipped, tasks: Tasks, spool: Path, collector: Collector, kept: Kept | None
    ) -> None:
        self._kept, self._again = kept, 0
        self._skipped, self._tasks, self._spool, self._collector = skipped, tasks, spool, collector
        config = recipe.config
        self._roots = _parts(recipe.roots, recipe.force)
        self._pattern = Job(
            self._roots[0],
            "",
            made_by(),
            tuple(root.root for root in self._roots),
            config.revision,
            config.java_frontend,
            config.outside,
            config.texts,
            config.store_code,
        )
        self._names, self._guesses = Names(), Names()
        self._waiting: dict[Key, Path | str | None] = {}
        """Every place that is not put together yet: None while it is read, then its shard, or why there is none."""
        self._parts: dict[Key, Part] = {}
        self._left = 0

    def run(self, track: Track) -> None:
        """Until nothing is left to read."""
        for root in self._roots:
            self._tasks.submit(replace(self._pattern, part=root, list_only=True))
            self._waiting[root.key], self._parts[root.key] = None, root
        for _ in track(self._ended(), "reading repositories", total=None, unit="repositories"):
            self._put_together()
        self._put_together()
        if self._waiting:
            raise ValueError(f"{len(self._waiting)} repositories were not put together")
        if self._again:
            self._skipped.note(f"{self._again:,} repositories had been read by a build that ended before its time")

    def _ended(self) -> Iterator[None]:
        for job, data, why in self._tasks.done():
            key = job.part.key
            if data is None:
                self._waiting[key] = why
            elif job.list_only:
                self._listed(job, _below(data))
            else:
                path = self._stored(job, data)
                for part in _below(data):
                    self._found(part)
                self._waiting[key] = path
            yield

    def _stored(self, job: Job, data: bytes) -> Path:
        """A shard on the disk: that of the build before this one, where the repository is as it was."""
        state = Shard.about_of(data)["state"]
        if self._kept is not None and state:
            self._again += job.had == state
            return self._kept.path(job) if job.had == state else self._kept.put(job, data)
        path = self._spool / str(self._left)
        self._left += 1
        path.write_bytes(data)
        return path

    def _listed(self, job: Job, below: list[Part]) -> None:
        """A root that is an address and holds others is none itself; a folder is one, of the files outside of all."""
        if below and is_address(job.part.root):
            del self._waiting[job.part.key], self._parts[job.part.key]
        else:
            self._read(job.part)
        for part in below:
            self._found(part)

    def _found(self, part: Part) -> None:
        """It may come twice: when its folder is listed, and when that is read."""
        if part.key not in self._parts:
            self._read(part)

    def _read(self, part: Part, name: str | None = None) -> None:
        self._waiting[part.key], self._parts[part.key] = None, part
        job = replace(self._pattern, part=part, name=name or name_of(part, self._guesses))
        self._tasks.submit(replace(job, had=self._kept.state(job)) if self._kept else job)

    def _put_together(self) -> None:
        """All that is there and has nothing before it that is not: what a place holds comes after it."""
        while self._waiting and (found := self._waiting[first := min(self._waiting)]) is not None:
            part = self._parts[first]
            if isinstance(found, str):
                self._skipped.add_unreadable(part.where.rstrip("/") or part.root)
                self._skipped.note(f"{part.path} is left out: {found}")
            else:
                added = self._add(Shard.from_bytes(found.read_bytes()), part)
                if found.parent == self._spool:
                    found.unlink()
                if not added:
                    return  # its name was taken: it is read again under its own
            del self._waiting[first]

    def _add(self, shard: Shard, part: Part) -> bool:
        """Its documents, unless another repository has the name it was read under."""
        if shard.files:
            name = name_of(part, self._names)
            if name != shard.files[0].repository:
                self._read(part, name)
                return False
        about: Mapping[str, Any] = shard.about
        self._skipped.counts.update(about["skipped"])
        unreadable: Sequence[str] = about["unreadable"]
        self._skipped.unreadable += unreadable[: max(0, 100 - len(self._skipped.unreadable))]
        for line in about["notes"]:
            self._skipped.note(line)
        files = iter(shard.files)
        for extraction in shard.extractions:
            self._collect(extraction, [next(files) for _ in range(extraction.files)])
        return True

    def _collect(self, extraction: Extraction[Batch], entries: list[Any]) -> None:
        states = {**dict.fromkeys(extraction.broken, BROKEN), **dict.fromkeys(extraction.failed, FAILED)}
        stated = [replace(each, state=states.get(f"{each.repository}/{each.path}", READ)) for each in entries]
        self._collector.add(extraction.result, stated, np.repeat(np.arange(len(stated)), extraction.counts))


def _below(data: bytes) -> list[Part]:
    return [Part(**{**each, "number": tuple(each["number"])}) for each in Shard.about_of(data)["below"]]


def _parts(roots: Iterable[Path], force: bool) -> list[Part]:
    """The roots, paths checked as `walk` checks them; raises SourceError."""
    given = list(roots)
    local = iter(check_roots([root for root in given if not is_address(root)], force))
    order: dict[str, None] = {}
    for root in given:
        order[address_of(root) if is_address(root) else str(next(local, root))] = None
    return [Part(root, (number,), archive=addresses.is_archive(root)) for number, root in enumerate(order)]
