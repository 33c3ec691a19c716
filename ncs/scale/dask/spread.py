"""Words that lie on a cluster's workers: what is counted and encoded of documents is made there, and merged here."""

from __future__ import annotations

import io
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import NcsError
from ncs.scale.dask.shards import DAMAGED
from ncs.scale.dask.tasks import PATIENCE, TICK, connected
from ncs.storage.words import Arrays, WordTable, Work, added, cut
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

AHEAD = 4
"""Tasks a worker that are handed out before their turn: what they made waits in the workers' memory."""
BRANCHES = 8
"""Counts that are added up at once."""


class SpreadWords(WordTable):
    """A table whose `each` and `total` are done by workers, which keep what they were sent of it.

    The same functions run on the same documents as here, and their results come back in order: so are the files of the
    index the same. What is lost with its workers is done here; `here` counts how often.
    """

    def __init__(self, words: WordTable, scheduler: str, patience: float = PATIENCE) -> None:
        """patience: seconds without any worker after which nothing more is expected of the cluster."""
        super().__init__(words.vocabulary, words.ids, words.offsets)
        self.room, self.here = words.room, 0
        self._scheduler, self._patience = scheduler, patience
        self._client: Any = None
        self._sent: dict[tuple[int, int], Any] = {}
        self._connection = ExitStack()
        weakref.finalize(self, self._connection.close)

    def close(self) -> None:
        """Let go of the workers and of what they hold; what is asked after that begins anew."""
        self._sent.clear()
        self._connection.close()
        self._client = None

    def each(self, work: Work, starts: Iterable[int], size: int) -> Iterator[Arrays]:
        """As WordTable does."""
        waiting: deque[tuple[int, Any]] = deque()
        tool = self._shared(work)
        for start in starts:
            waiting.append((start, self._begun(tool, start, size)))
            if len(waiting) > self._ahead():
                yield self._ended(work, *waiting.popleft(), size)
        while waiting:
            yield self._ended(work, *waiting.popleft(), size)

    def total(self, work: Work, size: int) -> Arrays:
        """As WordTable does: sums of sums, made by the workers."""
        tool = self._shared(work)
        level = [self._begun(tool, start, size) for start in range(0, max(1, len(self)), size)]
        if None not in level:
            while len(level) > 1:
                groups = [level[at : at + BRANCHES] for at in range(0, len(level), BRANCHES)]
                level = [self._client.submit(summed, *group, pure=False) for group in groups]
        found = self._came(level[0])
        if found is None:
            self.here += 1
        return super().total(work, size) if found is None else found

    def _ended(self, work: Work, start: int, future: Any, size: int) -> Arrays:
        found = self._came(future)
        if found is None:
            self.here += 1
        return work(self.stretch(start, min(start + size, len(self)))) if found is None else found

    def _begun(self, tool: Any, start: int, size: int) -> Any:
        """A task on the worker that has these documents, or on any other one; None where there is no cluster."""
        place = start, min(start + size, len(self))
        with suppress(*lost()):
            if tool is not None and (place not in self._sent or self._sent[place].status != "finished"):
                ids, lengths = self.part(*place)
                (self._sent[place],) = self._client.scatter(
                    [(np.array(ids), lengths, len(self.vocabulary))], hash=False
                )
            return None if tool is None else self._client.submit(made, tool, self._sent[place], pure=False)
        return None

    def _shared(self, work: Work) -> Any:
        """What is to be done, on every worker; None where there is no cluster."""
        with suppress(*lost(), NcsError):
            if self._client is None or self._client.status != "running":
                self._sent.clear()
                self._client = self._connection.enter_context(connected(self._scheduler, patience=self._patience))
            (tool,) = self._client.scatter([work], broadcast=True, hash=False)
            return tool
        return None

    def _came(self, future: Any) -> Arrays | None:
        """What a task came to; None where it was lost, or where nobody is left to do it."""
        from distributed import wait

        alone = 0.0
        with suppress(*lost()):
            while future is not None and not future.done():
                with suppress(TimeoutError):
                    wait(future, timeout=TICK)
                alone = 0.0 if self._workers() else alone + TICK
                if alone >= self._patience or self._client.status not in ("running", "connecting"):
                    return None
            return None if future is None else from_bytes(future.result())
        return None

    def _workers(self) -> int:
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def _ahead(self) -> int:
        return AHEAD * self._workers() if self._client else 0


def lost() -> tuple[type[BaseException], ...]:
    """What Dask raises where workers, what they were sent, or the scheduler are gone."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    return OSError, TimeoutError, CancelledError, KilledWorker, MemoryError


def made(work: Work, part: tuple[NDArray[np.int32], NDArray[np.int64], int]) -> bytes:
    """Dask calls it in a worker: what `work` makes of documents, of whose words it knows how many there are."""
    ids, lengths, words = part
    return to_bytes(work(cut(ids, lengths, Vocabulary(b"", np.zeros(words + 1, np.int64)))))


def summed(*found: bytes) -> bytes:
    """Dask calls it in a worker."""
    return to_bytes(added(*map(from_bytes, found)))


def to_bytes(arrays: Sequence[NDArray[Any]]) -> bytes:
    """As one .npz without pickles."""
    stream = io.BytesIO()
    np.savez(stream, *arrays, allow_pickle=False)
    return stream.getvalue()


def from_bytes(data: bytes) -> Arrays:
    """Of `to_bytes`; raises NcsError for anything else."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return [arrays[f"arr_{number}"] for number in range(len(arrays.files))]
    except DAMAGED as error:
        raise NcsError(f"a worker sent no arrays ({error}); do all machines run the same ncs?") from error
