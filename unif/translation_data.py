"""Pairs for a head with a translation, as sparse rows on disk: stems of questions, impacts of words in functions.

A question is the first sentence of a query, without stop words. A function with its own doc comment, as a namesake
(corpora.codesearchnet), is also stored without its name, which alone would give the answer away. Rows are written in
chunks and memory-mapped.
"""

from __future__ import annotations

import json
import re
import shutil
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.program import read_program
from ncs.errors import BadInput
from ncs.learn.translation import READ, lengths, saturated, weighted_counts
from ncs.progress import Track, silent
from ncs.text.stems import stem_all
from ncs.text.stopwords import content_words
from ncs.text.tokens import field_tokens, tokenize
from ncs.text.vocabulary import Vocabulary
from ncs.types import Field
from unif.data import STATS, QuestionNumbers, ReadStats, Texts, TextWriter, mapped
from unif.sources import lines_of_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.data import Ids
    from unif.sources import Sources

LONGEST_QUERY, LONGEST_FIELD = 25, 200
"""Words that are read."""
MIN_QUERY, MIN_NAME = 2, 2
"""Least words of a question and of a descriptive name."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n\s*\n|:param|Args:|@param|>>>")
MIN_SENTENCE = 12
"""Letters."""
CHUNK = 1 << 15
"""Pairs that are weighted at a time."""
SPARSE, COLUMNS = ("query", "code", "nameless"), ("name", "documented", "times", "question", "idf")


@dataclass(frozen=True, slots=True)
class Row:
    """Words of the question and the function; weight: draws per epoch; keys: pairs that share one are one question."""

    query: list[str]
    fields: Mapping[Field, Sequence[str]]
    weight: float = 1.0
    keys: Sequence[str] = ()


def first_sentence(text: str) -> str:
    """The first sentence of a comment, or all of it where that is too short.

    >>> first_sentence("Return the size of a file. Raises OSError.\\n\\n:param path: of it")
    'Return the size of a file.'
    """
    first = SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    return first if len(first) > MIN_SENTENCE else text


def read_rows(sources: Sources, stats: ReadStats, track: Track = silent) -> Iterator[Row]:
    """The pairs of `unif.sources.lines_of_file`, of all files; rows without words are counted and skipped."""
    excluded = sources.excluded
    for file in sources.files:
        for line in lines_of_file(file.path, stats, excluded, track):
            words = read_program(line.code, line.language, id="").words
            query = content_words(tokenize(first_sentence(line.query)))[:LONGEST_QUERY]
            fields = {f: field_tokens(f, words[f])[:LONGEST_FIELD] for f in READ if f in words}
            if line.published:
                fields.pop("doc", None)
            if len(set(query)) >= MIN_QUERY and fields:
                yield Row(query, fields, file.weight, line.keys(file.path))
            else:
                stats.wordless += 1


@dataclass(frozen=True, slots=True)
class SparsePairs:
    """Sparse rows of all pairs, CSR [n, V]: query of ones; code and nameless of impacts.

    name: a number for each name of MIN_NAME words, -1 for others, [n]; two of one name are no negatives of each other.
    documented: whether the function has its doc comment; times: how often an epoch draws each; question: a number for
    each, [n]. idf: of the functions, [V].
    """

    stems: Vocabulary
    query: Any
    code: Any
    nameless: Any
    name: Ids
    documented: NDArray[np.bool_]
    times: NDArray[np.float64]
    question: NDArray[np.int32]
    idf: NDArray[np.float64]
    stats: ReadStats

    def __len__(self) -> int:
        return len(self.name)

    def split(self, share: float, seed: int) -> tuple[Ids, Ids]:
        """Training and validation rows, without a common question or name.

        Raises BadInput if one side would be empty.
        """
        n = int(self.question.max()) + 1
        is_held_out = np.zeros(n, bool)
        is_held_out[np.random.default_rng((seed, 0)).permutation(n)[: max(1, round(share * n))]] = True
        valid = is_held_out[self.question]
        names = np.unique(self.name[valid])
        train = np.flatnonzero(~valid & ~np.isin(self.name, names[names >= 0]))
        if not len(train):
            raise BadInput("nothing is left to train on beside the questions to validate on; give more pairs")
        return train, np.flatnonzero(valid)

    def code_of(self, rows: Ids, draw: np.random.Generator) -> Any:
        """Impacts of these rows, without the name for a random half of the documented functions."""
        from scipy.sparse import vstack

        bare = self.documented[rows] & (draw.random(len(rows)) < 0.5)
        back = np.argsort(np.concatenate([np.flatnonzero(~bare), np.flatnonzero(bare)]))
        return vstack([self.code[rows[~bare]], self.nameless[rows[bare]]], format="csr")[back]

    def batches(
        self, rows: Ids, size: int, grouped_share: float, share: float, draw: np.random.Generator
    ) -> Iterator[Ids]:
        """Batches of `size` rows in random order; a `grouped_share` of the rows is batched by a shared word.

        share: of the pairs without a doc comment.
        """
        times = self.times[rows] * np.where(self.documented[rows], 1.0, share)
        rows = np.repeat(rows, np.floor(times + draw.random(len(rows))).astype(np.int64))
        n_words = np.diff(self.query.indptr)[rows]
        word = self.query.indices[self.query.indptr[rows] + (draw.random(len(rows)) * n_words).astype(np.int64)]
        is_grouped = draw.random(len(rows)) < grouped_share
        ordered = rows[is_grouped][np.argsort(draw.permutation(len(self.stems))[word[is_grouped]], kind="stable")]
        mixed = np.concatenate([draw.permutation(rows[~is_grouped]), ordered])
        for at in draw.permutation(len(mixed) // size):
            yield mixed[at * size : (at + 1) * size]

    def not_negatives(self, rows: Ids, *, questions: bool = False) -> NDArray[np.bool_]:
        """Which functions of a batch share the name (`questions`: or the question), [n, n], false at i, i."""
        name, question = self.name[rows], np.asarray(self.question[rows])
        same: NDArray[np.bool_] = (name[:, None] == name) & (name >= 0)[:, None]
        if questions:
            same |= question[:, None] == question
        np.fill_diagonal(same, False)
        return same

    @classmethod
    def load(cls, folder: Path) -> SparsePairs:
        """What `write_rows` wrote, memory-mapped."""
        columns = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in COLUMNS}
        stems = Vocabulary.of(json.loads((folder / "stems.json").read_bytes()))
        sparse = {name: _SparseWriter.load(folder, name, len(stems)) for name in SPARSE}
        return cls(stems, **sparse, **columns, stats=ReadStats.load(folder))


def write_rows(rows: Iterable[Row], folder: Path, stats: ReadStats) -> SparsePairs:
    """Write pairs into `folder`, `reading.json` last. Raises BadInput where there are none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    times, stems, questions = array("d"), _StemNumbers(), QuestionNumbers()
    with ExitStack() as stack:
        texts = {name: stack.enter_context(TextWriter(folder, f"{name}.read")) for name in ("query", *READ)}
        for row in rows:
            texts["query"].add(sorted({stems(word) for word in row.query}))
            for field in READ:
                texts[field].add([stems(word) for word in row.fields.get(field, ())])
            times.append(row.weight)
            questions.add(*row.keys)
    if not times:
        raise stats.empty("no pair has words on both sides; give other pairs")
    question = questions.numbers()
    stats.rows, stats.questions = len(times), int(question.max()) + 1
    vocabulary, places = stems.vocabulary()
    name, documented, idf = _write_impacts(folder, places)
    columns: tuple[NDArray[Any], ...] = (name, documented, np.frombuffer(times), question, idf)
    for column, values in zip(COLUMNS, columns, strict=True):
        np.save(folder / f"{column}.npy", values)
    (folder / "stems.json").write_text(json.dumps(list(vocabulary)), encoding="utf-8")
    stats.save(folder)
    for path in folder.glob("*.read.*"):
        path.unlink()
    return SparsePairs.load(folder)


def read_pairs(folder: Path, sources: Sources, track: Track = silent) -> SparsePairs:
    """The pairs of a run, read once."""
    if (folder / STATS).is_file():
        return SparsePairs.load(folder)
    stats = ReadStats()
    return write_rows(read_rows(sources, stats, track), folder, stats)


def _write_impacts(folder: Path, places: Ids) -> tuple[Ids, NDArray[np.bool_], NDArray[np.float64]]:
    """Write the sparse rows; returns names, documented flags and idf.

    Two passes, as impacts need the mean length of all functions.
    """
    df, whole, rest, n = np.zeros(len(places), np.int64), 0.0, 0.0, 0
    for counts in _counts(folder, places):
        each, bare = _with_and_without_name(counts)
        df += np.bincount(each.indices, minlength=len(places))
        whole, rest, n = whole + lengths(each).sum(), rest + lengths(bare).sum(), n + each.shape[0]
    numbers: dict[bytes, int] = {}
    names, documented = [], []
    with ExitStack() as stack:
        sparse = {name: stack.enter_context(_SparseWriter(folder, name)) for name in SPARSE}
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
        counts = {}
        for name, text in texts.items():
            ends = np.asarray(text.offsets[start : min(start + CHUNK, len(text)) + 1])
            ids = places[np.asarray(text.ids[ends[0] : ends[-1]])]
            data = np.ones(len(ids), np.float32)
            counts[name] = csr_matrix((data, ids, ends - ends[0]), (len(ends) - 1, len(places)))
            counts[name].sum_duplicates()
        yield counts


def _with_and_without_name(counts: dict[str, Any]) -> tuple[Any, Any]:
    fields: Any = {field: each for field, each in counts.items() if field != "query"}
    return weighted_counts(fields), weighted_counts({f: each for f, each in fields.items() if f != "name"})


def _names(counts: Any, numbers: dict[bytes, int]) -> Ids:
    names = np.full(counts.shape[0], -1, np.int64)
    for row, (start, end) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        if end - start >= MIN_NAME:
            names[row] = numbers.setdefault(np.sort(counts.indices[start:end]).tobytes(), len(numbers))
    return names


class _StemNumbers:
    """Numbers for the stems of words, in order of appearance."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}

    def __call__(self, word: str) -> int:
        if (number := self._words.get(word)) is None:
            stem = stem_all([word])[0]
            number = self._words[word] = self._stems.setdefault(stem, len(self._stems))
        return number

    def vocabulary(self) -> tuple[Vocabulary, Ids]:
        """The stems in order, and the index of each number among them."""
        stems = Vocabulary.of(self._stems)
        places = np.zeros(len(stems), np.int64)
        for place, stem in enumerate(stems):
            places[self._stems[stem]] = place
        return stems, places


class _SparseWriter:
    """Appends CSR rows to `<name>.data` float32, `.indices` int32, `.indptr` int64."""

    PARTS: Sequence[tuple[str, type]] = (("data", np.float32), ("indices", np.int32), ("indptr", np.int64))

    def __init__(self, folder: Path, name: str) -> None:
        self._files = [(folder / f"{name}.{part}").open("wb") for part, _ in self.PARTS]
        self._end = 0
        self._files[2].write(np.int64(0).tobytes())

    def add(self, rows: Any) -> None:
        """More rows, CSR."""
        arrays = (rows.data, rows.indices, rows.indptr[1:].astype(np.int64) + self._end)
        for file, values, (_, kind) in zip(self._files, arrays, self.PARTS, strict=True):
            file.write(values.astype(kind).tobytes())
        self._end += len(rows.data)

    @classmethod
    def load(cls, folder: Path, name: str, tokens: int) -> Any:
        """All rows, CSR [n, tokens], memory-mapped."""
        from scipy.sparse import csr_matrix

        data, indices, ends = (mapped(folder / f"{name}.{part}", kind) for part, kind in cls.PARTS)
        ends = ends.astype(np.int32) if len(data) < np.iinfo(np.int32).max else ends
        return csr_matrix((data, indices, ends), shape=(len(ends) - 1, tokens), copy=False)

    def __enter__(self) -> _SparseWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._files:
            file.close()
