"""(question, code) pairs as memory-mapped word ids: written once, split by question or by repository.

Ids are those of a network's tokens, 1 and above; 0 is no word.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from ncs.errors import BadInput
from ncs.storage.words import ranges
from unif.questions import Questions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.settings import Split

    Ids = NDArray[np.int64]
    Says = Callable[[Sequence[str]], Sequence[int]]

NOTED = 20
"""Bad lines that are named; all are counted."""
NOWHERE = -1
"""No repository; no function of the index."""
READING = "reading.json"


@dataclass(frozen=True, slots=True)
class Pair:
    """The words of both sides, and keys of the question: pairs that share one are of one question.

    source: the place of its source in `Sources`. repository: empty where it is not known. row: of the index, NOWHERE
    for a pair that came from elsewhere. taught: the place of its question among a teacher's (`unif.teacher.Lists`).
    """

    query: Sequence[str]
    code: Sequence[str]
    keys: Sequence[str]
    source: int = 0
    repository: str = ""
    row: int = NOWHERE
    taught: int = NOWHERE


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


def mapped(path: Path, kind: type, mode: Literal["r", "c"] = "r") -> NDArray[Any]:
    """A file's numbers, memory-mapped; an empty file has none."""
    return np.memmap(path, kind, mode) if path.stat().st_size else np.zeros(0, kind)


class Texts:
    """Word ids of many texts: one flat int32 array and offsets int64 [n + 1], both memory-mapped."""

    def __init__(self, ids: NDArray[np.int32], offsets: Ids) -> None:
        self.ids, self.offsets = ids, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def cut(self, rows: Ids, longest: int) -> tuple[Ids, Ids]:
        """The first `longest` words of these rows: flat ids, and the length of each row."""
        begins = np.asarray(self.offsets[rows])
        lengths = np.minimum(np.asarray(self.offsets[rows + 1]) - begins, longest)
        return np.asarray(self.ids[ranges(begins, lengths)]), lengths

    @classmethod
    def load(cls, folder: Path, name: str) -> Texts:
        """What `Writer` wrote, for reading only; as a private copy, so that torch may wrap it."""
        return cls(mapped(folder / f"{name}.ids", np.int32, "c"), mapped(folder / f"{name}.offsets", np.int64, "c"))


class Writer:
    """Texts to disk as they come: memory holds none of them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._ids: IO[bytes] = (folder / f"{name}.ids").open("wb")
        self._offsets: IO[bytes] = (folder / f"{name}.offsets").open("wb")
        self._end = 0
        self._offsets.write(np.int64(0).tobytes())

    def add(self, ids: Sequence[int]) -> None:
        """One more text."""
        self._ids.write(array("i", ids).tobytes())
        self._end += len(ids)
        self._offsets.write(self._end.to_bytes(8, "little"))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ids.close()
        self._offsets.close()


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs, and of each: its question, numbered in the order of reading, and as in `Pair` the other columns."""

    query: Texts
    code: Texts
    question: NDArray[np.int32]
    source: NDArray[np.int16]
    repository: NDArray[np.int32]
    row: NDArray[np.int32]
    taught: NDArray[np.int32]
    reading: Reading

    def __len__(self) -> int:
        return len(self.question)

    def split(self, share: float, seed: int, by: Split = "question") -> tuple[Ids, Ids]:
        """Rows to learn from and rows to validate on. No question is on both sides, with any of its rows or twins.

        by repository: whole repositories are validated on; what else asks their questions is neither. Pairs that are
        of no repository are learnt from. Raises BadInput where one side would be empty.
        """
        group = self.question if by == "question" else self.repository
        n = int(group.max(initial=NOWHERE)) + 1
        if n < 2:
            raise BadInput(f"the pairs are of one {by}; give more, or split them by something else")
        held = np.zeros(n + 1, bool)  # the last is NOWHERE
        held[np.random.default_rng((seed, 0)).permutation(n)[: max(1, round(share * n))]] = True
        there = held[group]
        asked = np.zeros(int(self.question.max()) + 1, bool)
        asked[self.question[there]] = True
        learning = np.flatnonzero(~there & ~asked[self.question])
        if not len(learning):
            raise BadInput(f"nothing is left to learn from when pairs are split by {by}; give more pairs")
        return learning, np.flatnonzero(there)

    @classmethod
    def load(cls, folder: Path) -> Pairs:
        """What `prepare` wrote."""
        read = json.loads((folder / READING).read_bytes())
        reading = Reading(**{**read, "bad_lines": tuple(read["bad_lines"])})
        columns = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in COLUMNS}
        return cls(Texts.load(folder, "query"), Texts.load(folder, "code"), reading=reading, **columns)


COLUMNS = ("question", "source", "repository", "row", "taught")


def prepare(pairs: Iterable[Pair], folder: Path, reading: Reading, query_ids: Says, code_ids: Says) -> Pairs:
    """Write pairs into `folder`, `reading.json` last. Raises BadInput where none has words on both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, repositories = Questions(), {"": NOWHERE}
    source, repository, row, taught = array("h"), array("i"), array("i"), array("i")
    with Writer(folder, "query") as queries, Writer(folder, "code") as codes:
        for pair in pairs:
            query, code = query_ids(pair.query), code_ids(pair.code)
            if not query or not code:
                reading.wordless += 1
                continue
            queries.add(query)
            codes.add(code)
            questions.add(*pair.keys)
            source.append(pair.source)
            repository.append(repositories.setdefault(pair.repository, len(repositories) - 1))
            row.append(pair.row)
            taught.append(pair.taught)
    reading.rows = len(source)
    if not reading.rows:
        first = f"; the first bad line: {reading.bad_lines[0]}" if reading.bad_lines else ""
        raise BadInput(f"no pair has known words on both sides; give other pairs, or a larger index{first}")
    question = questions.numbers()
    reading.questions = int(question.max()) + 1
    arrays = (question, *(np.frombuffer(each, f"i{each.itemsize}") for each in (source, repository, row, taught)))
    for name, values in zip(COLUMNS, arrays, strict=True):
        np.save(folder / f"{name}.npy", values)
    (folder / READING).write_text(json.dumps(asdict(reading)) + "\n", encoding="utf-8")
    return Pairs.load(folder)
