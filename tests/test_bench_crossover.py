"""The crossover benchmark: whole repositories are sampled, and a table row is what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluation.bench_crossover import Crossing, _add, read, sample, table
from ncs.errors import BadInput
from ncs.storage.file_roles import Places
from ncs.text.vocabulary import Vocabulary


def places(*sizes: int) -> Places:
    """As many repositories of one file each, with so many functions."""
    files = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    of_files = np.arange(len(sizes), dtype=np.int32), np.zeros(len(sizes), np.int8), np.ones(len(sizes), np.bool_)
    nothing = np.zeros(len(files), np.bool_), np.zeros(0, np.int32), np.zeros(len(sizes) + 1, np.int64)
    return Places(files, *of_files, *nothing, Vocabulary.of([]))


@pytest.mark.parametrize("seed", range(5))
def test_a_sample_holds_whole_repositories_and_no_more_than_asked_for(seed: int) -> None:
    where = places(50, 3, 4, 5, 60)
    rows = sample(where, np.ones(122, np.bool_), 12, seed=seed)
    assert set(where.file[rows].tolist()) == {1, 2, 3}  # any two fit, and then the third; the large ones do not
    assert len(rows) == 12


def test_rows_that_are_no_functions_are_left_out_and_do_not_count() -> None:
    allowed = np.array([True] * 5 + [False] * 5)
    assert sample(places(10), allowed, 5).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(BadInput, match="no repository has 4 functions or fewer"):
        sample(places(10), allowed, 4)


def crossing(functions: int, fasttext: list[float], lsa: list[float]) -> Crossing:
    values = {
        form: {ranker: {"mrr@10 at 0.25": each} for ranker in ("ncs_centred", "hybrid")}
        for form, each in (("fasttext", fasttext), ("lsa", lsa))
    }
    return Crossing(functions, 3, 2.5, {"fasttext": 2.0, "lsa": 1.0}, values)


def test_sizes_are_kept_beside_each_other_and_the_difference_is_that_of_lsa(tmp_path: Path) -> None:
    path = tmp_path / "crossover.json"
    for found in (crossing(3_000, [0.5, 0.5], [0.5, 0.5]), crossing(1_000, [0.0, 0.0], [0.0, 0.0])):
        _add(path, found, "questions")
    _add(path, crossing(1_000, [1.0, 0.5], [0.5, 0.0]), "questions")
    assert [each.functions for each in read(path)] == [1_000, 3_000]
    first, second = table(read(path)).splitlines()[2:]
    cells = [cell.strip() for cell in first.strip("|").split("|")]
    assert cells == ["1,000", "3 (2.5)", "mrr@10 at 0.25", "0.750", "0.250", "0.750", "0.250", cells[-1]]
    assert cells[-1].startswith("-0.500 ")
    assert "+0.000 [+0.000, +0.000]" in second
