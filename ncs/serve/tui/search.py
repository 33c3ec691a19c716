"""Searches of the interactive search: the newest snapshot of one index, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.answer import ask
from ncs.search.locate_source import SourceLocator
from ncs.search.rankers import DEFAULT_RANKER
from ncs.serve.live_index import LiveIndex

if TYPE_CHECKING:
    from ncs.answer import Answer

HITS = 20


class Searcher:
    """One index, one query at a time; an update of the index counts from the next query on."""

    def __init__(self, folder: Path) -> None:
        """Raises what Index.load raises."""
        self._live = LiveIndex(folder.name, folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ncs-search")

    @property
    def documents(self) -> int:
        """How many there are."""
        return self._live.documents

    async def search(self, text: str, *, explain: bool = False) -> Answer:
        """The answer; a query that is cancelled before its turn never runs. Raises what `ask` raises."""
        work = partial(self._search, text, explain)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _search(self, text: str, explain: bool) -> Answer:
        if self._live.changed():
            self._live.refresh()
        with self._live.acquire() as index:
            return ask(index, text, HITS, ranker=DEFAULT_RANKER, explain=explain)

    def locator(self) -> SourceLocator:
        """The files of the snapshot that answers."""
        with self._live.acquire() as index:
            return SourceLocator(index.snapshot)

    def place(self, hit: Mapping[str, Any]) -> str:
        """path:line of a hit, to paste: of its file where there is one, else repository/path."""
        current = self.locator().locate(hit)
        if current is None:
            return f"{hit['repository']}/{hit['path']}:{hit['start_line']}"
        here = Path.cwd()
        path = current.path.relative_to(here) if current.path.is_relative_to(here) else current.path
        return f"{path}:{current.line}"

    def close(self) -> None:
        """Wait for the query that runs, and close the index."""
        self._thread.shutdown(cancel_futures=True)
        self._live.close()
