"""(question, code) pairs as memory-mapped word ids: written once, split by question or repository, sampled in batches.

Ids are those of a head's tokens, 1 and above; 0 is padding.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from ncs.errors import BadInput
from ncs.storage.words import ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.config import Split

    Ids = NDArray[np.int64]
    Encode = Callable[[Sequence[str]], Sequence[int]]

BAD_LINES = 20
"""Bad lines that are listed; all are counted."""
STATS = "reading.json"
COLUMNS = ("question", "source", "repository")


@dataclass(frozen=True, slots=True)
class Pair:
    """The words of both sides, and keys: pairs that share one belong to one question.

    source: the index of its source in `unif.sources.Sources`. repository: empty if unknown.
    """

    query: Sequence[str]
    code: Sequence[str]
    keys: Sequence[str]
    source: int = 0
    repository: str = ""


@dataclass(slots=True)
class ReadStats:
    """Counts of the lines and functions that were read, and the first bad lines."""

    rows: int = 0
    questions: int = 0
    bad: int = 0
    wordless: int = 0
    left_out: int = 0
    bad_lines: tuple[str, ...] = ()

    def note(self, error: BadInput) -> None:
        """Count a bad line."""
        self.bad += 1
        if len(self.bad_lines) < BAD_LINES:
            self.bad_lines = (*self.bad_lines, str(error))

    def save(self, folder: Path) -> None:
        """Write `reading.json`."""
        (folder / STATS).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> ReadStats:
        values = json.loads((folder / STATS).read_bytes())
        return cls(**{**values, "bad_lines": tuple(values["bad_lines"])})

    def empty(self, advice: str) -> BadInput:
        """The error if nothing usable was read."""
        first = f"; the first bad line: {self.bad_lines[0]}" if self.bad_lines else ""
        return BadInput(advice + first)


class QuestionNumbers:
    """Numbers questions: pairs connected by shared keys are one question. Memory: twelve bytes per key.

    >>> questions = QuestionNumbers()
    >>> questions.add("open a file", "id 1")
    >>> questions.add("close a file", "id 2")
    >>> questions.add("open the file", "id 1")
    >>> questions.add("close a file", "id 1")
    >>> questions.numbers().tolist()
    [0, 0, 0, 0]
    """

    def __init__(self) -> None:
        self._pairs = 0
        self._pair, self._key = array("i"), array("Q")

    def add(self, *keys: str) -> None:
        """Add a pair; a pair without keys is a question of its own."""
        for key in keys:
            digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).digest()
            self._pair.append(self._pairs)
            self._key.append(int.from_bytes(digest, "big"))
        self._pairs += 1

    def numbers(self) -> NDArray[np.int32]:
        """The question of each pair, [n], numbered from 0 in order of appearance.

        Pairs and keys are the nodes of a graph, a pair's keys its edges; a question is a connected component.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pair = np.frombuffer(self._pair, np.int32)
        distinct, key = np.unique(np.frombuffer(self._key, np.uint64), return_inverse=True)
        key = key.reshape(-1).astype(np.int32) + np.int32(self._pairs)
        nodes = self._pairs + len(distinct)
        graph = coo_array((np.ones(len(pair), np.int8), (pair, key)), (nodes, nodes)).tocsr()
        labels = connected_components(graph, directed=False)[1][: self._pairs]
        _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first)).astype(np.int32)
        numbered: NDArray[np.int32] = rank[numbers.reshape(-1)]
        return numbered


def mapped(path: Path, kind: type, mode: Literal["r", "c"] = "r") -> NDArray[Any]:
    """The array in a file, memory-mapped; empty for an empty file."""
    return np.memmap(path, kind, mode) if path.stat().st_size else np.zeros(0, kind)


class Texts:
    """Word ids of many texts: one flat int32 array and offsets int64 [n + 1], both memory-mapped."""

    def __init__(self, ids: NDArray[np.int32], offsets: Ids) -> None:
        self.ids, self.offsets = ids, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def cut(self, rows: Ids, longest: int) -> tuple[Ids, Ids]:
        """The first `longest` words of these rows: flat ids, and the length of each row."""
        starts = np.asarray(self.offsets[rows])
        lengths = np.minimum(np.asarray(self.offsets[rows + 1]) - starts, longest)
        return np.asarray(self.ids[ranges(starts, lengths)]), lengths

    @classmethod
    def load(cls, folder: Path, name: str) -> Texts:
        """What `TextWriter` wrote, mapped as a private copy, so that torch may wrap it."""
        return cls(mapped(folder / f"{name}.ids", np.int32, "c"), mapped(folder / f"{name}.offsets", np.int64, "c"))


class TextWriter:
    """Appends texts to files."""

    def __init__(self, folder: Path, name: str) -> None:
        self._ids: IO[bytes] = (folder / f"{name}.ids").open("wb")
        self._offsets: IO[bytes] = (folder / f"{name}.offsets").open("wb")
        self._end = 0
        self._offsets.write(np.int64(0).tobytes())

    def add(self, ids: Sequence[int]) -> None:
        """Append a text."""
        self._ids.write(array("i", ids).tobytes())
        self._end += len(ids)
        self._offsets.write(self._end.to_bytes(8, "little"))

    def __enter__(self) -> TextWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ids.close()
        self._offsets.close()


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs with the numbers of their question, source and repository (-1: unknown)."""

    query: Texts
    code: Texts
    question: NDArray[np.int32]
    source: NDArray[np.int16]
    repository: NDArray[np.int32]
    stats: ReadStats

    def __len__(self) -> int:
        return len(self.question)

    def split(self, share: float, seed: int, by: Split = "question") -> tuple[Ids, Ids]:
        """Training rows and validation rows, without a common question.

        by repository: whole repositories are held out; other rows of their questions are on neither side. Pairs
        without a repository are for training. Raises BadInput if one side would be empty.
        """
        group = self.question if by == "question" else self.repository
        n = int(group.max(initial=-1)) + 1
        if n < 2:
            raise BadInput(f"the pairs are of one {by}; give more, or split them by something else")
        is_held_out = np.zeros(n + 1, bool)  # the last entry is for -1
        is_held_out[np.random.default_rng((seed, 0)).permutation(n)[: max(1, round(share * n))]] = True
        valid = is_held_out[group]
        validated_questions = np.zeros(int(self.question.max()) + 1, bool)
        validated_questions[self.question[valid]] = True
        train = np.flatnonzero(~valid & ~validated_questions[self.question])
        if not len(train):
            raise BadInput(f"no pairs to train on are left when they are split by {by}; give more pairs")
        return train, np.flatnonzero(valid)

    @classmethod
    def load(cls, folder: Path) -> Pairs:
        """What `write_pairs` wrote."""
        columns = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in COLUMNS}
        return cls(Texts.load(folder, "query"), Texts.load(folder, "code"), stats=ReadStats.load(folder), **columns)


def write_pairs(pairs: Iterable[Pair], folder: Path, stats: ReadStats, query_ids: Encode, code_ids: Encode) -> Pairs:
    """Write pairs into `folder`, `reading.json` last. Raises BadInput where none has words on both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, repositories = QuestionNumbers(), {"": -1}
    source, repository = array("h"), array("i")
    with TextWriter(folder, "query") as queries, TextWriter(folder, "code") as codes:
        for pair in pairs:
            query, code = query_ids(pair.query), code_ids(pair.code)
            if not query or not code:
                stats.wordless += 1
                continue
            queries.add(query)
            codes.add(code)
            questions.add(*pair.keys)
            source.append(pair.source)
            repository.append(repositories.setdefault(pair.repository, len(repositories) - 1))
    if not source:
        raise stats.empty("no pair has known words on both sides; give other pairs, or a larger index")
    question = questions.numbers()
    stats.rows, stats.questions = len(source), int(question.max()) + 1
    columns: tuple[NDArray[Any], ...] = (
        question,
        *(np.frombuffer(each, f"i{each.itemsize}") for each in (source, repository)),
    )
    for name, values in zip(COLUMNS, columns, strict=True):
        np.save(folder / f"{name}.npy", values)
    stats.save(folder)
    return Pairs.load(folder)


def one_per_question(question: NDArray[np.int32], rows: Ids, draw: np.random.Generator) -> Ids:
    """One random row of each question, questions shuffled. question: [n], of all rows."""
    shuffled = draw.permutation(rows)
    _, first = np.unique(question[shuffled], return_index=True)
    first_rows: Ids = shuffled[draw.permutation(first)]
    return first_rows


def epoch_order(
    question: NDArray[np.int32],
    source: NDArray[np.int16],
    rows: Ids,
    weights: Sequence[float],
    draw: np.random.Generator,
) -> Ids:
    """The rows of an epoch in order: one row per question, as often as the weight of its source.

    A weight of 2.5 draws every question twice and half of them a third time, each time a random row; 0 skips a source.
    A question of several sources has the weight of the row drawn first.
    """
    by_source = np.asarray(weights, np.float64)
    rows = rows[by_source[source[rows]] > 0]
    rows_drawn = one_per_question(question, rows, draw)
    weight = by_source[source[rows_drawn]]
    times = np.floor(weight) + (draw.random(len(rows_drawn)) < weight % 1)
    passes = [rows_drawn[times >= 1]]
    for count in range(2, int(times.max(initial=0)) + 1):
        has_more = np.isin(question[rows], question[rows_drawn[times >= count]])
        passes.append(one_per_question(question, rows[has_more], draw))
    return passes[0] if len(passes) == 1 else draw.permutation(np.concatenate(passes))


def batches(question: NDArray[np.int32], order: Ids, size: int) -> Iterator[Ids]:
    """Batches of rows in order, a question at most once in each: repeats are deferred to the next batch.

    A last batch of one question, which has no negatives, is dropped.
    """
    queue, at = order[:0], 0
    while len(queue) or at < len(order):
        batch, next_queue = queue[:size], queue[size:]
        while True:
            _, first = np.unique(question[batch], return_index=True)
            is_repeat = np.ones(len(batch), bool)
            is_repeat[first] = False
            next_queue, batch = np.concatenate([batch[is_repeat], next_queue]), batch[~is_repeat]
            missing = min(size - len(batch), len(order) - at)
            if missing <= 0:
                break
            batch, at = np.concatenate([batch, order[at : at + missing]]), at + missing
        queue = next_queue
        if len(batch) > 1:
            yield batch
        elif at >= len(order):
            return
