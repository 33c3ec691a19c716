"""Duplicates found on disk, compared with all pairs counted by hand and with datasketch's own tables in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH

from corpora.codesearchnet import duplicates as found_on_disk
from corpora.codesearchnet.duplicates import EXACT, KEPT, NEAR, Part, duplicates
from corpora.codesearchnet.signatures import BANDS, LEAST, ROW, WIDTH, alike, band_keys, identifiers, rows_of


def write(
    folder: Path, number: int, names: Sequence[Sequence[int]], digests: Sequence[bytes], pairs: Sequence[bool]
) -> Part:
    part = Part(folder / f"{number}.rows", folder / f"{number}.names")
    part.rows.write_bytes(rows_of(names, digests, pairs).tobytes())
    part.names.write_bytes(b"".join(np.array(each, "<u4").tobytes() for each in names))
    return part


def digest(number: int) -> bytes:
    return number.to_bytes(16, "little")


def fates(
    tmp_path: Path, names: Sequence[Sequence[int]], digests: Sequence[bytes], pairs: Sequence[bool], cut: int = 3
) -> list[int]:
    """Of functions that lie in several parts."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    bounds = [*range(0, len(names), cut), len(names)]
    parts = [write(tmp_path, a, names[a:b], digests[a:b], pairs[a:b]) for a, b in pairwise(bounds)]
    return [int(fate) for fate in duplicates(parts, scratch)]


def test_identifiers_are_names_without_keywords_numbers_and_strings() -> None:
    tokens = ["def", "load", "(", "a", ",", "a", ")", ":", "return", "größe", "12", '"a"', "_x1"]
    assert len(identifiers(tokens, "python")) == 5  # load a a größe _x1
    assert identifiers(["a", "b"], "python") == identifiers(["b", "a"], "python")


def test_thresholds_are_allamanis_s_on_sets_and_on_multisets() -> None:
    ten, nine = Counter(range(10)), Counter(range(9))
    assert alike(ten, nine)  # 9 / 10
    assert not alike(ten, Counter(range(7)))  # 7 / 10 of the sets
    assert alike(ten, Counter([*range(9), 20])) is (9 / 11 >= 0.8)
    assert not alike(Counter({1: 5, 2: 1}), Counter({1: 1, 2: 1}))  # sets alike, multisets 2 / 6


def test_a_function_is_an_exact_duplicate_a_near_one_or_kept(tmp_path: Path) -> None:
    base = [*range(100, 130)]
    names = [base, base, [*base[:-1], 999], [*range(200, 230)], [1, 2, 3], [1, 2, 3], [1, 2, 4]]
    digests = [digest(n) for n in (1, 1, 2, 3, 4, 4, 5)]
    assert fates(tmp_path, names, digests, [True] * 7) == [KEPT, EXACT, NEAR, KEPT, KEPT, EXACT, KEPT]


def test_of_a_cluster_the_first_pair_is_kept_even_behind_functions_without_documentation(tmp_path: Path) -> None:
    base = [*range(100, 130)]
    names = [base, [*base[:-1], 999], base]
    assert fates(tmp_path, names, [digest(1), digest(2), digest(1)], [False, True, True]) == [NEAR, KEPT, NEAR]


def test_fewer_identifiers_than_twenty_have_exact_duplicates_only(tmp_path: Path) -> None:
    short = [*range(LEAST - 1)]
    assert fates(tmp_path, [short, short], [digest(1), digest(2)], [True, True]) == [KEPT, KEPT]
    (tmp_path / "long").mkdir()
    long = [*range(LEAST)]
    assert fates(tmp_path / "long", [long, long], [digest(1), digest(2)], [True, True]) == [KEPT, NEAR]


def random_functions(count: int, seed: int) -> list[list[int]]:
    """Half of them changed copies of others, from nearly the same to hardly alike."""
    draw = random.Random(seed)
    functions: list[list[int]] = []
    for number in range(count):
        if number % 2 and functions:
            copy = list(draw.choice(functions))
            for _ in range(draw.randint(0, len(copy) // 3)):
                copy[draw.randrange(len(copy))] = draw.randrange(1 << 32)
            functions.append(sorted(copy))
        else:
            functions.append(sorted(draw.choices(range(1 << 32), k=draw.randint(LEAST, 60))))
    return functions


@pytest.mark.parametrize("sorted_at_once", [1 << 19, 7])
def test_clusters_are_those_of_all_pairs_that_are_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sorted_at_once: int
) -> None:
    """Counted by all pairs; MinHash may miss a pair with .2 %, which here it does not."""
    monkeypatch.setattr(found_on_disk, "SORTED", sorted_at_once)  # a limit, not code: passes over the keys' files
    monkeypatch.setattr(found_on_disk, "BLOCK", 5)
    names = random_functions(160, 1)
    counted = [Counter(each) for each in names]
    cluster = list(range(len(names)))
    for a, b in combinations(range(len(names)), 2):
        if alike(counted[a], counted[b]):
            old, new = max(cluster[a], cluster[b]), min(cluster[a], cluster[b])
            cluster = [new if each == old else each for each in cluster]
    expected = [KEPT if cluster[row] == row else NEAR for row in range(len(names))]
    assert NEAR in expected
    assert fates(tmp_path, names, [digest(n) for n in range(len(names))], [True] * len(names), 50) == expected


def test_functions_share_a_band_key_where_datasketchs_tables_find_them() -> None:
    names = [sorted(set(each)) for each in random_functions(120, 2)]
    keys = band_keys(names)
    assert keys.shape == (120, BANDS)
    assert keys.all()
    tables = MinHashLSH(num_perm=BANDS * WIDTH, params=(BANDS, WIDTH))
    sketches = MinHash.bulk(names, num_perm=BANDS * WIDTH, hashfunc=int)
    for number, sketch in enumerate(sketches):
        tables.insert(number, sketch)
    for number, sketch in enumerate(sketches):
        ours = set(np.flatnonzero((keys == keys[number]).any(axis=1)).tolist())
        assert ours == set(tables.query(sketch))


def test_a_row_on_disk_is_what_the_documentation_says_it_takes() -> None:
    assert ROW.itemsize == 149
