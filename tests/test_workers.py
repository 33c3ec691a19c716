"""Tasks in processes that are killed when they go over a limit."""

from __future__ import annotations

import os
import pickle
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


def unpickled() -> None:
    raise AssertionError("the process has unpickled what it cannot")


class Odd:
    """Can be sent, but not be read."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return unpickled, ()


class OddError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def fail_oddly() -> None:
    raise OddError("a", "b")


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


def test_an_idle_process_that_dies_is_replaced_before_the_next_task() -> None:
    with Workers(1) as workers:
        process = workers.submit(os.getpid).result()
        os.kill(process, signal.SIGKILL)
        time.sleep(0.3)
        assert workers.submit(os.getpid).result() != process


def test_what_initialize_raises_is_the_error_of_every_task() -> None:
    with Workers(1, initialize=fail) as workers:
        for _ in range(2):
            with pytest.raises(BadInput, match="no"):
                workers.submit(os.getpid).result()


def test_what_cannot_be_pickled_is_the_error_of_its_task_and_the_process_lives_on() -> None:
    with Workers(1) as workers:
        process = workers.submit(os.getpid).result()
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            workers.submit(lambda: None).result()
        with pytest.raises(AssertionError, match="unpickled"):
            workers.submit(repr, Odd()).result()
        with pytest.raises(RuntimeError, match=r"OddError\('ab'\)"):
            workers.submit(fail_oddly).result()
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            workers.submit(eval, "lambda: None").result()
        assert workers.submit(os.getpid).result() == process


def test_a_task_submitted_after_closing_is_cancelled() -> None:
    workers = Workers(1)
    workers.close()
    assert workers.submit(os.getpid).cancelled()
