"""What the interactive search asks: the newest generation of one index, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.answer import ask
from ncs.search.locate_source import SourceFiles, SourceLocation
from ncs.search.rankers import DEFAULT_RANKER
from ncs.serve.http.shelf import Shelf

if TYPE_CHECKING:
    from ncs.answer import Answer

HITS = 20


class Searcher:
    """One index, asked one question at a time; an update of it answers from the next question on."""

    def __init__(self, folder: Path) -> None:
        """Raises what Index.load raises."""
        self._shelf = Shelf(folder.name, folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ncs-search")

    @property
    def documents(self) -> int:
        """How many there are."""
        return self._shelf.documents

    async def ask(self, text: str, *, explain: bool = False) -> Answer:
        """The answer; a question that is given up before its turn is never asked. Raises what `ask` raises."""
        work = partial(self._asked, text, explain)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _asked(self, text: str, explain: bool) -> Answer:
        if self._shelf.changed():
            self._shelf.refresh(verify=False)
        with self._shelf.lent() as index:
            return ask(index, text, HITS, ranker=DEFAULT_RANKER, explain=explain)

    def originals(self) -> SourceFiles:
        """The files of the generation that answers."""
        with self._shelf.lent() as index:
            return SourceFiles(index.snapshot)

    def place(self, hit: Mapping[str, Any]) -> str:
        """path:line of a hit, to be pasted: its file's path where there is one, else repository/path."""
        stand: SourceLocation | None = self.originals().locate(hit)
        if stand is None:
            return f"{hit['repository']}/{hit['path']}:{hit['start_line']}"
        here = Path.cwd()
        path = stand.path.relative_to(here) if stand.path.is_relative_to(here) else stand.path
        return f"{path}:{stand.line}"

    def close(self) -> None:
        """Wait for the question that is being answered, and close the index."""
        self._thread.shutdown(cancel_futures=True)
        self._shelf.close()
