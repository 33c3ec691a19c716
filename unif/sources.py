"""The sources of training pairs: JSON lines of queries and code, and the functions of an index.

A function of an index is a pair without labels: its doc comment or name, and the rest of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from corpora.jsonl import Row, parse_row, read_lines
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.learn.embeddings import Embeddings
from ncs.learn.tokenization import source_words
from ncs.progress import Track, silent
from ncs.search.pairs import normalized, read_questions
from ncs.text.tokens import field_tokens, tokenize
from ncs.text.vocabulary import Vocabulary
from ncs.types import NCS_FIELDS, Field
from unif.data import Pair, ReadStats

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.storage.documents import Documents
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

Reads = Literal["fields", "source"]
"""Input of the code tower: words of a function's NCS_FIELDS, or the sub-tokens of its source in order."""
CODE: tuple[Field, ...] = tuple(field for field in NCS_FIELDS if field != "doc")
BODY: tuple[Field, ...] = tuple(field for field in CODE if field != "name")
MIN_DOC, MIN_NAME, MIN_BODY = 3, 2, 2
"""Least words of a comment, a name and the rest."""
BLOCK = 1_000
"""Documents read at once."""
OWN = "own"
"""What a stage calls the index's own functions."""


@dataclass(frozen=True, slots=True)
class IndexSource:
    """The words of an index that have a vector, these vectors, and its functions."""

    words: WordTable
    documents: Documents
    vocabulary: Vocabulary
    vectors: Matrix

    @classmethod
    def of(cls, index: Index) -> IndexSource:
        """Raises BadInput for an index whose words have no vectors, or that has been updated since its build."""
        words, vectors = index.word_table(), np.array(Embeddings.load(index.snapshot.statistics).vectors)
        has_vector = np.asarray(vectors.any(axis=1))
        if not has_vector.any():
            raise BadInput(f"no word of the index {index.folder} has a vector; build it from more code")
        vocabulary = Vocabulary.of(word for at, word in enumerate(words.vocabulary) if has_vector[at])
        return cls(words, index.documents, vocabulary, vectors[has_vector])

    def digest(self) -> str:
        """Of the words and their vectors."""
        state = hashlib.blake2b("\n".join(self.vocabulary).encode(), digest_size=16)
        state.update(self.vectors.tobytes())
        return state.hexdigest()


@dataclass(frozen=True, slots=True)
class PairFile:
    """A file of pairs, and how often an epoch draws each of its questions."""

    path: Path
    weight: float = 1.0

    @classmethod
    def parse(cls, text: str | Path) -> PairFile:
        """FILE or FILE:WEIGHT; raises BadInput for a weight below 0.

        >>> PairFile.parse("so.jsonl.gz:2.5").weight, PairFile.parse("a:b.jsonl").weight
        (2.5, 1.0)
        """
        head, colon, tail = str(text).rpartition(":")
        try:
            weight = float(tail) if colon else 1.0
        except ValueError:
            head, weight = "", 1.0
        if not 0 <= weight < float("inf"):
            raise BadInput(f"the weight of {head} is {tail}; give a number from 0")
        return cls(Path(head or text), weight)

    @property
    def name(self) -> str:
        """What a stage calls it: the file's name up to its first dot."""
        return self.path.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Sources:
    """Files of JSON lines and the index's own functions.

    own: their weight, 0 for none. leave_out: a file of JSON lines; pairs that ask one of its questions are left out.
    answers: files of questions with answers, which judge the default ranker's lists (unif.judged_lists).
    """

    files: Sequence[PairFile] = ()
    own: float = 0.0
    leave_out: Path | None = None
    answers: Sequence[Path] = ()

    def weights(self, selected: Sequence[str] = ()) -> list[float]:
        """The weight of every source, 0 if not selected (none selected: all); a pair's `source` indexes this list.

        Raises BadInput for an unknown name.
        """
        weights_by_name = [(file.name, file.weight) for file in self.files] + (
            [(OWN, float(self.own))] if self.own else []
        )
        names = [name for name, _ in weights_by_name]
        if unknown := sorted(set(selected) - set(names)):
            raise BadInput(f"a stage names {unknown[0]!r}; the sources are {', '.join(names)}")
        weights = [weight if not selected or name in selected else 0.0 for name, weight in weights_by_name]
        if not any(weights):
            raise BadInput("every source of a stage has the weight 0; give one of them another")
        return weights

    @property
    def excluded(self) -> frozenset[str]:
        """The questions to leave out, normalized."""
        return frozenset(map(normalized, read_questions(self.leave_out))) if self.leave_out else frozenset()

    def pairs(self, index: IndexSource, reads: Reads, stats: ReadStats, track: Track = silent) -> Iterator[Pair]:
        """All pairs, files first."""
        excluded = self.excluded
        for source, file in enumerate(self.files):
            yield from pairs_of_file(file.path, stats, reads, source, excluded, track)
        if self.own:
            own = own_sources if reads == "source" else own_pairs
            yield from own(index, len(self.files), track)

    def about(self) -> dict[str, object]:
        """For the record."""
        files = {str(file.path): file.weight for file in self.files}
        leave_out = str(self.leave_out) if self.leave_out else None
        about: dict[str, object] = {"pairs": files, "own": float(self.own), "leave_out": leave_out}
        return about | ({"answers": list(map(str, self.answers))} if self.answers else {})


@dataclass(frozen=True, slots=True)
class Line:
    """A pair of a file. published: whether it is a line of CodeSearchNet's, whose code contains its question."""

    row: Row
    query: str
    code: str
    language: str
    published: bool

    @property
    def repository(self) -> str:
        """Empty where it is not known."""
        return str(self.row.values.get("repo", "") or "")

    def keys(self, path: Path) -> list[str]:
        """Keys of its question: its normalized text and its id; Stack Overflow's ids are global, others per file."""
        id = self.row.values.get("question_id")
        if isinstance(id, int) or (isinstance(id, str) and id.isdecimal()):
            return [normalized(self.query), f"\n{id}"]
        return [normalized(self.query), *([f"\n{path.name}\n{id}"] if isinstance(id, str) and id else [])]


def lines_of_file(path: Path, stats: ReadStats, left_out: frozenset[str], track: Track) -> Iterator[Line]:
    """The pairs of a `.jsonl` or `.jsonl.gz` file; bad and excluded lines are counted and skipped.

    A line has query and code (and question_id, split), or is one of CodeSearchNet's, with docstring and code (and repo,
    partition); those of the split `test` are left out. left_out: normalized questions.
    Raises BadInput for a file that cannot be read.
    """
    for number, text in enumerate(track(read_lines(path), path.name, unit="pairs"), 1):
        if not text.strip():
            continue
        try:
            row = parse_row(text, f"{path}:{number}")
            published = "docstring" in row.values and "query" not in row.values
            query = row.text("docstring" if published else "query")
            line = Line(row, query, row.text("code"), row.text("language", ""), published)
        except BadInput as error:
            stats.note(error)
            continue
        if normalized(query) in left_out or "test" in (row.values.get("split"), row.values.get("partition")):
            stats.left_out += 1
        else:
            yield line


def pairs_of_file(
    path: Path,
    stats: ReadStats,
    reads: Reads = "fields",
    source: int = 0,
    left_out: frozenset[str] = frozenset(),
    track: Track = silent,
) -> Iterator[Pair]:
    """The pairs of `lines_of_file` as words; source: the number of the file."""
    for line in lines_of_file(path, stats, left_out, track):
        if reads == "source":
            words = source_words(line.code, line.language)
        else:
            words = code_words(line.code, line.language, doc=not line.published)
        yield Pair(tokenize(line.query), words, line.keys(path), source, line.repository)


def code_words(code: str, language: str, *, doc: bool = True) -> list[str]:
    """The words that NCS reads of a program of any shape; doc: those of its doc comment too."""
    words = read_program(code, language, id="").words
    return [word for field in (NCS_FIELDS if doc else CODE) for word in field_tokens(field, words.get(field, ()))]


def own_pairs(index: IndexSource, source: int = 0, track: Track = silent) -> Iterator[Pair]:
    """Pairs of each function: its doc comment with the rest, and its name with the body, as one question."""
    words, vocabulary = index.words, list(index.words.vocabulary)
    repositories = track(_repositories(index.documents), "own pairs", total=len(words), unit="functions")
    for row, repository in enumerate(repositories):
        doc, name = ([vocabulary[id] for id in words.ids_of(row, field)] for field in ("doc", "name"))
        body = [vocabulary[id] for field in BODY for id in words.ids_of(row, field)]
        if len(body) < MIN_BODY:
            continue
        for query, code, least in ((doc, [*name, *body], MIN_DOC), (name, body, MIN_NAME)):
            if len(query) >= least:
                yield Pair(query, code, [f"\n\n{row}", _key(query)], source, repository)


def own_sources(index: IndexSource, source: int = 0, track: Track = silent) -> Iterator[Pair]:
    """The same for encoders of source code: the doc comment with the source, which contains the name."""
    n = len(index.documents)
    for start in track(range(0, n, BLOCK), "own pairs", total=-(-n // BLOCK), unit="parts"):
        rows = range(start, min(start + BLOCK, n))
        for row, document in zip(rows, index.documents.documents(rows), strict=True):
            doc = field_tokens("doc", document.words.get("doc", ()))
            if len(doc) >= MIN_DOC:
                code = source_words(document.code, document.language)
                yield Pair(doc, code, [f"\n\n{row}", _key(doc)], source, document.repository)


def _repositories(documents: Documents) -> Iterator[str]:
    for start in range(0, len(documents), BLOCK):
        for location in documents.locations(range(start, min(start + BLOCK, len(documents)))):
            yield location.repository


def _key(words: list[str]) -> str:
    return "\n\n\n" + json.dumps(words)
