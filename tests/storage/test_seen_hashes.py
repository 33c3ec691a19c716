"""Seen digests give the rows that a dictionary would give; connected parts are found alike for few and many pairs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ncs.storage import arrays
from ncs.storage.seen_hashes import SeenHashes


def by_dictionary(batches: list[list[bytes]]) -> list[list[int]]:
    rows: dict[bytes, int] = {}
    expected: list[list[int]] = []
    following = 0
    for batch in batches:
        expected.append([])
        for digest in batch:
            row = rows.setdefault(digest, following) if digest else following
            following += row == following
            expected[-1].append(row)
    return expected


def by_runs(batches: list[list[bytes]]) -> list[list[int]]:
    digests, following, rows = SeenHashes(), 0, []
    for batch in batches:
        rows.append(digests.rows(batch, following))
        following = max([following - 1, *rows[-1]]) + 1
    return rows


HEAD = b"sameHead"


@pytest.mark.parametrize(
    "batches",
    [
        [[HEAD + bytes(7) + bytes([n]) for n in numbers] for numbers in ((3, 1, 200), (200, 7, 3))],
        [[bytes(16)], [bytes(16), HEAD + bytes(8)]],
        [[b"", b"", b"short", b"short"], [b"", b"short", b"other"]],
    ],
    ids=["half the same", "zeros", "empty and short"],
)
def test_digests_are_compared_whole_and_an_empty_one_is_like_no_other(batches: list[list[bytes]]) -> None:
    assert by_runs(batches) == by_dictionary(batches)


def test_rows_are_those_of_a_dictionary_over_many_batches_with_copies_in_and_across_them() -> None:
    rng = Random(1)
    seen = [rng.randbytes(16) for _ in range(3_000)]
    batches = [[rng.choice(seen) for _ in range(rng.randrange(0, 300))] for _ in range(60)]
    assert by_runs(batches) == by_dictionary(batches)


def test_few_pairs_connect_the_same_things_as_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 60))
        pairs = rng.integers(0, n, (int(rng.integers(0, 80)), 2))
        few = arrays.connected_components(pairs, n).tolist()
        with monkeypatch.context() as patched:
            patched.setattr(arrays, "FEW", -1)
            many = arrays.connected_components(pairs, n).tolist()
        assert len(set(zip(few, many, strict=True))) == len(set(few)) == len(set(many))
