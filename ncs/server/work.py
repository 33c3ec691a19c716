"""Searches in a bounded pool of threads, each within a time limit; the event loop stays free for everything else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from ncs.server.refusals import Refusal

P = ParamSpec("P")
T = TypeVar("T")


class Work:
    """At most `threads` functions run, at most `waiting` more wait for them; each gets `seconds`, its wait included.

    A thread cannot be stopped: what is too slow goes on until it ends, and takes up one of the threads till then.
    """

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self.held = 0
        self._most, self._seconds = threads + waiting, seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="search")
        self._lock = threading.Lock()

    @property
    def full(self) -> bool:
        """Whether the next request will be refused."""
        return self.held >= self._most

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Its result; raises Refusal: 503 where too many wait, 504 where it took too long."""
        with self._lock:
            if self.full:
                raise Refusal(503, "busy", "too many requests wait already", "ask again in a second", Retry_After="1")
            self.held += 1
        future = self._pool.submit(function, *args, **kwargs)
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except asyncio.TimeoutError:
            said = f"no answer within {self._seconds:g} s"
            raise Refusal(504, "too_slow", said, "ask again, with fewer words or a smaller k") from None

    def _done(self, future: Future[T]) -> None:
        with self._lock:
            self.held -= 1

    def close(self) -> None:
        """What waits is dropped, what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
