"""Runs fastText in a process of its own and follows how far it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ncs.errors import NcsError
from ncs.learn import fasttext_worker

if TYPE_CHECKING:
    from ncs.learn.fasttext import FastTextConfig
    from ncs.progress import Track
    from ncs.types import Matrix

SLOWER = (1, 0.2, 0.04)  # learning rates to try after "Encountered NaN", as shares of the one asked for


class TrainingFailedError(NcsError):
    """fastText gave no usable vectors; the message says why in a few words."""


def learn(room: Path, config: FastTextConfig, track: Track) -> tuple[Matrix, tuple[str, ...]]:
    """Vectors of the words in room/WORDS, learnt from room/TEXT, and notes; slower where fastText diverged.

    Raises TrainingFailedError where it crashed or diverged at every rate.
    """
    for share in SLOWER:
        rate = config.learning_rate * share
        if (vectors := _run(room, config, rate, track)) is not None:
            slower = (f"fastText diverged; it learnt with the rate {rate:g} instead.",) if share < 1 else ()
            return vectors, slower
    raise TrainingFailedError("fastText diverged at every learning rate")


def _run(room: Path, config: FastTextConfig, rate: float, track: Track) -> Matrix | None:
    """One training in a process of its own; None where it diverged. The process ends with this call, always."""
    job = {
        "dim": config.dim,
        "ws": config.window,
        "epoch": config.epochs,
        "minn": config.min_n,
        "maxn": config.max_n,
        "bucket": config.buckets,
        "neg": config.negatives,
        "t": config.sample,
        "lr": rate,
        "thread": config.threads,
    }
    (room / fasttext_worker.JOB).write_text(json.dumps(job))
    with (room / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "ncs.learn.fasttext_worker"],
            cwd=room,  # not the user's folder: a random.py there would be imported
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        if process.stdout:
            for _ in track(_percents(process.stdout), "training embeddings", total=100, unit="%"):
                pass
        code = process.wait()
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
    if code == fasttext_worker.DIVERGED:
        return None
    if code:
        raise TrainingFailedError(_why(code, (room / "stderr.txt").read_text(errors="replace")))
    vectors: Matrix = np.load(room / fasttext_worker.VECTORS, allow_pickle=False)
    return vectors


def _environment() -> dict[str, str]:
    """The worker imports what this process would; glibc gives it zeroed memory, so that sub-words start at zero."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path, "MALLOC_PERTURB_": "255"}


def _percents(lines: IO[str]) -> Iterator[int]:
    """1 .. 100, each once, when the worker has come that far."""
    done = 0
    for line in lines:
        while line.strip().isdigit() and done < int(line):
            done += 1
            yield done


def _why(code: int, errors: str) -> str:
    last = re.sub(r"\s+", " ", errors.strip().rsplit("\n", 1)[-1])[:200]
    return f"fastText ended with {'signal' if code < 0 else 'status'} {abs(code)}{': ' + last if last else ''}"
