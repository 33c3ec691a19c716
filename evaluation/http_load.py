"""Many clients that ask one HTTP server: each asks, waits for the answer, thinks, asks again."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np

PERCENTILES = (50, 90, 95, 99, 99.9)


@dataclass(frozen=True, slots=True)
class Load:
    """A closed loop: clients with a connection each, who think for `think` seconds on average (exponential; 0: not at
    all) between an answer and the next request, for `seconds`. The first request of each is drawn from one think."""

    clients: int
    think: float
    seconds: float
    seed: int = 0


@dataclass(slots=True)
class Seen:
    """Milliseconds of every answered request, and what went wrong: reason -> how often."""

    milliseconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def summary(self) -> dict[str, object]:
        """Requests, their rate, errors, percentiles, and how many took how long (upper end in ms -> requests)."""
        found: dict[str, object] = {
            "requests": len(self.milliseconds),
            "requests_per_second": round(len(self.milliseconds) / max(self.seconds, 1e-9), 1),
            "errors": dict(self.errors),
        }
        if self.milliseconds:
            values = np.array(self.milliseconds)
            cuts = np.percentile(values, PERCENTILES)
            found["ms"] = {f"p{p:g}": round(float(cut), 2) for p, cut in zip(PERCENTILES, cuts, strict=True)}
            found["ms"] |= {"mean": round(float(values.mean()), 2), "max": round(float(values.max()), 2)}  # type: ignore[operator]
            ends = 2.0 ** np.ceil(np.log2(np.maximum(values, 1 / 16)))
            found["histogram_ms"] = {f"{end:g}": int((ends == end).sum()) for end in np.unique(ends)}
        return found


def ask(url: str, targets: Sequence[str], load: Load) -> Seen:
    """Put the load on a server: every client goes through the targets (paths with queries), from a place of its own."""
    return asyncio.run(_ask(url, targets, load))


async def _ask(url: str, targets: Sequence[str], load: Load) -> Seen:
    seen, start = Seen(), time.perf_counter()
    end = start + load.seconds
    clients = (_client(url, targets, load, number, end, seen) for number in range(load.clients))
    await asyncio.gather(*clients)
    seen.seconds = time.perf_counter() - start
    return seen


async def _client(url: str, targets: Sequence[str], load: Load, number: int, end: float, seen: Seen) -> None:
    where = urlsplit(url)
    chance = random.Random(load.seed * 1_000_003 + number)  # noqa: S311 (thinking is no secret)
    at = number * len(targets) // load.clients
    connection: _Connection | None = None
    while True:
        pause = chance.expovariate(1 / load.think) if load.think else 0.0
        if time.perf_counter() + pause >= end:
            break
        await asyncio.sleep(pause)
        begin = time.perf_counter()
        try:
            connection = connection or await _Connection.open(str(where.hostname), where.port or 80)
            status = await connection.get(targets[at % len(targets)])
            seen.milliseconds.append(1000 * (time.perf_counter() - begin))
            if status != 200:
                seen.errors[str(status)] += 1
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            seen.errors[type(error).__name__] += 1
            if connection:
                await connection.close()
            connection = None
        at += 1
    if connection:
        await connection.close()


class _Connection:
    """HTTP/1.1, kept alive; as little as reads our own answers: a client library would take the server's time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader, self._writer, self._host = reader, writer, host

    @classmethod
    async def open(cls, host: str, port: int) -> _Connection:
        return cls(*await asyncio.open_connection(host, port), f"{host}:{port}")

    async def get(self, target: str) -> int:
        """The status; the body is read whole."""
        self._writer.write(f"GET {target} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode("ascii"))
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(head[9:12])

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):  # the other side may have closed it already
            await self._writer.wait_closed()
