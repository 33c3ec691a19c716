"""A store that is lost is tried again, after longer waits each time, until they are as long as was allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ncs.errors import BadInput, StoreLost
from ncs.scale.milvus.target import patiently


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    return found


def failing(times: int, error: type[Exception] = StoreLost) -> Callable[[], str]:
    """A call that fails so many times before it answers."""
    left = [error("lost")] * times

    def call() -> str:
        if left:
            raise left.pop()
        return "found"

    return call


def test_waits_double_until_it_answers(waits: list[float]) -> None:
    assert patiently(failing(3), 60) == "found"
    assert waits == [0.5, 1, 2]


def test_it_gives_up_before_the_waits_are_longer_than_allowed(waits: list[float]) -> None:
    with pytest.raises(StoreLost):
        patiently(failing(99), 60)
    assert waits == [0.5, 1, 2, 4, 8, 16]


def test_what_waiting_does_not_mend_is_told_at_once(waits: list[float]) -> None:
    with pytest.raises(BadInput):
        patiently(failing(1, BadInput), 60)
    assert not waits
