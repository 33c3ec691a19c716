"""Digests: the rows that a dictionary would give."""

from __future__ import annotations

from random import Random

import numpy as np

from ncs.storage.seen_hashes import SeenHashes


def by_dictionary(batches: list[list[bytes]]) -> list[list[int]]:
    rows: dict[bytes, int] = {}
    following, found = 0, []
    for batch in batches:
        of_batch = []
        for digest in batch:
            row = rows.setdefault(digest, following) if digest else following
            following += row == following
            of_batch.append(row)
        found.append(of_batch)
    return found


def by_runs(batches: list[list[bytes]]) -> list[list[int]]:
    digests, following, found = SeenHashes(), 0, []
    for batch in batches:
        found.append(digests.rows(batch, following))
        following = max([following - 1, *found[-1]]) + 1
    return found


def test_rows_are_those_that_a_dictionary_gives_over_many_batches_with_copies_in_and_across_them() -> None:
    rng = Random(1)
    known = [rng.randbytes(16) for _ in range(3_000)]
    batches = [[rng.choice(known) for _ in range(rng.randrange(0, 300))] for _ in range(60)]
    assert by_runs(batches) == by_dictionary(batches)


def test_digests_that_share_their_first_half_are_told_apart() -> None:
    head = b"sameHead"
    batches = [[head + bytes(7) + bytes([n]) for n in (3, 1, 200)], [head + bytes(7) + bytes([n]) for n in (200, 7, 3)]]
    batches += [[bytes(16)], [bytes(16), head + bytes(8)]]
    assert by_runs(batches) == by_dictionary(batches) == [[0, 1, 2], [2, 3, 0], [4], [4, 5]]


def test_an_empty_digest_is_like_no_other_and_short_ones_are_compared_too() -> None:
    batches = [[b"", b"", b"short", b"short"], [b"", b"short", b"other"]]
    assert by_runs(batches) == by_dictionary(batches) == [[0, 1, 2, 2], [3, 2, 4]]


def test_there_are_few_runs_and_every_row_is_in_one() -> None:
    digests, rng = SeenHashes(), Random(2)
    for batch in range(500):
        digests.rows([rng.randbytes(16) for _ in range(20)], 20 * batch)
    sizes = [len(run[0]) for run in digests._runs]
    assert sum(sizes) == 10_000
    assert len(sizes) < 14
    assert np.sort(np.concatenate([run[2] for run in digests._runs])).tolist() == list(range(10_000))
