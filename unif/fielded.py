"""Pairs for a head that translates, as sparse rows on disk: stems of questions, what words weigh in functions.

A function that comes with its own doc comment, as a namesake does (corpora.codesearchnet), is kept without its name
too: else the name alone would tell it. Written in pieces and memory-mapped: a pair costs no memory but 40 bytes.
"""

from __future__ import annotations

import json
import shutil
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary
from unif.data import READING, Reading, Texts, Writer, mapped
from unif.impacts import READ, lengths, saturated, weighted_counts
from unif.questions import Questions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.data import Ids
    from unif.fielded_reading import Row

LEAST_NAME = 2
"""Words that a name needs to say what a function does."""
CHUNK = 1 << 15
"""Pairs that are weighed at a time."""
SPARSE, COLUMNS = ("query", "code", "nameless"), ("name", "documented", "times", "question", "idf")


@dataclass(frozen=True, slots=True)
class Fielded:
    """Sparse rows of all pairs, CSR [n, V]: query of ones; code and nameless of impacts. name: a number for each name
    of LEAST_NAME words, -1 for others, [n]; two of one name do not stand against each other. documented: whether the
    function has its doc comment; times: how often an epoch draws each; question: a number for each, [n]. idf: of the
    functions, [V]."""

    stems: Vocabulary
    query: Any
    code: Any
    nameless: Any
    name: Ids
    documented: NDArray[np.bool_]
    times: NDArray[np.float64]
    question: NDArray[np.int32]
    idf: NDArray[np.float64]
    reading: Reading

    def __len__(self) -> int:
        return len(self.name)

    def split(self, share: float, seed: int) -> tuple[Ids, Ids]:
        """Rows to learn from and rows to validate on; no question is on both sides, nor a name of those validated on.

        Raises BadInput where one side would be empty.
        """
        n = int(self.question.max()) + 1
        held = np.zeros(n, bool)
        held[np.random.default_rng((seed, 0)).permutation(n)[: max(1, round(share * n))]] = True
        there = held[self.question]
        named = np.unique(self.name[there])
        learning = np.flatnonzero(~there & ~np.isin(self.name, named[named >= 0]))
        if not len(learning):
            raise BadInput("nothing is left to learn from beside the questions to validate on; give more pairs")
        return learning, np.flatnonzero(there)

    @classmethod
    def load(cls, folder: Path) -> Fielded:
        """What `write` wrote, memory-mapped."""
        read = json.loads((folder / READING).read_bytes())
        reading = Reading(**{**read, "bad_lines": tuple(read["bad_lines"])})
        columns = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in COLUMNS}
        stems = Vocabulary.of(json.loads((folder / "stems.json").read_bytes()))
        sparse = {name: _Sparse.load(folder, name, len(stems)) for name in SPARSE}
        return cls(stems, **sparse, **columns, reading=reading)


def write(rows: Iterable[Row], folder: Path, reading: Reading) -> Fielded:
    """Write pairs into `folder`, `reading.json` last. Raises BadInput where there are none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    times, numbers, questions = array("d"), _Numbers(), Questions()
    with ExitStack() as stack:
        texts = {name: stack.enter_context(Writer(folder, f"{name}.read")) for name in ("query", *READ)}
        for row in rows:
            texts["query"].add(sorted({numbers(word) for word in row.asked}))
            for field in READ:
                texts[field].add([numbers(word) for word in row.fields.get(field, ())])
            times.append(row.weight)
            questions.add(*row.keys)
    if not times:
        first = f"; the first bad line: {reading.bad_lines[0]}" if reading.bad_lines else ""
        raise BadInput(f"no pair has words on both sides; give other pairs{first}")
    question = questions.numbers()
    reading.rows, reading.questions = len(times), int(question.max()) + 1
    stems, places = numbers.vocabulary()
    name, documented, idf = _weigh(folder, places)
    columns: tuple[NDArray[Any], ...] = (name, documented, np.frombuffer(times), question, idf)
    for column, values in zip(COLUMNS, columns, strict=True):
        np.save(folder / f"{column}.npy", values)
    (folder / "stems.json").write_text(json.dumps(list(stems), ensure_ascii=True), encoding="utf-8")
    (folder / READING).write_text(json.dumps(asdict(reading)) + "\n", encoding="utf-8")
    for path in folder.glob("*.read.*"):
        path.unlink()
    return Fielded.load(folder)


def _weigh(folder: Path, places: Ids) -> tuple[Ids, NDArray[np.bool_], NDArray[np.float64]]:
    """Names, which are documented, and idf; the sparse rows go to disk.

    Twice over what was read: impacts need the mean length of all functions.
    """
    df, whole, rest, n = np.zeros(len(places), np.int64), 0.0, 0.0, 0
    for counts in _counts(folder, places):
        each, bare = _with_and_without_name(counts)
        df += np.bincount(each.indices, minlength=len(places))
        whole, rest, n = whole + lengths(each).sum(), rest + lengths(bare).sum(), n + each.shape[0]
    numbers: dict[bytes, int] = {}
    names, documented = [], []
    with ExitStack() as stack:
        sparse = {name: stack.enter_context(_Sparse(folder, name)) for name in SPARSE}
        for counts in _counts(folder, places):
            each, bare = _with_and_without_name(counts)
            query = counts["query"]
            query.data[:] = 1
            sparse["query"].add(query)
            sparse["code"].add(saturated(each, whole / n))
            sparse["nameless"].add(saturated(bare, rest / n))
            names.append(_names(counts["name"], numbers))
            documented.append(np.diff(counts["doc"].indptr) > 0)
    return np.concatenate(names), np.concatenate(documented), np.log1p((n - df + 0.5) / (df + 0.5))


def _counts(folder: Path, places: Ids) -> Iterator[dict[str, Any]]:
    """Of CHUNK pairs at a time: field -> CSR [rows, V]."""
    from scipy.sparse import csr_matrix

    texts = {name: Texts.load(folder, f"{name}.read") for name in ("query", *READ)}
    for start in range(0, len(texts["query"]), CHUNK):
        found = {}
        for name, text in texts.items():
            ends = np.asarray(text.offsets[start : min(start + CHUNK, len(text)) + 1])
            ids = places[np.asarray(text.ids[ends[0] : ends[-1]])]
            data = np.ones(len(ids), np.float32)
            found[name] = csr_matrix((data, ids, ends - ends[0]), (len(ends) - 1, len(places)))
            found[name].sum_duplicates()
        yield found


def _with_and_without_name(counts: dict[str, Any]) -> tuple[Any, Any]:
    fields: Any = {field: each for field, each in counts.items() if field != "query"}
    return weighted_counts(fields), weighted_counts({f: each for f, each in fields.items() if f != "name"})


def _names(counts: Any, numbers: dict[bytes, int]) -> Ids:
    found = np.full(counts.shape[0], -1, np.int64)
    for row, (start, end) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        if end - start >= LEAST_NAME:
            found[row] = numbers.setdefault(np.sort(counts.indices[start:end]).tobytes(), len(numbers))
    return found


class _Numbers:
    """Numbers for the stems of words, in the order in which they are met."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}

    def __call__(self, word: str) -> int:
        if (number := self._words.get(word)) is None:
            stem = stem_all([word])[0]
            number = self._words[word] = self._stems.setdefault(stem, len(self._stems))
        return number

    def vocabulary(self) -> tuple[Vocabulary, Ids]:
        """All stems, and where each number stands among them."""
        stems = Vocabulary.of(self._stems)
        places = np.zeros(len(stems), np.int64)
        for place, stem in enumerate(stems):
            places[self._stems[stem]] = place
        return stems, places


class _Sparse:
    """CSR rows to disk as they come: `<name>.data` float32, `.indices` int32, `.indptr` int64."""

    KINDS: Sequence[tuple[str, type]] = (("data", np.float32), ("indices", np.int32), ("indptr", np.int64))

    def __init__(self, folder: Path, name: str) -> None:
        self._files = [(folder / f"{name}.{part}").open("wb") for part, _ in self.KINDS]
        self._end = 0
        self._files[2].write(np.int64(0).tobytes())

    def add(self, rows: Any) -> None:
        """More rows, CSR."""
        found = (rows.data, rows.indices, rows.indptr[1:].astype(np.int64) + self._end)
        for file, values, (_, kind) in zip(self._files, found, self.KINDS, strict=True):
            file.write(values.astype(kind).tobytes())
        self._end += len(rows.data)

    @classmethod
    def load(cls, folder: Path, name: str, tokens: int) -> Any:
        """All rows, CSR [n, tokens], memory-mapped."""
        from scipy.sparse import csr_matrix

        data, indices, ends = (mapped(folder / f"{name}.{part}", kind) for part, kind in cls.KINDS)
        ends = ends.astype(np.int32) if len(data) < np.iinfo(np.int32).max else ends
        return csr_matrix((data, indices, ends), shape=(len(ends) - 1, tokens), copy=False)

    def __enter__(self) -> _Sparse:
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._files:
            file.close()
