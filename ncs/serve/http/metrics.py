"""Figures for Prometheus: requests, seconds, in flight, searches held, and of each index its generation."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ncs.serve.http.shelf import Shelf

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
OTHER = "other"


class Metrics:
    """One registry a server."""

    def __init__(self, paths: Iterable[str]) -> None:
        """paths: those with figures of their own; all else is `other`, so that nobody can make up labels."""
        self.registry = registry = CollectorRegistry()
        self.paths = frozenset(paths)
        self._requests = Counter("ncs_requests", "Requests.", ("path", "status"), registry=registry)
        self._seconds = Histogram(
            "ncs_request_seconds", "From head to end of an answer.", ("path",), buckets=SECONDS, registry=registry
        )
        self.in_flight = Gauge("ncs_in_flight", "Requests now.", registry=registry)
        self._held = Gauge("ncs_searches_held", "Searches that run or wait.", registry=registry)
        self._generation = self._of_index("ncs_index_generation", "Generation that answers.")
        self._documents = self._of_index("ncs_index_documents", "Documents that answer.")
        self._problem = self._of_index("ncs_index_problem", "1: a newer generation cannot be opened.")

    def _of_index(self, name: str, said: str) -> Gauge:
        return Gauge(name, said, ("index",), registry=self.registry)

    def observe(self, path: str, status: int, seconds: float) -> None:
        """One request is answered."""
        label = path if path in self.paths else OTHER
        self._requests.labels(label, str(status)).inc()
        self._seconds.labels(label).observe(seconds)

    def look(self, shelves: Iterable[Shelf], held: int) -> None:
        """What is not counted but looked at."""
        self._held.set(held)
        for shelf in shelves:
            self._generation.labels(shelf.name).set(shelf.generation)
            self._documents.labels(shelf.name).set(shelf.documents)
            self._problem.labels(shelf.name).set(bool(shelf.problem))

    def text(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self.registry)
