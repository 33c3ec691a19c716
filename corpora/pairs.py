"""(query, code) training pairs as JSON lines: query, code, language, source, id, question_id, split, license."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from corpora.jsonl import Row, read_rows, write_rows
from ncs.errors import BadInput

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


def read_pairs(path: Path, *, split: str = "") -> Iterator[Pair]:
    """Pairs of a `.jsonl` or `.jsonl.gz` file in its order, those of one split where one is named.

    question_id may be a number or a string, and may be missing, as may split and license; other keys are
    ignored. A second pair of one id, with other code, is called `<id>~2`.
    Raises BadInput, naming the line, for other missing keys, empty texts and repeated pairs.
    """
    hashes_by_id: dict[str, set[int]] = {}
    for row in read_rows(path):
        pair = _pair(row)
        same_id = hashes_by_id.setdefault(pair.id, set())
        if (same := hash((pair.query, pair.code))) in same_id:
            raise BadInput(f"{row.place}: the pair {pair.id!r} is repeated; keep one line")
        same_id.add(same)
        if not split or pair.split == split:
            yield pair if len(same_id) == 1 else replace(pair, id=f"{pair.id}~{len(same_id)}")


def _pair(row: Row) -> Pair:
    number = row.values.get("question_id", "")
    if not isinstance(number, (str, int)):
        raise BadInput(f"{row.place}: question_id is neither number nor string; correct that line")
    query, code = row.text("query"), row.text("code")
    if not query.strip() or not code.strip():
        raise BadInput(f"{row.place}: {'code' if query.strip() else 'query'} is empty; correct that line")
    return Pair(
        query=query,
        code=code,
        language=row.text("language"),
        source=row.text("source"),
        id=row.text("id"),
        question_id=str(number),
        split=row.text("split", ""),
        license=row.text("license", ""),
    )


def write_pairs(pairs: Iterable[Pair], path: Path) -> int:
    """Write JSON lines, gzip by name; returns their number. Empty question_id, split and license are left out."""
    return write_rows(path, map(_row, pairs))


def _row(pair: Pair) -> dict[str, object]:
    row = {key: value for key, value in asdict(pair).items() if value or key not in _OPTIONAL}
    if pair.question_id.isdecimal() and str(int(pair.question_id)) == pair.question_id:
        row["question_id"] = int(pair.question_id)
    return row
