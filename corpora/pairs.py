"""(query, code) training pairs as JSON lines: query, code, language, source, id, question_id, split, license."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from corpora.jsonl import write_rows

SHARES = {"train": 0.9, "valid": 0.05, "test": 0.05}
_OPTIONAL = ("question_id", "split", "license")


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a piece of code that answers it. Pairs of one question share its question_id."""

    query: str
    code: str
    language: str
    source: str
    id: str
    question_id: str = ""
    split: str = ""
    license: str = ""


def split_of(question_id: str, seed: int = 0) -> str:
    """train, valid or test (90, 5, 5 %), by a hash of the question: its pairs stay together.

    >>> [split_of(str(id)) for id in range(4)]
    ['train', 'valid', 'train', 'train']
    """
    return choose_by_hash(f"{seed}:{question_id}", SHARES)


def choose_by_hash(key: str, shares: Mapping[str, float]) -> str:
    """One of the names, by a hash of the key; each has its share of all keys."""
    digest = hashlib.sha256(key.encode("utf-8", "replace")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    for name, share in shares.items():
        place -= share
        if place < 0:
            return name
    return name


def write_pairs(pairs: Iterable[Pair], path: Path) -> int:
    """Write JSON lines, gzip by name; returns their number. Empty question_id, split and license are left out."""
    return write_rows(path, map(_row, pairs))


def _row(pair: Pair) -> dict[str, object]:
    row = {key: value for key, value in asdict(pair).items() if value or key not in _OPTIONAL}
    if pair.question_id.isdecimal() and str(int(pair.question_id)) == pair.question_id:
        row["question_id"] = int(pair.question_id)
    return row
