"""Searches in a bounded pool of processes, each within a time limit; the event loop stays free for everything else.

Processes rather than threads: much of a search holds Python's lock, and two searches in one process take longer than
one after the other. They share one queue: whoever is free takes the next request.
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
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ncs.serve.http.errors import HttpError
from ncs.serve.http.settings import Settings
from ncs.serve.live_index import LiveIndex

log = logging.getLogger("ncs.serve.http")
RETRIES = 3
Handler = Callable[..., bytes]
"""A function of ncs.serve.http.answers: the index, then the request."""


def open_indexes(settings: Settings) -> dict[str, LiveIndex]:
    """The indexes to serve, by name; raises what `LiveIndex` raises."""
    seconds = settings.seconds / 2  # of a request's time half is left to say why
    return {name: LiveIndex(name, folder, settings.store, seconds) for name, folder in settings.folders.items()}


class Pool:
    """`settings.workers` search processes (0: one thread of this process); `settings.queue` more requests may wait.

    A search over the time limit runs on to its end, and keeps its process busy until then.
    """

    def __init__(self, settings: Settings) -> None:
        self.pending = 0
        self._settings = settings
        self._capacity = max(1, settings.workers) + settings.queue
        self._lock = threading.Lock()
        self._executor = self._start()

    @property
    def full(self) -> bool:
        """Whether the next request will be refused."""
        return self.pending >= self._capacity

    async def warm_up(self) -> None:
        """Start every process and wait until it has opened the indexes."""
        pids: set[int] = set()
        while len(pids) < self._settings.workers:
            futures = [self._executor.submit(_pid) for _ in range(self._settings.workers)]
            pids.update(await asyncio.gather(*map(asyncio.wrap_future, futures)))

    async def run(self, handler: Handler, live: LiveIndex, *arguments: object) -> bytes:
        """`handler(live, *arguments)`. Raises HttpError: 503 for a full queue or dead processes, 504 for too slow."""
        try:
            return await asyncio.wait_for(self._run_with_retries(handler, live, arguments), self._settings.seconds)
        except asyncio.TimeoutError:
            text = f"no answer within {self._settings.seconds:g} s"
            raise HttpError(504, "too_slow", text, "try fewer words or a smaller k") from None

    async def _run_with_retries(self, handler: Handler, live: LiveIndex, arguments: tuple[object, ...]) -> bytes:
        """Again after a process died: it takes the whole pool with it, innocent requests included."""
        for _ in range(RETRIES):
            executor = self._executor
            try:
                return await asyncio.wrap_future(self._submit(executor, handler, live, arguments))
            except BrokenProcessPool as error:
                self._restart(executor, error)
        raise HttpError(503, "broken", "the search process died", "try again; the server's log may say more")

    def _submit(
        self, executor: Executor, handler: Handler, live: LiveIndex, arguments: tuple[object, ...]
    ) -> Future[bytes]:
        with self._lock:
            if self.full:
                raise HttpError(503, "busy", "too many requests", "try again in a second", Retry_After="1")
            self.pending += 1
        try:
            if self._settings.workers:
                future = executor.submit(_answer, handler, live.name, live.reloads, arguments)
            else:
                future = executor.submit(handler, live, *arguments)
        except BaseException:
            self._release()
            raise
        future.add_done_callback(self._release)
        return future

    def _release(self, future: Future[bytes] | None = None) -> None:
        with self._lock:
            self.pending -= 1

    def _restart(self, broken: Executor, error: Exception) -> None:
        with self._lock:
            if self._executor is broken:
                log.error("a search process died; starting others: %s", error)
                self._executor = self._start()

    def _start(self) -> Executor:
        if not self._settings.workers:
            return ThreadPoolExecutor(1, thread_name_prefix="search")
        return ProcessPoolExecutor(
            self._settings.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_initialize,
            initargs=(self._settings,),
        )

    def close(self) -> None:
        """Drop what waits; what runs ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)


_indexes: dict[str, tuple[LiveIndex, int]] = {}
"""In a search process: its indexes, and the reload of the server that each follows."""


def _initialize(settings: Settings) -> None:
    """Open the indexes in a search process, which ends with the server, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C in a terminal: the server answers what runs, and stops
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _indexes.update({name: (live, -1) for name, live in open_indexes(settings).items()})
    freeze()


def freeze() -> None:
    """Exempt everything loaded so far from garbage collection, whose pauses would delay requests."""
    gc.collect()
    gc.freeze()


def _pid() -> int:
    time.sleep(0.01)  # so that the next process gets a turn, too
    return os.getpid()


def _exit_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)


def _answer(handler: Handler, name: str, reloads: int, arguments: tuple[object, ...]) -> bytes:
    """In a search process: with an index no older than the server's."""
    live, reloads_seen = _indexes[name]
    if reloads_seen != reloads:
        if reloads_seen >= 0 or live.changed():
            live.refresh()
        _indexes[name] = live, reloads
    return handler(live, *arguments)
