"""Searches in a bounded pool, each within a time limit; the event loop stays free for everything else.

Processes rather than threads: much of a search holds Python's lock, and two searches in one process take longer than
one after the other (DESIGN.md). One queue for all of them: whoever is free takes the next request.
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

from ncs.serve.http.refusals import Refusal
from ncs.serve.http.settings import Settings
from ncs.serve.http.shelf import Shelf, shelves

log = logging.getLogger("ncs.serve.http")
TRIES = 3
Make = Callable[..., bytes]
"""What makes an answer of a shelf and what was asked."""


class Work:
    """At most `settings.workers` processes search (0: one thread of this process), `waiting` more requests wait.

    Each gets `seconds`, its wait included. What is too slow goes on until it ends, and takes up its process till then.
    """

    def __init__(self, settings: Settings) -> None:
        self.held = 0
        self._settings = settings
        self._most = max(1, settings.workers) + settings.waiting
        self._lock = threading.Lock()
        self._pool = self._new()

    @property
    def full(self) -> bool:
        """Whether the next request will be refused."""
        return self.held >= self._most

    async def begin(self) -> None:
        """Start every process and wait until it has opened the indexes."""
        begun: set[int] = set()
        while len(begun) < self._settings.workers:
            asked = [self._pool.submit(_who) for _ in range(self._settings.workers)]
            begun.update(await asyncio.gather(*map(asyncio.wrap_future, asked)))

    async def __call__(self, make: Make, shelf: Shelf, *asked: object) -> bytes:
        """`make(shelf, *asked)`; raises Refusal: 503 where too many wait or it cannot be done, 504 for too slow."""
        try:
            return await asyncio.wait_for(self._done(make, shelf, asked), self._settings.seconds)
        except asyncio.TimeoutError:
            said = f"no answer within {self._settings.seconds:g} s"
            raise Refusal(504, "too_slow", said, "ask again, with fewer words or a smaller k") from None

    async def _done(self, make: Make, shelf: Shelf, asked: tuple[object, ...]) -> bytes:
        """Again where a process was killed: others take their places, and a search changes nothing.

        One that ends takes all of its pool along, so a request may meet several ends that others are to blame for.
        """
        for _ in range(TRIES):
            pool = self._pool
            try:
                return await asyncio.wrap_future(self._submitted(pool, make, shelf, asked))
            except BrokenProcessPool as error:
                self._replace(pool, error)
        raise Refusal(503, "broken", "the search ended before its answer", "ask again; the server's log may say more")

    def _submitted(self, pool: Executor, make: Make, shelf: Shelf, asked: tuple[object, ...]) -> Future[bytes]:
        with self._lock:
            if self.full:
                raise Refusal(503, "busy", "too many requests wait already", "ask again in a second", Retry_After="1")
            self.held += 1
        try:
            if self._settings.workers:
                future = pool.submit(answered, make, shelf.name, shelf.reloads, asked)
            else:
                future = pool.submit(make, shelf, *asked)
        except BaseException:
            self._release()
            raise
        future.add_done_callback(self._release)
        return future

    def _release(self, future: Future[bytes] | None = None) -> None:
        with self._lock:
            self.held -= 1

    def _replace(self, broken: Executor, error: Exception) -> None:
        with self._lock:
            if self._pool is broken:
                log.error("a searching process ended; others are started: %s", error)
                self._pool = self._new()

    def _new(self) -> Executor:
        if not self._settings.workers:
            return ThreadPoolExecutor(1, thread_name_prefix="search")
        return ProcessPoolExecutor(
            self._settings.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self._settings,),
        )

    def close(self) -> None:
        """What waits is dropped, what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)


_shelves: dict[str, tuple[Shelf, int]] = {}
"""In a searching process: its indexes, and the reload of the serving process that each follows."""


def _begin(settings: Settings) -> None:
    """A searching process begins: it opens the indexes, and ends with the process that serves, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the serving process answers what it holds, and stops
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _shelves.update({name: (shelf, -1) for name, shelf in shelves(settings).items()})
    settle()


def settle() -> None:
    """What is there now stays: looking through all of it for garbage would stop everything, now and then."""
    gc.collect()
    gc.freeze()


def _who() -> int:
    time.sleep(0.01)  # so that the next one is asked, too
    return os.getpid()


def _end_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)


def answered(make: Make, name: str, reloads: int, asked: tuple[object, ...]) -> bytes:
    """In a searching process: `make(shelf, *asked)`, with an index no older than the serving process has."""
    shelf, seen = _shelves[name]
    if seen != reloads:
        if seen >= 0 or shelf.changed():
            shelf.refresh(verify=False)
        _shelves[name] = shelf, reloads
    return make(shelf, *asked)
