"""fastText, once, on the worker that the scheduler chooses: a sample of the words goes there, vectors come back."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.learn import fasttext_worker
from ncs.learn.fasttext import FastTextConfig, Trainer
from ncs.learn.fasttext_process import TrainingFailedError, learn
from ncs.progress import Track, silent
from ncs.scale.dask.tasks import LOCAL, connected

if TYPE_CHECKING:
    from ncs.types import Matrix

SAMPLE = 100_000_000
"""Words that are learnt from at most: a corpus of more gives an even share of its documents."""
ATTEMPTS = 3
_SPREAD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: multiples of it fall evenly


def trainer_at(scheduler: str) -> Trainer | None:
    """Where a training runs for a build on this cluster; None, here, for one of this machine."""
    if scheduler == LOCAL:
        return None

    def train(room: Path, config: FastTextConfig, track: Track) -> tuple[Matrix, tuple[str, ...]]:
        text, notes = sample((room / fasttext_worker.TEXT).read_bytes(), SAMPLE)
        given = {
            fasttext_worker.TEXT: text,
            **{name: (room / name).read_bytes() for name in (fasttext_worker.FIRST, fasttext_worker.WORDS)},
        }
        for _ in track(["away"], "training embeddings on the cluster", total=1, unit="training"):
            vectors, more = _elsewhere(scheduler, given, config)
        return vectors, (*notes, *more)

    return train


def sample(text: bytes, most: int) -> tuple[bytes, tuple[str, ...]]:
    r"""Lines with at most so many words together, spread evenly; and a sentence, where that is not all.

    >>> sample(b"a b\nc d\ne f\ng h\n", 4)
    (b'a b\ne f\n', ('fastText learnt from 4 of 8 words, an even share of the documents.',))
    """
    words = text.count(b" ") + text.count(b"\n")
    if words <= most:
        return text, ()
    share = int(most / words * 2**64)
    kept = [line for at, line in enumerate(text.splitlines(keepends=True)) if at * _SPREAD % 2**64 < share]
    chosen = b"".join(kept)
    learnt = chosen.count(b" ") + chosen.count(b"\n")
    return chosen, (f"fastText learnt from {learnt:,} of {words:,} words, an even share of the documents.",)


def _elsewhere(scheduler: str, given: dict[str, bytes], config: FastTextConfig) -> tuple[Matrix, tuple[str, ...]]:
    """On a worker; on another one where that dies, then here."""
    from distributed import KilledWorker

    with connected(scheduler) as client:
        for _ in range(ATTEMPTS):
            sent = client.scatter(given, hash=False)
            future = client.submit(train, sent, json.dumps(asdict(config)), pure=False)
            while not future.done() and all(each.status == "finished" for each in sent.values()):
                _wait(future)  # what was sent dies with its worker
            try:
                kind, answer, notes = future.result() if future.status in ("finished", "error") else ("lost", b"", [])
            except KilledWorker:
                continue
            if kind == "failed":
                raise TrainingFailedError(answer.decode())
            if kind == "learnt":
                vectors: Matrix = np.load(io.BytesIO(answer), allow_pickle=False)
                return vectors, tuple(notes)
    return _here(given, config)


def _wait(future: object) -> None:
    from distributed import wait

    with suppress(TimeoutError):
        wait(future, timeout=2)


def train(given: dict[str, bytes], config: str) -> tuple[str, bytes, list[str]]:
    """Dask calls it in a worker: ("learnt", vectors as .npy, notes), or ("failed", why, [])."""
    try:
        vectors, notes = _here(given, FastTextConfig(**json.loads(config)))
    except TrainingFailedError as error:
        return "failed", str(error).encode(), []
    stream = io.BytesIO()
    np.save(stream, vectors, allow_pickle=False)
    return "learnt", stream.getvalue(), list(notes)


def _here(given: dict[str, bytes], config: FastTextConfig) -> tuple[Matrix, tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="fasttext-") as name:
        for file, content in given.items():
            Path(name, file).write_bytes(content)
        return learn(Path(name), config, silent)
