"""Jobs on a Dask cluster: handed out, tried elsewhere where they fail, given up where they fail again."""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ncs.errors import MissingExtra, NcsError, SourceError
from ncs.scale.dask.worker import read
from ncs.sources.repositories import is_address

if TYPE_CHECKING:
    from ncs.scale.dask.job import Job

LOCAL = "local"
"""In place of a scheduler's address: workers of this machine, as many as the build is told."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Dask watches itself every 10, 20 and 500 ms; of an idle scheduler and two workers that is .05 CPU seconds a second,
.01 so."""
PATIENCE = 60.0
"""Seconds without any worker after which a build ends."""
TICK = 2.0
"""Seconds between two looks at who is there."""


@dataclass(slots=True)
class _Tried:
    job: Job
    elsewhere: set[str] = field(default_factory=set)
    """Workers on which it failed."""
    reasons: list[str] = field(default_factory=list)
    killed: int = 0
    """How often Dask gave it up because its workers died under it."""


class Tasks:
    """Jobs that are being done. `done` gives each with its shard, or with None and why there is none."""

    def __init__(self, client: Any, seconds: float, patience: float = PATIENCE) -> None:
        self._client, self._seconds, self._patience = client, seconds, patience
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: dict[str, tuple[Any, _Tried]] = {}
        self._accused: list[_Tried] = []
        self.again = 0
        """How many jobs were begun again on another worker, those that Dask itself began again left out."""

    def submit(self, job: Job) -> None:
        """Have it done by any worker."""
        self._start(_Tried(job))

    def _start(self, tried: _Tried) -> None:
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        others = [address for address in workers if address not in tried.elsewhere] if tried.elsewhere else []
        where = {"workers": others, "allow_other_workers": True} if others else {}
        future = self._client.submit(read, tried.job.to_json(), self._seconds, pure=False, **where)
        self._running[future.key] = future, tried
        future.add_done_callback(self._answers.put)

    def done(self) -> Iterator[tuple[Job, bytes | None, str]]:
        """Jobs as they end, those too that are submitted meanwhile. Raises NcsError where the cluster is gone."""
        while self._running or self._accused:
            if not self._running:  # alone, so that nothing dies under it but by itself
                self._start(self._accused.pop())
            future = self._next()
            _, tried = self._running.pop(future.key, (None, None))
            if tried is None:
                continue
            answer, why = self._answer(future, tried)
            future.release()
            if answer is not None:
                yield tried.job, answer, ""
            elif why:
                yield tried.job, None, why

    def _answer(self, future: Any, tried: _Tried) -> tuple[bytes | None, str]:
        """Its shard, or why it is left out; neither where it was begun again."""
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise NcsError("the scheduler is gone, or has cancelled the build; start it again and build again")
        try:
            kind, answer, worker = future.result()
        except KilledWorker:
            tried.killed += 1
            if tried.killed == 1:
                self._accused.append(tried)
                return None, ""
            return None, "its workers died under it, again and again"
        if kind == "shard":
            return answer, ""
        why = answer.decode("utf-8", "replace")
        if kind == "refused":
            raise NcsError(f"{worker}: {why}")
        part = tried.job.part
        if kind == "source" and not part.where and len(part.number) == 1:  # a root as it was given
            raise SourceError(why)
        tried.reasons.append(why)
        if (kind == "source" and not is_address(part.root)) or len(tried.reasons) > 1:
            return None, why
        tried.elsewhere.add(worker)
        self.again += 1
        self._start(tried)
        return None, ""

    def _next(self) -> Any:
        """The next job that has ended; NcsError where no worker is left for a while."""
        alone = 0.0
        while True:
            try:
                return self._answers.get(timeout=TICK)
            except queue.Empty:
                pass
            if self._client.status not in ("running", "connecting"):
                raise NcsError("the connection to the scheduler is lost; see that it runs, and build again")
            alone = 0.0 if self._client.scheduler_info(n_workers=-1)["workers"] else alone + TICK
            if alone >= self._patience:
                raise NcsError(f"no worker for {alone:g} s; start some with: {_how(self._client.scheduler.address)}")


def _how(scheduler: str) -> str:
    return f"dask worker {scheduler}"


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
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters of it is said by the build
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    if scheduler == LOCAL:
        with dask.config.set(QUIET), LocalCluster(**options) as cluster, closing(Client(cluster)) as client:
            yield client
        return
    try:
        # closing: its own exit wants the thread and the context that entered it, and who holds it may end elsewhere
        with closing(_reached(Client, scheduler, patience)) as client:
            yield client
    except CommClosedError as error:
        raise NcsError(
            f"the connection to {scheduler} is lost; see that the scheduler runs, and build again"
        ) from error


def _reached(connect: Callable[..., Any], scheduler: str, patience: float) -> Any:
    """A client of a scheduler that has workers; NcsError where nobody answers or none comes."""
    try:
        client = connect(scheduler, timeout=patience)
    except (OSError, ValueError) as error:
        raise NcsError(f"no scheduler answers at {scheduler}; start one with: dask scheduler") from error
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        client.close()
        raise NcsError(f"no worker at {scheduler}; start some with: {_how(scheduler)}") from None
    return client
