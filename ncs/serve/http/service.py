"""What the routes work with: indexes by name, the pool that asks them, and a look at their folders now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from ncs.serve.http.metrics import Metrics
from ncs.serve.http.refusals import Refusal
from ncs.serve.http.settings import Settings
from ncs.serve.http.shelf import Shelf, shelves
from ncs.serve.http.work import Make, Work

log = logging.getLogger("ncs.serve.http")


class Service:
    """One server's state."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        """Opens every index; raises what Index.load raises."""
        self.settings, self.metrics = settings, metrics
        self.shelves = shelves(settings)
        self.work = Work(settings)

    def shelf(self, name: str | None) -> Shelf:
        """An index by name, the first where none is named; Refusal for an unknown one."""
        found = self.shelves.get(name or next(iter(self.shelves)))
        if found is None:
            raise Refusal(404, "no_index", "no index is called that", f"there are: {', '.join(self.shelves)}")
        return found

    async def answer(self, name: str | None, make: Make, *asked: object) -> bytes:
        """What `make(shelf, *asked)` says, worked out in the pool."""
        return await self.work(make, self.shelf(name), *asked)

    async def watch(self) -> None:
        """Look at the folders for ever; what changed is opened beside the searches, never instead of one."""
        while True:
            await asyncio.sleep(self.settings.poll)
            for shelf in self.shelves.values():
                if shelf.changed():
                    await asyncio.to_thread(self._refresh, shelf)

    def _refresh(self, shelf: Shelf) -> None:
        before, told = shelf.generation, shelf.problem
        shelf.refresh()
        if not shelf.problem:
            log.info("index %s: generation %d answers, before it %d", shelf.name, shelf.generation, before)
        elif shelf.problem != told:
            log.error("index %s: generation %d goes on answering: %s", shelf.name, before, shelf.problem)

    def hidden(self) -> Mapping[str, str]:
        """Paths of the machine, and what they are called in answers."""
        return {
            str(path): name for name, folder in self.settings.folders.items() for path in (folder, folder.resolve())
        }

    def close(self) -> None:
        """Let go of everything."""
        self.work.close()
        for shelf in self.shelves.values():
            shelf.close()
