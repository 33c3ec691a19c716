"""Where pairs come from: JSON lines of questions and code, and the functions of the index itself.

A function teaches by what its doc comment or its name says against the rest of it: no labels are needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.jsonl import Row, parse_row, read_lines
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.search.pairs import normalised
from ncs.text.tokens import field_tokens, tokenize
from ncs.types import NCS_FIELDS, Field
from unif.data import Pair, Reading
from unif.source_words import source_words

if TYPE_CHECKING:
    from ncs.storage.documents import Store
    from ncs.storage.words import WordTable
    from unif.beginning import Reads

CODE: tuple[Field, ...] = tuple(field for field in NCS_FIELDS if field != "doc")
BODY: tuple[Field, ...] = tuple(field for field in CODE if field != "name")
LEAST_DOC, LEAST_NAME, LEAST_BODY = 3, 2, 2
"""Words that a comment, a name and the rest need to be a pair."""
BLOCK = 1_000
"""Documents that are taken from the store at once."""
Code = Callable[[str, str], list[str]]
"""(code, language) -> its words."""


def pairs_of_file(
    path: Path,
    reading: Reading,
    *,
    reads: Reads = "fields",
    source: int = 0,
    left_out: frozenset[str] = frozenset(),
    track: Track = silent,
) -> Iterator[Pair]:
    """Pairs of a `.jsonl` or `.jsonl.gz` file; lines that are none are counted in `reading` and passed over.

    A line has query and code (and question_id, split), or is one of CodeSearchNet's, with docstring and code (and repo,
    partition). left_out: normalised questions that must not be learnt from; nor are lines whose split is `test`.
    Raises BadInput for a file that cannot be read.
    """
    for line in lines_of_file(path, reading, left_out, track):
        said = normalised(line.query)
        if reads == "source":
            words = source_words(line.code, line.language)
        else:
            words = code_words(line.code, line.language, doc=not line.published)
        yield Pair(tokenize(line.query), words, [said, *question_id(path, line.row)], source, line.repository)


@dataclass(frozen=True, slots=True)
class Line:
    """What a line asks and answers; published: whether it is one of CodeSearchNet's, whose code has its question."""

    row: Row
    query: str
    code: str
    language: str
    published: bool

    @property
    def repository(self) -> str:
        """Empty where it is not known."""
        return str(self.row.values.get("repo", "") or "")


def lines_of_file(path: Path, reading: Reading, left_out: frozenset[str], track: Track) -> Iterator[Line]:
    """The lines that are pairs; those that are none, or must not be learnt from, are counted and passed over."""
    for number, text in enumerate(track(read_lines(path), path.name, unit="pairs"), 1):
        if not text.strip():
            continue
        try:
            row = parse_row(text, f"{path}:{number}")
            published = "docstring" in row.values and "query" not in row.values
            query = row.text("docstring" if published else "query")
            line = Line(row, query, row.text("code"), row.text("language", ""), published)
        except BadInput as error:
            reading.note(error)
            continue
        if normalised(query) in left_out or "test" in (row.values.get("split"), row.values.get("partition")):
            reading.left_out += 1
            continue
        yield line


def question_id(path: Path, row: Row) -> list[str]:
    """Numbers of Stack Overflow are the same in every file; other ids are a file's own."""
    id = row.values.get("question_id")
    if isinstance(id, int):
        return [f"\n{id}"]
    return [f"\n{id}" if id.isdecimal() else f"\n{path.name}\n{id}"] if isinstance(id, str) and id else []


def code_words(code: str, language: str, *, doc: bool = True) -> list[str]:
    """The words that NCS reads of a program of any shape; doc: those of its doc comment too."""
    words = read_program(code, language, id="").words
    return [word for field in (NCS_FIELDS if doc else CODE) for word in field_tokens(field, words.get(field, ()))]


def own_pairs(words: WordTable, store: Store, *, source: int = 0, track: Track = silent) -> Iterator[Pair]:
    """The functions of an index: what the doc comment says against the rest, what the name says against the body.

    Both pairs of a function are one question.
    """
    spelled = list(words.vocabulary)
    for row, repository in enumerate(track(_repositories(store), "own pairs", total=len(words), unit="functions")):
        doc, name = ([spelled[id] for id in words.ids_of(row, field)] for field in ("doc", "name"))
        body = [spelled[id] for field in BODY for id in words.ids_of(row, field)]
        if len(body) < LEAST_BODY:
            continue
        for said, code, least in ((doc, [*name, *body], LEAST_DOC), (name, body, LEAST_NAME)):
            if len(said) >= least:
                yield Pair(said, code, [f"\n\n{row}", _key(said)], source, repository, row)


def own_sources(store: Store, *, source: int = 0, track: Track = silent) -> Iterator[Pair]:
    """The same for encoders that read code in its order: the doc comment against the source, which has the name."""
    starts = range(0, len(store), BLOCK)
    for start in track(starts, "own pairs", total=len(starts), unit="parts"):
        rows = range(start, min(start + BLOCK, len(store)))
        for row, document in zip(rows, store.documents(rows), strict=True):
            doc = field_tokens("doc", document.words.get("doc", ()))
            if len(doc) >= LEAST_DOC:
                code = source_words(document.code, document.language)
                yield Pair(doc, code, [f"\n\n{row}", _key(doc)], source, document.repository, row)


def functions(words: WordTable, store: Store, reads: Reads, fields: Sequence[Field] = CODE) -> Iterator[list[str]]:
    """The words of every function of an index, as a code side reads them; by default without the doc comment."""
    if reads == "source":
        for start in range(0, len(store), BLOCK):
            for document in store.documents(range(start, min(start + BLOCK, len(store)))):
                yield source_words(document.code, document.language)
        return
    spelled = list(words.vocabulary)
    for row in range(len(words)):
        yield [spelled[id] for field in fields for id in words.ids_of(row, field)]


def _repositories(store: Store) -> Iterator[str]:
    for start in range(0, len(store), BLOCK):
        for location in store.locations(range(start, min(start + BLOCK, len(store)))):
            yield location.repository


def _key(words: list[str]) -> str:
    return "\n\n\n" + json.dumps(words)
