"""Pairs for a head with a translation, as sparse rows: stems of questions, impacts of words in functions.

A question is the first sentence of a query, without stop words. A function with its own doc comment, as a namesake
(corpora.codesearchnet), also has a row without its name, which alone would give the answer away.
"""

from __future__ import annotations

import json
import re
import shutil
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz, save_npz, vstack

from corpora.program import read_program
from ncs.errors import BadInput
from ncs.learn.context_encoder import MIN_QUERY
from ncs.learn.translation import READ, lengths, saturated, weighted_counts
from ncs.progress import Track, silent
from ncs.text.stems import stem
from ncs.text.tokens import content_words, field_tokens, tokenize
from ncs.text.vocabulary import Vocabulary
from ncs.types import Field
from unif.data import MIN_NAME, STATS, QuestionNumbers, ReadStats, Texts, TextsBuilder, hold_out, lines_of_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.data import Ids, Sources

LONGEST_QUERY, LONGEST_FIELD = 25, 200
"""Words that are read."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n\s*\n|:param|Args:|@param|>>>")
MIN_SENTENCE = 12
"""Letters."""
WORDINGS = "wordings.npz"
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
    """The pairs of `unif.data.lines_of_file`, of all files; rows without words are counted and skipped."""
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
        valid = hold_out(self.question, share, seed)
        names = np.unique(self.name[valid])
        train = np.flatnonzero(~valid & ~np.isin(self.name, names[names >= 0]))
        if not len(train):
            raise BadInput("nothing is left to train on beside the questions to validate on; give more pairs")
        return train, np.flatnonzero(valid)

    def code_of(self, rows: Ids, draw: np.random.Generator) -> Any:
        """Impacts of these rows, without the name for a random half of the documented functions."""
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
        for at in draw.permutation(max(len(mixed) // size, min(1, len(mixed)))):  # fewer than a batch are one
            yield mixed[at * size : (at + 1) * size]

    def not_negatives(self, rows: Ids, *, questions: bool = False) -> NDArray[np.bool_]:
        """Masks functions of a batch that share the name (`questions`: or the question), [n, n], false at i, i."""
        return alike(self.name[rows], self.question[rows] if questions else None)

    def save(self, folder: Path) -> None:
        """Write the arrays, `reading.json` last."""
        for name in SPARSE:
            save_npz(folder / f"{name}.npz", getattr(self, name), compressed=False)
        for name in COLUMNS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        (folder / "stems.json").write_text(json.dumps(list(self.stems)), encoding="utf-8")
        self.stats.save(folder)

    @classmethod
    def load(cls, folder: Path) -> SparsePairs:
        """Load what `save` wrote."""
        sparse = {name: load_npz(folder / f"{name}.npz") for name in SPARSE}
        columns = {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in COLUMNS}
        stems = Vocabulary.of(json.loads((folder / "stems.json").read_bytes()))
        return cls(stems, **sparse, **columns, stats=ReadStats.load(folder))


def alike(name: Ids, question: NDArray[np.integer[Any]] | None = None) -> NDArray[np.bool_]:
    """Which rows share the name, or the question if given, [n, n], false at i, i; name: -1 for none."""
    same: NDArray[np.bool_] = (name[:, None] == name) & (name >= 0)[:, None]
    if question is not None:
        same |= question[:, None] == question
    np.fill_diagonal(same, False)
    return same


@dataclass(frozen=True, slots=True)
class Wordings:
    """The stems of all pairs in their order: of the queries and of the functions, field by field."""

    query: Texts
    fields: Mapping[Field, Texts]

    def save(self, folder: Path) -> None:
        """Write one file."""
        texts = {"query": self.query, **{f"field.{field}": each for field, each in self.fields.items()}}
        arrays: dict[str, Any] = {f"{name}.ids": each.ids for name, each in texts.items()}
        arrays |= {f"{name}.offsets": each.offsets for name, each in texts.items()}
        np.savez(folder / WORDINGS, **arrays)

    @classmethod
    def load(cls, folder: Path) -> Wordings:
        """Load what `save` wrote."""
        with np.load(folder / WORDINGS, allow_pickle=False) as file:
            query, *fields = (
                Texts(file[f"{name}.ids"], file[f"{name}.offsets"])
                for name in ("query", *(f"field.{field}" for field in READ))
            )
        return cls(query, dict(zip(READ, fields, strict=True)))


def write_rows(rows: Iterable[Row], folder: Path, stats: ReadStats) -> SparsePairs:
    """Write pairs and their wordings into `folder`. Raises BadInput where there are none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    times, questions = array("d"), QuestionNumbers()
    queries, texts = TextsBuilder(), {field: TextsBuilder() for field in READ}
    stems: dict[str, int] = {}

    @cache
    def number(word: str) -> int:
        return stems.setdefault(stem(word), len(stems))

    for row in rows:
        queries.add(map(number, row.query))
        for field in READ:
            texts[field].add(map(number, row.fields.get(field, ())))
        times.append(row.weight)
        questions.add(*row.keys)
    if not times:
        raise stats.empty("no pair has words on both sides; give other pairs")
    question = questions.numbers()
    n = stats.rows = len(times)
    stats.questions = int(question.max()) + 1
    vocabulary, places = Vocabulary.numbered(stems)
    fields = {field: _renumbered(builder.build(), places) for field, builder in texts.items()}
    wordings = Wordings(_renumbered(queries.build(), places), fields)
    query = _counts(wordings.query, len(places))
    query.data[:] = 1
    counts = {field: _counts(each, len(places)) for field, each in fields.items()}
    whole, bare = weighted_counts(counts), weighted_counts({f: each for f, each in counts.items() if f != "name"})
    df = np.bincount(whole.indices, minlength=len(places))
    pairs = SparsePairs(
        stems=vocabulary,
        query=query,
        code=saturated(whole, lengths(whole).sum() / n),
        nameless=saturated(bare, lengths(bare).sum() / n),
        name=_number_names(counts["name"]),
        documented=np.diff(counts["doc"].indptr) > 0,
        times=np.array(times),
        question=question,
        idf=np.log1p((n - df + 0.5) / (df + 0.5)),
        stats=stats,
    )
    wordings.save(folder)
    pairs.save(folder)
    return pairs


def read_pairs(folder: Path, sources: Sources, track: Track = silent) -> SparsePairs:
    """The pairs of a run, read once."""
    if (folder / STATS).is_file():
        return SparsePairs.load(folder)
    stats = ReadStats()
    return write_rows(read_rows(sources, stats, track), folder, stats)


def _renumbered(texts: Texts, places: NDArray[np.int32]) -> Texts:
    """Texts with the new number of every stem."""
    return Texts(places[texts.ids], texts.offsets)


def _counts(texts: Texts, stems: int) -> Any:
    """The counts of stems in texts, CSR [n, V]."""
    counts = csr_matrix((np.ones(len(texts.ids), np.float32), texts.ids.copy(), texts.offsets), (len(texts), stems))
    counts.sum_duplicates()
    return counts


def _number_names(counts: Any) -> Ids:
    """A number for each name of MIN_NAME words, -1 for others, [n]."""
    numbers: dict[bytes, int] = {}
    names = np.full(counts.shape[0], -1, np.int64)
    for row, (start, end) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        if end - start >= MIN_NAME:
            names[row] = numbers.setdefault(counts.indices[start:end].tobytes(), len(numbers))
    return names
