"""Tasks in processes that are killed when they go over a limit."""

from __future__ import annotations

import os
import signal
import time

import pytest

from ncs.errors import BadInput
from ncs.workers import TaskKilled, Workers

pytestmark = pytest.mark.slow


def allocate(size: int) -> int:
    return len(b"x" * size)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise BadInput("no")


def test_a_task_over_a_limit_is_killed_and_the_next_one_has_a_fresh_process() -> None:
    with Workers(1, memory=500 << 20) as workers:
        process = workers.submit(os.getpid).result()
        assert workers.submit(allocate, 10 << 20).result() == 10 << 20
        assert workers.submit(os.getpid).result() == process != os.getpid()
        for future in (
            workers.submit(time.sleep, 60, seconds=0.2),
            workers.submit(allocate, 1 << 30),
            workers.submit(die),
        ):
            with pytest.raises(TaskKilled):
                future.result()
        with pytest.raises(BadInput, match="no"):
            workers.submit(fail).result()
        assert workers.submit(os.getpid).result() != process


def test_closing_kills_what_runs_and_drops_what_waits() -> None:
    began = time.monotonic()
    workers = Workers(1)
    workers.submit(os.getpid).result()
    running, waiting = workers.submit(time.sleep, 60), workers.submit(os.getpid)
    time.sleep(0.2)
    workers.close()
    with pytest.raises(TaskKilled):
        running.result()
    assert waiting.cancelled()
    assert time.monotonic() - began < 30
