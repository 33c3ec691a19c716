"""(question, code) pairs as memory-mapped word ids: written once, split by question, drawn one row a question.

Ids are those of the head's vocabulary plus one; 0 is no word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.vocabulary import ranges
from unif.questions import Questions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

NOTED = 20
"""Bad lines that are named; all are counted."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The words of both sides as ids, and keys of the question: pairs that share one are of one question."""

    query: Sequence[int]
    code: Sequence[int]
    keys: Sequence[str]


@dataclass(slots=True)
class Reading:
    """What became of the lines and functions: counts, and the first bad lines with file and number."""

    rows: int = 0
    questions: int = 0
    bad: int = 0
    wordless: int = 0
    left_out: int = 0
    bad_lines: tuple[str, ...] = ()

    def note(self, error: BadInput) -> None:
        """Count a bad line."""
        self.bad += 1
        if len(self.bad_lines) < NOTED:
            self.bad_lines = (*self.bad_lines, str(error))


class Texts:
    """Word ids of many texts: one flat int32 array and offsets int64 [n + 1], both memory-mapped."""

    def __init__(self, ids: NDArray[np.int32], offsets: Ids) -> None:
        self.ids, self.offsets = ids, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def padded(self, rows: Ids, longest: int, *, unique: bool = False) -> Ids:
        """The first `longest` words of these rows, [n, l], zeros behind; unique: repeated words of a row as zeros."""
        begins = np.asarray(self.offsets[rows])
        lengths = np.minimum(np.asarray(self.offsets[rows + 1]) - begins, longest)
        there = np.arange(int(lengths.max(initial=0))) < lengths[:, None]
        found = np.zeros(there.shape, np.int64)
        found[there] = self.ids[ranges(begins, lengths)]
        return _once(found) if unique else found

    @classmethod
    def load(cls, folder: Path, name: str) -> Texts:
        """What `_Writer` wrote."""
        ids = np.memmap(folder / f"{name}.ids", np.int32, "r")
        return cls(ids, np.memmap(folder / f"{name}.offsets", np.int64, "r"))


def _once(ids: Ids) -> Ids:
    """Every word but the first of its kind in each row set to 0."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    again = np.zeros(ids.shape, bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    np.put_along_axis(ordered, order, np.where(again, 0, ordered), axis=1)
    return ordered


class _Writer:
    """Texts to disk as they come: memory holds none of them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._ids: IO[bytes] = (folder / f"{name}.ids").open("wb")
        self._offsets: IO[bytes] = (folder / f"{name}.offsets").open("wb")
        self._end = 0
        self._offsets.write(np.int64(0).tobytes())

    def add(self, ids: Sequence[int]) -> None:
        self._ids.write(np.array(ids, np.int32).tobytes())
        self._end += len(ids)
        self._offsets.write(np.int64(self._end).tobytes())

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ids.close()
        self._offsets.close()


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs and the question that each is of, [n], numbered from 0 in the order of reading."""

    query: Texts
    code: Texts
    question: Ids
    reading: Reading

    def split(self, share: float, seed: int) -> tuple[Ids, Ids]:
        """Rows to learn from and rows to validate on: a question is on one side with all its rows, and its twins."""
        n = int(self.question.max()) + 1
        if n < 2:
            raise BadInput("the pairs are of one question; give more")
        held = np.zeros(n, bool)
        held[np.random.default_rng((seed, 0)).permutation(n)[: max(1, round(share * n))]] = True
        return np.flatnonzero(~held[self.question]), np.flatnonzero(held[self.question])

    def one_a_question(self, rows: Ids, draw: np.random.Generator) -> Ids:
        """Of these rows one of each question, drawn; the questions shuffled."""
        mixed = draw.permutation(rows)
        _, first = np.unique(self.question[mixed], return_index=True)
        drawn: Ids = mixed[draw.permutation(first)]
        return drawn

    def batches(self, rows: Ids, size: int, draw: np.random.Generator) -> Iterator[Ids]:
        """An epoch: every question once, in batches; a last one of a single row, which has no negatives, is left."""
        order = self.one_a_question(rows, draw)
        for start in range(0, len(order), size):
            if len(order) - start > 1:
                yield order[start : start + size]

    @classmethod
    def load(cls, folder: Path) -> Pairs:
        """What `prepare` wrote."""
        read = json.loads((folder / "reading.json").read_bytes())
        reading = Reading(**{**read, "bad_lines": tuple(read["bad_lines"])})
        question = np.load(folder / "question.npy", mmap_mode="r", allow_pickle=False)
        return cls(Texts.load(folder, "query"), Texts.load(folder, "code"), question, reading)


def prepare(pairs: Iterable[Pair], folder: Path, reading: Reading) -> Pairs:
    """Write pairs into `folder`, `reading.json` last. Raises BadInput where none has words on both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    questions = Questions()
    with _Writer(folder, "query") as query, _Writer(folder, "code") as code:
        for pair in pairs:
            if not any(pair.query) or not any(pair.code):
                reading.wordless += 1
                continue
            query.add([id for id in pair.query if id])
            code.add([id for id in pair.code if id])
            questions.add(*pair.keys)
    numbers = questions.numbers()
    reading.rows, reading.questions = len(numbers), len(np.unique(numbers))
    if not reading.rows:
        first = f"; the first bad line: {reading.bad_lines[0]}" if reading.bad_lines else ""
        raise BadInput(f"no pair has known words on both sides; give other pairs, or a larger index{first}")
    np.save(folder / "question.npy", numbers)
    (folder / "reading.json").write_text(json.dumps(asdict(reading)) + "\n", encoding="utf-8")
    return Pairs.load(folder)
