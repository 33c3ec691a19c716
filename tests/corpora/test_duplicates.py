"""Duplicates, and pairs too like held-out functions, compared with all pairs counted by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest

from corpora.codesearchnet.duplicates import (
    EXACT,
    KEPT,
    MIN_IDENTIFIERS,
    NEAR,
    HeldOutFunctions,
    alike,
    duplicates,
    identifiers,
)
from corpora.codesearchnet.filters import read_code
from corpora.pairs import Pair


def digest(number: int) -> bytes:
    return number.to_bytes(16, "little")


def fates(names: Sequence[Sequence[int]], digests: Sequence[bytes], pairs: Sequence[bool] = ()) -> list[int]:
    return [int(fate) for fate in duplicates(names, digests, pairs or [True] * len(names))]


def test_identifiers_are_names_without_keywords_numbers_and_strings() -> None:
    tokens = ["def", "load", "(", "a", ",", "a", ")", ":", "return", "größe", "12", '"a"', "_x1"]
    assert len(identifiers(tokens, "python")) == 5  # load a a größe _x1
    assert identifiers(["a", "b"], "python") == identifiers(["b", "a"], "python")


def test_a_function_is_an_exact_duplicate_a_near_one_or_kept() -> None:
    base = [*range(100, 130)]
    names = [base, base, [*base[:-1], 999], [*range(200, 230)], [1, 2, 3], [1, 2, 3], [1, 2, 4]]
    digests = [digest(n) for n in (1, 1, 2, 3, 4, 4, 5)]
    assert fates(names, digests) == [KEPT, EXACT, NEAR, KEPT, KEPT, EXACT, KEPT]


def test_of_a_cluster_the_first_pair_is_kept_even_behind_functions_without_documentation() -> None:
    base = [*range(100, 130)]
    names = [base, [*base[:-1], 999], base]
    assert fates(names, [digest(1), digest(2), digest(1)], [False, True, True]) == [NEAR, KEPT, NEAR]


def test_fewer_identifiers_than_twenty_have_exact_duplicates_only() -> None:
    for size, fate in (MIN_IDENTIFIERS - 1, KEPT), (MIN_IDENTIFIERS, NEAR):
        assert fates([[*range(size)]] * 2, [digest(1), digest(2)]) == [KEPT, fate]


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
            functions.append(sorted(draw.choices(range(1 << 32), k=draw.randint(MIN_IDENTIFIERS, 60))))
    return functions


def test_clusters_are_those_of_all_pairs_that_are_alike() -> None:
    """Counted by all pairs; MinHash may miss a pair with .2 %, which here it does not."""
    names = random_functions(160, 1)
    counted = [Counter(each) for each in names]
    cluster = list(range(len(names)))
    for a, b in combinations(range(len(names)), 2):
        if alike(counted[a], counted[b]):
            old, new = max(cluster[a], cluster[b]), min(cluster[a], cluster[b])
            cluster = [new if each == old else each for each in cluster]
    expected = [KEPT if cluster[row] == row else NEAR for row in range(len(names))]
    assert NEAR in expected
    assert fates(names, [digest(n) for n in range(len(names))]) == expected


def pair(query: str, code: str) -> Pair:
    return Pair(query, code, "python", "test", "id")


def function(names: list[str]) -> str:
    return "def f():\n" + "\n".join(f"    {name}()" for name in names)


HELD_OUT = 'def add(a, b):\n    """Adds two numbers.\n\n    Slowly."""\n    # plus\n    return a + b'


@pytest.mark.parametrize(
    ("query", "code", "reason"),
    [
        ("something else", "def add(a, b):\n    return a + b", "code"),
        ("something else", "def add(a, b):\n    return b + a", None),
        ("Adds two numbers", "def plus(x, y):\n    return x + y", "documentation"),
        ("Adds two numbers quickly", "def plus(x, y):\n    return x + y", None),
        ("something else", function([f"n{at}" for at in range(29)] + ["other"]), "near duplicate"),
        ("something else", function([f"n{at}" for at in range(20)] + [f"o{at}" for at in range(10)]), None),
    ],
)
def test_a_pair_is_left_out_for_its_code_or_its_documentation(query: str, code: str, reason: str | None) -> None:
    held_out = HeldOutFunctions([(HELD_OUT, "python"), (function([f"n{at}" for at in range(30)]), "python")])
    assert held_out.overlap(pair(query, code)) == reason


def test_every_near_duplicate_is_found() -> None:
    draw = random.Random(4)
    common = [f"c{at}" for at in range(40)]
    samples = [draw.sample(common, draw.randint(12, 40)) for _ in range(60)]
    held_out = HeldOutFunctions([(function(names), "python") for names in samples])
    every = [Counter(identifiers(read_code(function(names), "python").tokens, "python")) for names in samples]
    positives = 0
    for _ in range(300):
        names = draw.choice(samples)
        names = [name for name in names if draw.random() > 0.1] + draw.sample(common, draw.randint(0, 4))
        own = Counter(identifiers(read_code(function(names), "python").tokens, "python"))
        expected = own.total() >= 20 and any(each.total() >= 20 and alike(own, each) for each in every)
        assert (held_out.overlap(pair("something else", function(names))) is not None) == expected or names in samples
        positives += expected
    assert 30 < positives < 270
