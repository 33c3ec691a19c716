"""Pairs for a head that translates: stems of questions, and what words weigh in functions, field by field.

All pairs lie in memory as sparse rows, half a kilobyte each. A question is the first sentence of what a file has
there, without grammar. A function that comes with its own doc comment, as a namesake does (corpora.codesearchnet), is
kept without its name too: else the name alone would tell it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.jsonl import parse_row, read_lines
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.lexical import stem_all
from ncs.progress import Track, silent
from ncs.rankers.pairs import normalised
from ncs.stopwords import content_words
from ncs.tokens import field_tokens, tokenize
from ncs.types import Field
from ncs.vocabulary import Vocabulary
from unif.data import Reading
from unif.impacts import READ, lengths, saturated, weighted_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unif.sources import PairFile

LONGEST_QUERY, LONGEST_FIELD = 25, 200
"""Words that are read."""
LEAST_QUERY, LEAST_NAME = 2, 2
"""Words that a question needs, and a name that says what a function does."""
_END = re.compile(r"(?<=[.!?])\s|\n\s*\n|:param|Args:|@param|>>>")
SHORT = 12
"""Letters that are no sentence yet."""
Fields = Mapping[Field, Sequence[str]]
Row = tuple[list[str], Fields, float]
"""The question's words, the function's, and how often an epoch draws it."""


def first_sentence(text: str) -> str:
    """What a comment says first, all of it where that is too short.

    >>> first_sentence("Return the size of a file. Raises OSError.\\n\\n:param path: of it")
    'Return the size of a file.'
    """
    first = _END.split(text.strip(), maxsplit=1)[0]
    return first if len(first) > SHORT else text


def read_rows(files: Iterable[PairFile], left_out: frozenset[str], reading: Reading, track: Track) -> Iterator[Row]:
    """The pairs of JSON lines, as `unif.reading.pairs_of_file` reads them; what is none is counted and passed over."""
    for file in files:
        for number, line in enumerate(track(read_lines(file.path), file.path.name, unit="pairs"), 1):
            if not line.strip():
                continue
            try:
                row = parse_row(line, f"{file.path}:{number}")
                published = "docstring" in row.values and "query" not in row.values
                said = row.text("docstring" if published else "query")
                words = read_program(row.text("code"), row.text("language", ""), id="").words
            except BadInput as error:
                reading.note(error)
                continue
            if normalised(said) in left_out or "test" in (row.values.get("split"), row.values.get("partition")):
                reading.left_out += 1
                continue
            asked = content_words(tokenize(first_sentence(said)))[:LONGEST_QUERY]
            fields = {f: field_tokens(f, words[f])[:LONGEST_FIELD] for f in READ if f in words}
            if published:
                fields.pop("doc", None)
            if len(set(asked)) >= LEAST_QUERY and fields:
                yield asked, fields, file.weight
            else:
                reading.wordless += 1


class _Column:
    """Stem ids of one field of all rows."""

    def __init__(self) -> None:
        self.ids, self.ends = array("i"), array("q", [0])

    def add(self, ids: Iterable[int]) -> None:
        self.ids.extend(ids)
        self.ends.append(len(self.ids))

    def counts(self, places: NDArray[np.int64], tokens: int) -> Any:
        from scipy.sparse import csr_matrix

        ids, ends = places[np.frombuffer(self.ids, np.intc)], np.frombuffer(self.ends, np.int64)
        found = csr_matrix((np.ones(len(ids), np.float32), ids, ends), shape=(len(ends) - 1, tokens))
        found.sum_duplicates()
        return found


@dataclass(frozen=True, slots=True)
class Fielded:
    """Sparse rows of all pairs, CSR [n, V]: query of ones; code and nameless of impacts. name: a number for each name
    of LEAST_NAME words, -1 for others, [n]; two of one name do not stand against each other. documented: whether the
    function has its doc comment; times: how often an epoch draws each, [n]. idf: of the functions, [V]."""

    stems: Vocabulary
    query: Any
    code: Any
    nameless: Any
    name: NDArray[np.int64]
    documented: NDArray[np.bool_]
    times: NDArray[np.float64]
    idf: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Fielded:
        """Raises BadInput where there are none."""
        columns = {name: _Column() for name in ("query", *READ)}
        words, times = _Numbers(), array("d")
        for asked, fields, weight in rows:
            columns["query"].add(sorted({words(word) for word in asked}))
            for field in READ:
                columns[field].add(map(words, fields.get(field, ())))
            times.append(weight)
        if not times:
            raise BadInput("no pair has words on both sides; give other pairs")
        stems, places = words.vocabulary()
        counts = {name: column.counts(places, len(stems)) for name, column in columns.items()}
        query = counts.pop("query")
        query.data[:] = 1
        return _weighed(stems, query, counts, np.array(times))


def _weighed(stems: Vocabulary, query: Any, counts: dict[str, Any], times: NDArray[np.float64]) -> Fielded:
    whole = weighted_counts(counts)  # type: ignore[arg-type]
    rest = weighted_counts({field: each for field, each in counts.items() if field != "name"})  # type: ignore[misc]
    df = np.bincount(whole.indices, minlength=len(stems))
    idf = np.log1p((len(times) - df + 0.5) / (df + 0.5))
    code, nameless = (saturated(each, float(lengths(each).mean())) for each in (whole, rest))
    documented = np.diff(counts["doc"].indptr) > 0
    return Fielded(stems, query, code, nameless, _names(counts["name"]), documented, times, idf)


def _names(counts: Any) -> NDArray[np.int64]:
    numbers: dict[tuple[int, ...], int] = {}
    found = np.full(counts.shape[0], -1, np.int64)
    for row, (start, end) in enumerate(zip(counts.indptr[:-1], counts.indptr[1:], strict=True)):
        if end - start >= LEAST_NAME:
            found[row] = numbers.setdefault(tuple(sorted(counts.indices[start:end].tolist())), len(numbers))
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

    def vocabulary(self) -> tuple[Vocabulary, NDArray[np.int64]]:
        """All stems, and where each number stands among them."""
        stems = Vocabulary.of(self._stems)
        places = np.zeros(len(stems), np.int64)
        for place, stem in enumerate(stems):
            places[self._stems[stem]] = place
        return stems, places


def read_fielded(
    files: Iterable[PairFile], left_out: frozenset[str], reading: Reading, *, track: Track = silent
) -> Fielded:
    """All pairs of these files."""
    found = Fielded.of(read_rows(files, left_out, reading, track))
    reading.rows = len(found)
    return found


def dropped(rows: Any, share: float, draw: np.random.Generator) -> Any:
    """CSR with a share of its entries left out at random."""
    from scipy.sparse import csr_matrix

    kept = draw.random(rows.nnz) >= share
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[kept]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows.shape[0]))])
    return csr_matrix((rows.data[kept].astype(np.float32), rows.indices[kept], ends), rows.shape)
