"""The state of a server: its indexes by name, the pool that searches them, its metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ncs.serve.http.errors import HttpError
from ncs.serve.http.pool import Pool, open_indexes
from ncs.serve.http.settings import Settings
from ncs.serve.live_index import LiveIndex

log = logging.getLogger("ncs.serve.http")
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """For Prometheus: requests, their seconds, and the state of each index."""

    def __init__(self, paths: Iterable[str]) -> None:
        """paths: those with metrics of their own; all else is "other", so that nobody can invent labels."""
        self.registry = registry = CollectorRegistry()
        self.paths = frozenset(paths)
        self._requests = Counter("ncs_requests", "Requests.", ("path", "status"), registry=registry)
        self._seconds = Histogram(
            "ncs_request_seconds", "From head to end of an answer.", ("path",), buckets=BUCKETS, registry=registry
        )
        self.in_flight = Gauge("ncs_in_flight", "Requests being answered.", registry=registry)
        self._pending = Gauge("ncs_searches_pending", "Searches that run or wait.", registry=registry)
        self._snapshot = self._of_index("ncs_index_snapshot", "Number of the snapshot that answers.")
        self._documents = self._of_index("ncs_index_documents", "Documents of the snapshot that answers.")
        self._problem = self._of_index("ncs_index_problem", "1: a newer snapshot cannot be opened.")

    def _of_index(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, ("index",), registry=self.registry)

    def observe(self, path: str, status: int, seconds: float) -> None:
        """One request was answered."""
        label = path if path in self.paths else "other"
        self._requests.labels(label, str(status)).inc()
        self._seconds.labels(label).observe(seconds)

    def collect(self, indexes: Iterable[LiveIndex], pending: int) -> None:
        """Set the gauges."""
        self._pending.set(pending)
        for live in indexes:
            self._snapshot.labels(live.name).set(live.snapshot)
            self._documents.labels(live.name).set(live.documents)
            self._problem.labels(live.name).set(bool(live.error))

    def text(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self.registry)


class Service:
    """What the routes work with."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        """Opens every index; raises what Index.load raises."""
        self.settings, self.metrics = settings, metrics
        self.indexes = open_indexes(settings)
        self.pool = Pool(settings)

    def index(self, name: str | None) -> LiveIndex:
        """An index by name, by default the first; HttpError for an unknown one."""
        live = self.indexes.get(name or next(iter(self.indexes)))
        if live is None:
            raise HttpError(404, "no_index", "no such index", f"choose from {', '.join(self.indexes)}")
        return live

    async def watch(self) -> None:
        """Open new snapshots beside the searches, forever."""
        while True:
            await asyncio.sleep(self.settings.poll)
            for live in self.indexes.values():
                if live.changed():
                    await asyncio.to_thread(self._refresh, live)

    def _refresh(self, live: LiveIndex) -> None:
        snapshot, error = live.snapshot, live.error
        live.refresh()
        if not live.error:
            log.info("index %s: snapshot %d replaces %d", live.name, live.snapshot, snapshot)
        elif live.error != error:
            log.error("index %s: still serving snapshot %d: %s", live.name, snapshot, live.error)

    def aliases(self) -> Mapping[str, str]:
        """Paths of this machine -> what they are called in answers."""
        return {
            str(path): name for name, folder in self.settings.folders.items() for path in (folder, folder.resolve())
        }

    def close(self) -> None:
        """Release everything."""
        self.pool.close()
        for live in self.indexes.values():
            live.close()
