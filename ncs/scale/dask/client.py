"""The client of the cluster: submits repositories as jobs and merges the segments of the results."""

from __future__ import annotations

import io
import json
import logging
import queue
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.build.batches import Batch, CollectedDocuments, Collector
from ncs.build.file_cache import segment_batches
from ncs.errors import MissingExtra, NcsError, SourceError
from ncs.scale.dask.jobs import REPORT, Job, Key, Part, is_archive
from ncs.scale.dask.worker import BAD_SOURCE, REFUSED, SEGMENT, read
from ncs.sources.filters import MAX_NOTES
from ncs.sources.repositories import address_of, is_address
from ncs.sources.roots import Names, check_roots

if TYPE_CHECKING:
    from ncs.build.request import Request
    from ncs.config import BuildConfig
    from ncs.progress import Track
    from ncs.sources import Skipped

LOCAL = "local"
"""In place of a scheduler's address: workers of this machine."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Settings that reduce Dask's self-monitoring, which costs CPU time, in a local cluster."""
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
        connected(scheduler, request.workers) as client,
        tempfile.TemporaryDirectory(prefix="shards-", dir=segment) as spool,
        Collector(segment, config.store_code, config.deduplicate) as collector,
    ):
        _Merge(roots, config, skipped, Tasks(client, give_up), Path(spool), collector).run(request.track)
        return collector.finish(began)


class _Merge:
    """Merges segments in the order of repositories; early ones are spooled on disk."""

    def __init__(
        self,
        roots: Sequence[Part],
        config: BuildConfig,
        skipped: Skipped,
        tasks: Tasks,
        spool: Path,
        collector: Collector,
    ) -> None:
        self._roots, self._config, self._skipped, self._tasks = roots, config, skipped, tasks
        self._spool, self._collector = spool, collector
        self._names, self._numbers = Names(), count()
        self._parts: dict[Key, Part] = {}
        """All parts so far."""
        self._waiting: dict[Key, Path | str | None] = {}
        """Unmerged parts: None while running, then the path of the zip, or the reason of the failure."""

    def run(self, track: Track) -> None:
        """Run until everything is merged."""
        for root in self._roots:
            self._submit(root)
        for part, answer, reason in track(self._tasks.done(), "reading repositories", total=None, unit="repositories"):
            if answer is None:
                self._waiting[part.key] = reason
            else:
                self._received(part, answer)
            self._merge_ready()

    def _submit(self, part: Part) -> None:
        if part.key not in self._parts:
            self._parts[part.key], self._waiting[part.key] = part, None
            self._tasks.submit(Job.of(part, self._roots, self._config))

    def _received(self, part: Part, answer: bytes) -> None:
        report, _ = _open(answer)
        below = [Part.of(fields) for fields in report["below"]]
        if below and is_address(part.root):  # a list or folder of repositories
            del self._waiting[part.key]
        else:
            path = self._spool / str(next(self._numbers))
            path.write_bytes(answer)
            self._waiting[part.key] = path
        for each in below:
            self._submit(each)

    def _merge_ready(self) -> None:
        """Merge all parts whose predecessors are merged."""
        while self._waiting and (outcome := self._waiting[first := min(self._waiting)]) is not None:
            part = self._parts[first]
            if isinstance(outcome, str):
                self._skipped.add_unreadable(part.prefix.rstrip("/") or part.root)
                self._skipped.note(f"{part.path} is left out: {outcome}")
            else:
                self._merge(outcome, part)
            del self._waiting[first]

    def _merge(self, path: Path, part: Part) -> None:
        report, archive = _open(path.read_bytes())
        self._skipped.counts.update(report["skipped"])
        self._skipped.unreadable += report["unreadable"][: max(0, MAX_NOTES - len(self._skipped.unreadable))]
        for line in report["notes"]:
            self._skipped.note(line)
        with tempfile.TemporaryDirectory(dir=self._spool) as room:
            archive.extractall(room)
            for batch, entries, owners in segment_batches(Path(room)):
                name = part.name(self._names)
                self._collector.add(_renamed(batch, name), [each._replace(repository=name) for each in entries], owners)
        path.unlink()


def _renamed(batch: Batch, name: str) -> Batch:
    """The documents with another repository name: a worker does not know which names are in use."""
    old = next((location[0] for location in batch.locations), name)
    if old == name:
        return batch
    packed = [(each[0] and name + each[0][len(old) :], each[1] and name, *each[2:]) for each in batch.packed]
    return replace(batch, packed=packed, locations=[(name, *each[1:]) for each in batch.locations])


def _open(answer: bytes) -> tuple[Any, zipfile.ZipFile]:
    """The report of a worker, and the segment; raises NcsError for anything else."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(answer))
        return json.loads(archive.read(REPORT)), archive
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise NcsError(f"a worker sent no segment ({error}); do all machines run the same ncs?") from error


def _parts(roots: Sequence[Path], force: bool) -> list[Part]:
    """The roots, paths checked as `walk` checks them; raises SourceError."""
    local = iter(check_roots([root for root in roots if not is_address(root)], force))
    order = dict.fromkeys(address_of(root) if is_address(root) else str(next(local, root)) for root in roots)
    return [Part(root, (number,), archive=is_archive(root)) for number, root in enumerate(order)]


class Tasks:
    """Running jobs. seconds: time limit of a job on a worker."""

    def __init__(self, client: Any, seconds: float, patience: float = PATIENCE) -> None:
        self._client, self._seconds, self._patience = client, seconds, patience
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: dict[str, tuple[Job, tuple[str, ...]]] = {}
        """By the key of the future: the job, and the workers on which it failed."""
        self._futures: dict[str, Any] = {}

    def submit(self, job: Job, failed_on: tuple[str, ...] = ()) -> None:
        """Submit a job to any worker, or to one where it has not failed."""
        addresses = [address for address in self._workers() if address not in failed_on] if failed_on else []
        options = {"workers": addresses, "allow_other_workers": True} if addresses else {}
        future = self._client.submit(read, job.to_json(), self._seconds, pure=False, **options)
        self._futures[future.key], self._running[future.key] = future, (job, failed_on)
        future.add_done_callback(self._ended.put)

    def done(self) -> Iterator[tuple[Part, bytes | None, str]]:
        """Parts in order of completion, with their zip, or None and the reason; includes jobs submitted meanwhile.

        Raises SourceError for a root that cannot be read, and NcsError where the cluster is gone.
        """
        from distributed import KilledWorker

        while self._running:
            future = self._next()
            job, failed_on = self._running.pop(future.key)
            del self._futures[future.key]
            if future.status == "cancelled":
                raise NcsError("the scheduler is gone, or has cancelled the build; start it again and build again")
            try:
                outcome, answer, worker = future.result()
            except KilledWorker:
                outcome, answer, worker = "", b"its workers died repeatedly", ""
            future.release()
            if outcome == SEGMENT:
                yield job.part, answer, ""
                continue
            reason = answer.decode("utf-8", "replace")
            if outcome == REFUSED:
                raise NcsError(f"{worker}: {reason}")
            if outcome == BAD_SOURCE and not job.part.prefix and len(job.part.number) == 1:  # a root as it was given
                raise SourceError(reason)
            failed_on = (*failed_on, worker)
            if len(failed_on) >= TRIES or (outcome == BAD_SOURCE and not is_address(job.part.root)):
                yield job.part, None, reason
            else:
                self.submit(job, failed_on)

    def _workers(self) -> Any:
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def _next(self) -> Any:
        """The next future that has ended; NcsError where no worker is left for a while."""
        idle_seconds = 0.0
        while True:
            try:
                return self._ended.get(timeout=TICK)
            except queue.Empty:
                pass
            if self._client.status not in ("running", "connecting"):
                raise NcsError("the connection to the scheduler is lost; see that it runs, and build again")
            idle_seconds = 0.0 if self._workers() else idle_seconds + TICK
            if idle_seconds >= self._patience:
                raise NcsError(
                    f"no worker for {idle_seconds:g} s; start some: dask worker {self._client.scheduler.address}"
                )


@contextmanager
def connected(scheduler: str, workers: int | None = None, patience: float = PATIENCE) -> Iterator[Any]:
    """A Dask client of a scheduler by its address, or of a cluster of this machine for LOCAL.

    Raises MissingExtra, and NcsError where nobody answers or no worker comes in time.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
        from distributed.comm import CommClosedError
    except ImportError:
        raise MissingExtra("a cluster needs the extra `cluster`: pip install 'neural-code-search[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the build reports what matters of it
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
    if scheduler == LOCAL:
        with dask.config.set(QUIET), LocalCluster(**options) as cluster, closing(Client(cluster)) as client:
            yield client
        return
    try:
        # closing: its own exit wants the thread and the context that entered it, and its holder may end elsewhere
        with closing(_connect(Client, scheduler, patience)) as client:
            yield client
    except CommClosedError as error:
        raise NcsError(
            f"the connection to {scheduler} is lost; see that the scheduler runs, and build again"
        ) from error


def _connect(connect: Callable[..., Any], scheduler: str, patience: float) -> Any:
    try:
        client = connect(scheduler, timeout=patience)
    except (OSError, ValueError) as error:
        raise NcsError(f"no scheduler answers at {scheduler}; start one with: dask scheduler") from error
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        client.close()
        raise NcsError(f"no worker at {scheduler}; start some: dask worker {scheduler}") from None
    return client
