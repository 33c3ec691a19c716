"""Which partition a repository is in, by its name alone: adding other repositories moves none."""

from __future__ import annotations

import hashlib

SHARES = (("train", 0.8), ("valid", 0.1), ("test", 0.1))
"""Husain et al. 2019, section 2: 80-10-10; all functions of a repository are in one partition."""
PARTITIONS = tuple(name for name, _ in SHARES)


def partition_of(repository: str, seed: int = 0) -> str:
    """train, valid or test, by a hash of the seed and the name in lower case (hosts do not tell cases apart).

    >>> [partition_of(name) for name in ("owner/a", "owner/b", "owner/c")]
    ['train', 'valid', 'train']
    """
    digest = hashlib.sha256(f"{seed}:{repository.lower()}".encode("utf-8", "replace")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    for partition, share in SHARES:
        place -= share
        if place < 0:
            return partition
    return PARTITIONS[-1]
