"""Pages asked for beforehand: those that are read next, each once, and nothing of it shows in what is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncs.storage import read_ahead
from ncs.storage.read_ahead import PAGE, WILL_NEED, ReadAhead
from ncs.storage.words import WordTable
from ncs.types import FIELDS
from tests.words import table

mapped_only = pytest.mark.skipif(WILL_NEED is None, reason="this system cannot be asked")


def mapped(folder: Path, numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    np.save(folder / "numbers.npy", np.arange(numbers, dtype=np.int32))
    return np.asarray(np.load(folder / "numbers.npy", mmap_mode="r"))


@mapped_only
def test_the_pages_asked_for_are_those_of_the_first_and_the_last_element_of_each_range(tmp_path: Path) -> None:
    array = mapped(tmp_path, 100_000)
    draw = np.random.default_rng(0)
    begins = draw.integers(0, 99_000, 20)
    ends = begins + draw.integers(1, 900, 20)
    ahead = ReadAhead(array)
    ahead.ask(begins, ends)
    head = (tmp_path / "numbers.npy").stat().st_size - 400_000
    expected = {(head + 4 * int(at)) // PAGE for at in (*begins, *(ends - 1))}
    assert set(np.flatnonzero(ahead._asked).tolist()) == expected


@mapped_only
def test_ranges_at_the_end_empty_ones_and_none_at_all_can_be_asked_for(tmp_path: Path) -> None:
    array = mapped(tmp_path, 5_000)
    ahead = ReadAhead(array)
    ahead.ask(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert not ahead._asked.any()
    ahead.ask(np.array([4_999, 5_000]), np.array([5_000, 5_000]))
    assert np.flatnonzero(ahead._asked).tolist() == [len(ahead._asked) - 1]
    ahead.ask(np.array([0]), np.array([5_000]))
    assert (array == np.arange(5_000)).all()


def test_arrays_in_memory_are_left_alone() -> None:
    ahead = ReadAhead(np.arange(10))
    ahead.ask(np.array([0]), np.array([10]))
    assert not ahead.mapped


def test_a_mapped_table_gives_the_words_that_one_in_memory_gives(tmp_path: Path) -> None:
    whole = table(*(f"name: open f{n}; calls: a{n % 7} b{n % 11} read; doc: {'word ' * (n % 5)}" for n in range(2_000)))
    whole.save(tmp_path)
    from_disk = WordTable.load(tmp_path)
    draw = np.random.default_rng(1)
    for size in (0, 1, 50, 1_999):
        rows = draw.permutation(2_000)[:size].astype(np.int64)
        (ids, offsets), (read, starts) = whole.select_rows(FIELDS, rows), from_disk.select_rows(FIELDS, rows)
        assert (read.tolist(), starts.tolist()) == (ids.tolist(), offsets.tolist())


@mapped_only
def test_pages_are_asked_for_again_once_the_process_has_waited_for_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    so_far = 0
    monkeypatch.setattr(read_ahead, "waited", lambda: so_far)
    ahead = ReadAhead(mapped(tmp_path, 100_000))
    first, other = np.array([10]), np.array([90_000])
    ahead.ask(first, first + 1)
    ahead.ask(other, other + 1)
    assert ahead._asked.sum() == 2
    so_far += read_ahead.MISSING
    ahead.ask(other, other + 1)
    assert ahead._asked.sum() == 2
    so_far += read_ahead.MISSING + 1
    ahead.ask(other, other + 1)
    assert ahead._asked.sum() == 1


@mapped_only
def test_the_system_tells_how_often_a_process_has_waited() -> None:
    assert read_ahead.waited() >= 0
