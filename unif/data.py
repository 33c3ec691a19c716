"""(question, code) pairs as memory-mapped word ids: read once, split by question, drawn one row a question.

Pairs come from JSON lines (query, code, language, question_id) and from the index's own functions: what a doc comment
or a name says against the rest of the function. Ids are those of the head's vocabulary plus one; 0 is no word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from corpora.jsonl import parse_row, read_lines
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.rankers.pairs import normalised
from ncs.tokens import field_tokens, tokenize
from ncs.types import NCS_FIELDS, Field
from ncs.vocabulary import ranges
from unif.questions import Questions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.vocabulary import Vocabulary, WordTable

    Ids = NDArray[np.int64]

BODY: tuple[Field, ...] = tuple(field for field in NCS_FIELDS if field not in ("doc", "name"))
LEAST_DOC, LEAST_NAME, LEAST_BODY = 3, 2, 2
"""Words that a comment, a name and the rest need to be a pair."""
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

    def close(self) -> None:
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
        reading = Reading(**json.loads((folder / "reading.json").read_bytes()))
        question = np.load(folder / "question.npy", mmap_mode="r", allow_pickle=False)
        return cls(Texts.load(folder, "query"), Texts.load(folder, "code"), question, reading)


def prepare(pairs: Iterable[Pair], folder: Path, reading: Reading) -> Pairs:
    """Write pairs into `folder`, `reading.json` last. Raises BadInput where none has words on both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    sides, questions = [_Writer(folder, "query"), _Writer(folder, "code")], Questions()
    for pair in pairs:
        if not any(pair.query) or not any(pair.code):
            reading.wordless += 1
            continue
        for side, ids in zip(sides, (pair.query, pair.code), strict=True):
            side.add([id for id in ids if id])
        questions.add(*pair.keys)
    for side in sides:
        side.close()
    numbers = questions.numbers()
    reading.rows, reading.questions = len(numbers), len(np.unique(numbers))
    if not reading.rows:
        first = f"; the first bad line: {reading.bad_lines[0]}" if reading.bad_lines else ""
        raise BadInput(f"no pair has known words on both sides; give other pairs, or a larger index{first}")
    np.save(folder / "question.npy", numbers)
    (folder / "reading.json").write_text(json.dumps(asdict(reading)) + "\n", encoding="utf-8")
    return Pairs.load(folder)


def pairs_of_file(
    path: Path,
    vocabulary: Vocabulary,
    reading: Reading,
    *,
    left_out: frozenset[str] = frozenset(),
    track: Track = silent,
) -> Iterator[Pair]:
    """Pairs of a `.jsonl` or `.jsonl.gz` file; lines that are none are counted in `reading` and passed over.

    left_out: normalised questions that must not be learnt from. Raises BadInput for a file that cannot be read.
    """
    known = {word: id for id, word in enumerate(vocabulary, 1)}
    for number, line in enumerate(track(read_lines(path), f"{path.name}", unit="pairs"), 1):
        if not line.strip():
            continue
        try:
            row = parse_row(line, f"{path}:{number}")
            query, code, language = row.text("query"), row.text("code"), row.text("language", "")
        except BadInput as error:
            reading.note(error)
            continue
        said = normalised(query)
        if said in left_out:
            reading.left_out += 1
            continue
        yield Pair(
            [known.get(word, 0) for word in tokenize(query)],
            [known.get(word, 0) for word in code_words(code, language)],
            [said, *_question_id(path, row.values)],
        )


def _question_id(path: Path, values: Mapping[str, object]) -> list[str]:
    """Numbers of Stack Overflow are the same in every file; other ids are a file's own."""
    id = values.get("question_id")
    if isinstance(id, int):
        return [f"\n{id}"]
    return [f"\n{id}" if id.isdecimal() else f"\n{path.name}\n{id}"] if isinstance(id, str) and id else []


def code_words(code: str, language: str) -> list[str]:
    """The words that NCS reads of a program of any shape."""
    words = read_program(code, language, id="").words
    return [word for field in NCS_FIELDS for word in field_tokens(field, words.get(field, ()))]


def own_pairs(words: WordTable, known: Ids, *, track: Track = silent) -> Iterator[Pair]:
    """The functions of an index: what the doc comment says against the rest, what the name says against the body.

    known: [len(vocabulary)], the head's id of each word, 0 for none. Both pairs of a function are one question.
    """
    for row in track(range(len(words)), "own pairs", total=len(words), unit="functions"):
        doc, name = (known[words.ids_of(row, field)] for field in ("doc", "name"))
        body = np.concatenate([known[words.ids_of(row, field)] for field in BODY])
        if np.count_nonzero(body) < LEAST_BODY:
            continue
        if np.count_nonzero(doc) >= LEAST_DOC:
            yield Pair(doc.tolist(), [*name.tolist(), *body.tolist()], [f"\n\n{row}", _key(doc)])
        if np.count_nonzero(name) >= LEAST_NAME:
            yield Pair(name.tolist(), body.tolist(), [f"\n\n{row}", _key(name)])


def _key(ids: Ids) -> str:
    return "\n\n\n" + " ".join(map(str, ids.tolist()))
