"""Pages that the system is asked for beforehand: those that are read next, each once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncs.storage import read_ahead
from ncs.storage.read_ahead import PAGE, WILL_NEED, ReadAhead
from ncs.storage.words import WordTable
from ncs.types import FIELDS
from tests.words import table

pytestmark = pytest.mark.skipif(WILL_NEED is None, reason="this system cannot be asked")


def mapped(folder: Path, numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    np.save(folder / "numbers.npy", np.arange(numbers, dtype=np.int32))
    return np.asarray(np.load(folder / "numbers.npy", mmap_mode="r"))


def test_the_pages_asked_for_are_those_of_the_first_and_the_last_element_of_each_range(tmp_path: Path) -> None:
    array, draw = mapped(tmp_path, 100_000), np.random.default_rng(0)
    begins = draw.integers(0, 99_000, 20)
    ends = begins + draw.integers(1, 900, 20)
    ahead = ReadAhead(array)
    ahead.prefetch(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert not ahead._requested.any()
    ahead.prefetch(begins, ends)
    head = (tmp_path / "numbers.npy").stat().st_size - 400_000
    assert set(np.flatnonzero(ahead._requested).tolist()) == {
        (head + 4 * int(at)) // PAGE for at in (*begins, *(ends - 1))
    }
    ahead.prefetch(np.array([99_999, 100_000]), np.array([100_000, 100_000]))
    assert (array == np.arange(100_000)).all()
    assert not ReadAhead(np.arange(10)).mapped


def test_a_mapped_table_gives_the_words_that_one_in_memory_gives(tmp_path: Path) -> None:
    whole = table(*(f"name: open f{n}; calls: a{n % 7} b{n % 11} read; doc: {'word ' * (n % 5)}" for n in range(2_000)))
    whole.save(tmp_path)
    loaded, draw = WordTable.load(tmp_path), np.random.default_rng(1)
    for size in (0, 1, 50, 1_999):
        rows = draw.permutation(2_000)[:size].astype(np.int64)
        (ids, offsets), (read, starts) = whole.select_rows(FIELDS, rows), loaded.select_rows(FIELDS, rows)
        assert (read.tolist(), starts.tolist()) == (ids.tolist(), offsets.tolist())


def test_pages_are_asked_for_again_once_the_process_has_waited_for_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_ahead.page_faults() >= 0
    page_faults = 0
    monkeypatch.setattr(read_ahead, "page_faults", lambda: page_faults)
    ahead = ReadAhead(mapped(tmp_path, 100_000))
    first, other = np.array([10]), np.array([90_000])
    ahead.prefetch(first, first + 1)
    ahead.prefetch(other, other + 1)
    assert ahead._requested.sum() == 2
    page_faults += read_ahead.MISSING
    ahead.prefetch(other, other + 1)
    assert ahead._requested.sum() == 2
    page_faults += read_ahead.MISSING + 1
    ahead.prefetch(other, other + 1)
    assert ahead._requested.sum() == 1
