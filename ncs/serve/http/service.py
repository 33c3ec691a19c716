"""The served indexes, and the bounded pool of processes that search them, each request within its limits.

Processes rather than threads: much of a search holds Python's lock, two searches in one process take longer than one
after the other, and only a process can be stopped. Searches share one queue: whoever is free takes the next. What
parses code has a queue and processes of its own, so that no code delays a search.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module

from ncs.build.memory import available
from ncs.errors import NcsError, unknown
from ncs.messages import TIMEOUT
from ncs.serve.http.errors import HttpError
from ncs.serve.http.settings import Settings
from ncs.serve.live_index import LiveIndex
from ncs.storage.snapshot import Description
from ncs.workers import TaskKilled, TaskTimeout, Workers, limit_memory

log = logging.getLogger("ncs.serve.http")
POLL = 1.0
"""Seconds between two checks for a new snapshot."""
MIN_MEMORY, MAX_MEMORY = 512 << 20, 2 << 30
"""Bytes that a process may allocate beside its open indexes: its share of half the machine, within these bounds."""
Handler = Callable[..., bytes]
"""A function of ncs.serve.http.api: the index, then the request."""


def open_index(settings: Settings, name: str, held: Description | None = None) -> LiveIndex:
    """An index to serve; raises what `LiveIndex` raises."""
    # half of the time that a request may run: in the rest an error can be reported
    return LiveIndex(name, settings.folders[name], settings.store, settings.seconds / 4, held)


class Service:
    """`settings.workers` search processes, half as many that parse code; `settings.queue` more requests may wait.

    A request runs in its process alone, for at most half of `settings.seconds`: the other half may go by while it
    waits. One that takes longer, or too much memory, ends with its process, which is replaced, and is not tried again.
    """

    def __init__(self, settings: Settings) -> None:
        """Opens every index; raises what `LiveIndex` raises."""
        self.settings = settings
        self.indexes = {name: open_index(settings, name) for name in settings.folders}
        self._held = {name: live.description for name, live in self.indexes.items()}
        """The snapshots that this process holds, for search processes that start while newer ones are damaged."""
        self.pending = 0
        """Requests that run or wait."""

    def index(self, name: str | None) -> LiveIndex:
        """An index by name, by default the first; HttpError for an unknown one."""
        live = self.indexes.get(name or next(iter(self.indexes)))
        if live is None:
            raise HttpError(404, "no_index", str(unknown("index", name, self.indexes)))
        return live

    def check_queue(self) -> None:
        """Raise HttpError where the next request would be refused."""
        if self.pending >= self.settings.workers + self.settings.queue:
            raise HttpError(503, "busy", "too many requests", "try again in a second", {"Retry-After": "1"})

    async def start(self) -> None:
        """Start the processes, and wait until one has opened the indexes."""
        n_parsers = max(1, self.settings.workers // 2)
        memory = available() // 2 // (self.settings.workers + n_parsers)
        arguments = self.settings, self._held, min(max(memory, MIN_MEMORY), MAX_MEMORY)
        self._searchers = Workers(self.settings.workers, initialize=_initialize, arguments=arguments, warm=True)
        self._parsers = Workers(n_parsers, initialize=_initialize, arguments=arguments)
        await asyncio.wrap_future(self._searchers.submit(gc.collect))
        gc.freeze()  # later collections skip what is loaded now, whose scan would delay requests

    async def run(self, handler: Handler, index: str | None, *arguments: object, parses: bool = False) -> bytes:
        """The handler's answer. Raises HttpError: 503 for a full queue or a dead process, 504 for too slow.

        parses: whether it parses code.
        """
        seconds, live = self.settings.seconds, self.index(index)
        self.check_queue()
        self.pending += 1
        try:
            workers = self._parsers if parses else self._searchers
            future = workers.submit(_answer, self.settings, handler, live.name, arguments, seconds=seconds / 2)
            return await asyncio.wait_for(asyncio.wrap_future(future), seconds)
        except (asyncio.TimeoutError, TaskTimeout) as error:
            text = str(error) or TIMEOUT.format(seconds=seconds)
            raise HttpError(504, "too_slow", text, "try again, in fewer words or for fewer hits") from None
        except TaskKilled as error:
            log.error("a search process died: %s", error)
            raise HttpError(503, "killed", str(error), "ask in fewer words, or for fewer hits") from None
        finally:
            self.pending -= 1

    async def watch(self) -> None:
        """Open new snapshots beside the searches, forever."""
        while True:
            await asyncio.sleep(POLL)
            for live in self.indexes.values():
                snapshot, error = live.description.number, live.error
                await asyncio.to_thread(live.refresh)
                if live.description.number != snapshot:
                    self._held[live.name] = live.description
                    log.info("index %s: snapshot %d replaces %d", live.name, live.description.number, snapshot)
                elif live.error and live.error != error:
                    log.error("index %s: still serving snapshot %d: %s", live.name, snapshot, live.error)

    def aliases(self) -> Mapping[str, str]:
        """Paths of this machine -> what they are called in answers."""
        folders = self.settings.folders.items()
        return {str(path): name for name, folder in folders for path in (folder, folder.resolve())}

    def close(self) -> None:
        """Kill what runs, and drop what waits."""
        self._searchers.close()
        self._parsers.close()
        for live in self.indexes.values():
            live.close()


_indexes: dict[str, LiveIndex] = {}
"""The indexes of a search process."""


def _initialize(settings: Settings, held: Mapping[str, Description], memory: int) -> None:
    """Open the indexes in a search process; what cannot be opened is tried again for each request."""
    import_module("ncs.serve.http.api")  # what answers; on a slow machine it took all the time of every first request
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to the whole group: the server answers what runs, and stops
    for name in settings.folders:
        with suppress(NcsError):
            _indexes[name] = open_index(settings, name, held[name])
    limit_memory(memory)
    gc.freeze()


def _answer(settings: Settings, handler: Handler, name: str, arguments: tuple[object, ...]) -> bytes:
    """Answer in a search process, with the newest snapshot."""
    live = _indexes.get(name) or _indexes.setdefault(name, open_index(settings, name))
    live.refresh()
    return handler(live, *arguments)
