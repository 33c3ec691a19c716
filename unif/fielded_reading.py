"""What a head that translates reads of files of pairs: words of the question, words of the function field by field.

A question is the first sentence of what a file has there, without grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpora.program import read_program
from ncs.progress import Track
from ncs.search.pairs import normalised
from ncs.text.stopwords import content_words
from ncs.text.tokens import field_tokens, tokenize
from ncs.types import Field
from unif.data import Reading
from unif.impacts import READ
from unif.reading import lines_of_file, question_id

if TYPE_CHECKING:
    from unif.sources import PairFile

LONGEST_QUERY, LONGEST_FIELD = 25, 200
"""Words that are read."""
LEAST_QUERY = 2
"""Words that a question needs."""
_END = re.compile(r"(?<=[.!?])\s|\n\s*\n|:param|Args:|@param|>>>")
SHORT = 12
"""Letters that are no sentence yet."""
Fields = Mapping[Field, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """The question's words, the function's, how often an epoch draws it; keys: pairs that share one ask the same."""

    asked: list[str]
    fields: Fields
    weight: float = 1.0
    keys: Sequence[str] = ()


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
        for line in lines_of_file(file.path, reading, left_out, track):
            words = read_program(line.code, line.language, id="").words
            asked = content_words(tokenize(first_sentence(line.query)))[:LONGEST_QUERY]
            fields = {f: field_tokens(f, words[f])[:LONGEST_FIELD] for f in READ if f in words}
            if line.published:
                fields.pop("doc", None)
            if len(set(asked)) >= LEAST_QUERY and fields:
                yield Row(asked, fields, file.weight, [normalised(line.query), *question_id(file.path, line.row)])
            else:
                reading.wordless += 1
