"""Building on several machines: workers of a Dask cluster write a segment of each repository, the client merges them.

Dask pickles what it sends between client, scheduler and workers: whoever reaches a scheduler's port can run code on all
of them. Use it on a network of your own, or with Dask's TLS settings. What a worker sends back is a zip of arrays and a
database; nothing of it is unpickled.
"""

from __future__ import annotations

import io
import json
import logging
import queue
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from ncs.build.file_cache import made_by, segment_batches
from ncs.build.ingest import CollectedDocuments, Collector
from ncs.build.request import Request
from ncs.errors import NcsError, SourceError, needing
from ncs.scale.dask_worker import BAD_SOURCE, REFUSED, REPORT, SEGMENT, SETTINGS, Key, Part, is_archive, read
from ncs.sources import Skipped
from ncs.sources.filters import MAX_NOTES
from ncs.sources.repositories import address_of, is_address
from ncs.sources.roots import Names, check_roots
from ncs.storage.files import home_of

LOCAL = "local"
"""In place of a scheduler's address: workers of this machine."""
PATIENCE = 60.0
"""Seconds without any worker after which a build ends."""
TICK = 2.0
"""Seconds between checks for workers."""
TRIES = 2
"""Workers on which a repository may fail before it is left out."""


def ingest_on_cluster(
    request: Request, skipped: Skipped, segment: Path, *, scheduler: str, give_up: float = 1800
) -> CollectedDocuments:
    """`ncs.build.ingest.ingest` on the workers of a cluster, without a cache.

    scheduler: an address, or LOCAL. A repository that takes longer than give_up seconds, or fails, on two workers is
    skipped and listed in `skipped`.
    Raises what `walk` raises, and NcsError where the cluster is gone.
    """
    config, began, roots = request.config, time.time_ns(), _parts(request.roots, request.force)
    with (
        connect(scheduler, request.workers) as client,
        tempfile.TemporaryDirectory(prefix="shards-", dir=segment) as spool,
        Collector(segment, config.deduplicate) as collector,
    ):
        tasks = Tasks(client, job_settings(request, roots), give_up)
        merge = _Merge(tasks, skipped, Path(spool), collector)
        for root in roots:
            merge.submit(root)
        for part, answer, reason in request.track(tasks.done(), "reading repositories", unit="repositories"):
            merge.add(part, answer, reason)
        return collector.finish(began, home_of(segment.parents[1]))


def job_settings(request: Request, roots: Sequence[Part]) -> dict[str, Any]:
    """The settings that all jobs share; see `ncs.scale.dask_worker.run`."""
    return {
        "made_by": made_by(),
        "other_roots": [root.root for root in roots],
        "config": {name: getattr(request.config, name) for name in SETTINGS},
    }


def _parts(roots: Sequence[Path], force: bool) -> list[Part]:
    """The roots, paths checked as `walk` checks them; raises SourceError."""
    local = iter(check_roots([root for root in roots if not is_address(root)], force))
    order = dict.fromkeys(address_of(root) if is_address(root) else str(next(local, root)) for root in roots)
    return [Part(root, (number,), archive=is_archive(root)) for number, root in enumerate(order)]


class _Merge:
    """Merges segments in the order of repositories; early ones are spooled on disk."""

    def __init__(self, tasks: Tasks, skipped: Skipped, spool: Path, collector: Collector) -> None:
        self._tasks, self._skipped, self._spool, self._collector = tasks, skipped, spool, collector
        self._names, self._numbers = Names(), count()
        self._waiting: dict[Key, tuple[Part, Path | str | None]] = {}
        """Unmerged parts with None while running, then the path of the zip, or the reason of the failure."""

    def submit(self, part: Part) -> None:
        """Let a worker read a part."""
        self._waiting[part.key] = part, None
        self._tasks.submit(part)

    def add(self, part: Part, answer: bytes | None, reason: str) -> None:
        """Take the zip of a part or the reason of its failure; merge all parts whose predecessors are merged."""
        self._waiting[part.key] = part, reason
        if answer is not None:
            with zipfile.ZipFile(io.BytesIO(answer)) as archive:
                below = [Part(**fields) for fields in json.loads(archive.read(REPORT))["below"]]
            if below and is_address(part.root):  # a list or folder of repositories
                del self._waiting[part.key]
            else:
                path = self._spool / str(next(self._numbers))
                path.write_bytes(answer)
                self._waiting[part.key] = part, path
            for each in below:
                self.submit(each)
        while self._waiting:
            first = min(self._waiting)
            part, outcome = self._waiting[first]
            if outcome is None:
                break
            if isinstance(outcome, str):
                self._skipped.add_unreadable(part.prefix.rstrip("/") or part.root)
                self._skipped.note(f"{part.path} is left out: {outcome}")
            else:
                self._merge(outcome, part)
            del self._waiting[first]

    def _merge(self, path: Path, part: Part) -> None:
        with tempfile.TemporaryDirectory(dir=self._spool) as room:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(room)
            report = json.loads(Path(room, REPORT).read_bytes())
            self._skipped.counts.update(report["skipped"])
            self._skipped.unreadable += report["unreadable"][: max(0, MAX_NOTES - len(self._skipped.unreadable))]
            for line in report["notes"]:
                self._skipped.note(line)
            for batch, entries, owners in segment_batches(Path(room)):
                name = part.name(self._names)  # a worker does not know which names are in use
                names = {each.repository: name for each in entries}
                files = [each._replace(repository=name) for each in entries]
                self._collector.add(batch.renamed(names), files, owners)
        path.unlink()


class Tasks:
    """Running jobs. settings: what all of them share; seconds: time limit of a job on a worker."""

    def __init__(self, client: Any, settings: dict[str, Any], seconds: float) -> None:
        self._client, self._settings, self._seconds = client, settings, seconds
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: dict[str, tuple[Any, Part, tuple[str, ...]]] = {}
        """By the key of the future: it, its part, and the workers on which that failed."""

    def submit(self, part: Part, failed_on: tuple[str, ...] = ()) -> None:
        """Submit a part to any worker, or to one where it has not failed."""
        addresses = [address for address in self._workers() if address not in failed_on] if failed_on else []
        options = {"workers": addresses, "allow_other_workers": True} if addresses else {}
        job = json.dumps({"part": asdict(part), **self._settings})
        future = self._client.submit(read, job, self._seconds, pure=False, **options)
        self._running[future.key] = future, part, failed_on
        future.add_done_callback(self._ended.put)

    def done(self) -> Iterator[tuple[Part, bytes | None, str]]:
        """Parts in order of completion, with their zip, or None and the reason; includes jobs submitted meanwhile.

        Raises SourceError for a root that cannot be read, and NcsError where the cluster is gone.
        """
        from distributed import KilledWorker

        while self._running:
            future, part, failed_on = self._running.pop(self._next().key)
            if future.status == "cancelled":
                raise NcsError("the scheduler is gone, or has canceled the build; start it again and build again")
            try:
                outcome, answer, worker = future.result()
            except KilledWorker:
                outcome, answer, worker = None, b"its workers died repeatedly", ""
            future.release()
            if outcome == SEGMENT:
                yield part, answer, ""
                continue
            reason = answer.decode("utf-8", "replace")
            if outcome == REFUSED:
                raise NcsError(f"{worker}: {reason}")
            if outcome == BAD_SOURCE and not part.prefix and len(part.number) == 1:  # a root as it was given
                raise SourceError(reason)
            failed_on = (*failed_on, worker)
            if len(failed_on) >= TRIES or (outcome == BAD_SOURCE and not is_address(part.root)):
                yield part, None, reason
            else:
                self.submit(part, failed_on)

    def _workers(self) -> Any:
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def _next(self) -> Any:
        """The next future that has ended; NcsError where no worker is left for a while."""
        idle_seconds = 0.0
        while idle_seconds < PATIENCE:
            try:
                return self._ended.get(timeout=TICK)
            except queue.Empty:
                pass
            if self._client.status not in ("running", "connecting"):
                raise NcsError("the connection to the scheduler is lost; see that it runs, and build again")
            idle_seconds = 0.0 if self._workers() else idle_seconds + TICK
        raise NcsError(f"no worker for {idle_seconds:g} s; start some: dask worker {self._client.scheduler.address}")


@contextmanager
def connect(scheduler: str, workers: int | None = None, patience: float = PATIENCE) -> Iterator[Any]:
    """A Dask client of a scheduler by its address, or of a cluster of this machine for LOCAL.

    Raises MissingExtra, and NcsError where nobody answers or no worker comes in time.
    """
    with needing("a cluster", "cluster"):
        from distributed import Client, LocalCluster
        from distributed.comm import CommClosedError
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the build reports what matters of it
    with ExitStack() as stack:
        address: Any = scheduler
        if scheduler == LOCAL:
            options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
            address = stack.enter_context(LocalCluster(n_workers=workers, **options))
        try:
            # closing: its own exit wants the thread and the context that entered it, and its holder may end elsewhere
            client = stack.enter_context(closing(Client(address, timeout=patience)))
        except (OSError, ValueError) as error:
            raise NcsError(f"no scheduler answers at {scheduler}; start one with: dask scheduler") from error
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            raise NcsError(f"no worker at {scheduler}; start some: dask worker {scheduler}") from None
        try:
            yield client
        except CommClosedError as error:
            raise NcsError(
                f"the connection to {scheduler} is lost; see that the scheduler runs, and build again"
            ) from error
