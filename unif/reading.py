"""Where pairs come from: JSON lines of questions and code, and the functions of the index itself.

A function teaches by what its doc comment or its name says against the rest of it: no labels are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora.jsonl import parse_row, read_lines
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.rankers.pairs import normalised
from ncs.tokens import field_tokens, tokenize
from ncs.types import NCS_FIELDS, Field
from unif.data import Pair, Reading

if TYPE_CHECKING:
    from ncs.vocabulary import Vocabulary, WordTable
    from unif.data import Ids

BODY: tuple[Field, ...] = tuple(field for field in NCS_FIELDS if field not in ("doc", "name"))
LEAST_DOC, LEAST_NAME, LEAST_BODY = 3, 2, 2
"""Words that a comment, a name and the rest need to be a pair."""


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
