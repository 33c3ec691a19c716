"""The served indexes, and the bounded pool of processes that search them, each request within a time limit.

Processes rather than threads: much of a search holds Python's lock, and two searches in one process take longer than
one after the other. They share one queue: whoever is free takes the next request. The event loop stays free.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ncs.serve.http.errors import HttpError
from ncs.serve.http.settings import Settings
from ncs.serve.live_index import LiveIndex

log = logging.getLogger("ncs.serve.http")
RETRIES = 3
POLL = 1.0
"""Seconds between two checks for a new snapshot."""
Handler = Callable[..., bytes]
"""A function of ncs.serve.http.api: the index, then the request."""


def open_indexes(settings: Settings) -> dict[str, LiveIndex]:
    """The indexes to serve, by name; raises what `LiveIndex` raises."""
    seconds = settings.seconds / 2  # of a request's time half is left to say why
    return {name: LiveIndex(name, folder, settings.store, seconds) for name, folder in settings.folders.items()}


class Service:
    """`settings.workers` search processes (0: one thread of this process); `settings.queue` more requests may wait.

    A search over the time limit runs on to its end, and keeps its process busy until then.
    """

    def __init__(self, settings: Settings) -> None:
        """Opens every index; raises what `LiveIndex` raises."""
        self.settings = settings
        self.indexes = open_indexes(settings)
        self._futures: set[Future[bytes]] = set()
        self._executor = self._start()

    def index(self, name: str | None) -> LiveIndex:
        """An index by name, by default the first; HttpError for an unknown one."""
        live = self.indexes.get(name or next(iter(self.indexes)))
        if live is None:
            raise HttpError(404, "no_index", "no such index", f"choose from {', '.join(self.indexes)}")
        return live

    @property
    def pending(self) -> int:
        """Searches that run or wait."""
        return len(self._futures)

    def check_queue(self) -> None:
        """Raise HttpError where the next request would be refused."""
        if self.pending >= max(1, self.settings.workers) + self.settings.queue:
            raise HttpError(503, "busy", "too many requests", "try again in a second", {"Retry-After": "1"})

    async def warm_up(self) -> None:
        """Start every process and wait until it has opened the indexes."""
        pids: set[int] = set()
        while len(pids) < self.settings.workers:
            futures = [self._executor.submit(_pid) for _ in range(self.settings.workers)]
            pids.update(await asyncio.gather(*map(asyncio.wrap_future, futures)))
        gc.freeze()  # no collection, whose pauses would delay requests, looks at what stays

    async def run(self, handler: Handler, index: str | None, *arguments: object) -> bytes:
        """The handler's answer. Raises HttpError: 503 for a full queue or dead processes, 504 for too slow."""
        try:
            return await asyncio.wait_for(self._run(handler, self.index(index), arguments), self.settings.seconds)
        except asyncio.TimeoutError:
            text = f"no answer within {self.settings.seconds:g} s"
            raise HttpError(504, "too_slow", text, "try fewer words or a smaller k") from None

    async def _run(self, handler: Handler, live: LiveIndex, arguments: tuple[object, ...]) -> bytes:
        """Again after a process died: it takes the whole pool with it, innocent requests included."""
        for _ in range(RETRIES):
            self.check_queue()
            executor = self._executor
            try:
                if self.settings.workers:
                    future = executor.submit(_answer, handler, live.name, arguments)
                else:
                    future = executor.submit(handler, live, *arguments)
                self._futures.add(future)
                future.add_done_callback(self._futures.discard)
                return await asyncio.wrap_future(future)
            except BrokenProcessPool as error:
                if self._executor is executor:
                    log.error("a search process died; starting others: %s", error)
                    self._executor = self._start()
        raise HttpError(503, "broken", "the search process died", "try again; the server's log may say more")

    def _start(self) -> Executor:
        if not self.settings.workers:
            return ThreadPoolExecutor(1, thread_name_prefix="search")
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.settings.workers, spawn, _initialize, (self.settings,))

    async def watch(self) -> None:
        """Open new snapshots beside the searches, forever."""
        while True:
            await asyncio.sleep(POLL)
            for live in self.indexes.values():
                snapshot, error = live.snapshot, live.error
                await asyncio.to_thread(live.refresh)
                if live.snapshot != snapshot:
                    log.info("index %s: snapshot %d replaces %d", live.name, live.snapshot, snapshot)
                elif live.error and live.error != error:
                    log.error("index %s: still serving snapshot %d: %s", live.name, snapshot, live.error)

    def aliases(self) -> Mapping[str, str]:
        """Paths of this machine -> what they are called in answers."""
        folders = self.settings.folders.items()
        return {str(path): name for name, folder in folders for path in (folder, folder.resolve())}

    def close(self) -> None:
        """Drop what waits; what runs ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        for live in self.indexes.values():
            live.close()


_indexes: dict[str, LiveIndex] = {}
"""The indexes of a search process."""


def _initialize(settings: Settings) -> None:
    """Open the indexes in a search process, which ends with the server, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C in a terminal: the server answers what runs, and stops
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _indexes.update(open_indexes(settings))
    gc.freeze()


def _pid() -> int:
    time.sleep(0.01)  # so that the next process gets a turn, too
    return os.getpid()


def _exit_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)


def _answer(handler: Handler, name: str, arguments: tuple[object, ...]) -> bytes:
    """Answer in a search process, with the newest snapshot."""
    live = _indexes[name]
    live.refresh()
    return handler(live, *arguments)
