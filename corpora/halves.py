"""Code-to-code search: functions cut in two, the first half a query and the second its answer.

As CoIR's CodeSearchNet-CCR (Li et al. 2024, section 3.3), from any source trees.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from corpora.corpus import Corpus
from corpora.program import read_program
from ncs.errors import BadInput, SourceError
from ncs.extract import LANGUAGES, extract, language_of
from ncs.sources import walk
from ncs.storage.file_roles import OUTLINES
from ncs.types import Document, Query

LINES = range(8, 81)
"""Lines of the functions that are cut."""


def halves(
    sources: Sequence[Path], language: str, *, documents: int = 2_000, queries: int = 300, seed: int = 0
) -> Corpus:
    """A sample of the distinct functions of a language in these sources, with queries for the first of them.

    Raises BadInput for an unknown language and for sources without such functions.
    """
    if language not in LANGUAGES:
        raise BadInput(f"no language called {language!r}; choose from {', '.join(sorted(LANGUAGES))}")
    functions = {code: id for id, code in _functions(sources, language)}
    if not functions:
        raise BadInput(
            f"no function of {LINES[0]} to {LINES[-1]} lines of {language} in {', '.join(map(str, sources))}"
        )
    every = sorted((id, code) for code, id in functions.items())
    sampled = random.Random(seed).sample(every, min(documents, len(functions)))  # noqa: S311
    split_functions = [(id, *_halve(code)) for id, code in sampled]

    def source() -> Iterable[Document]:
        return (read_program(second, language, id=id) for id, _, second in split_functions)

    questions = tuple(Query(id, first) for id, first, _ in split_functions[:queries])
    return Corpus(f"halves-{language}", questions, {query.id: {query.id: 1} for query in questions}, source)


def _functions(sources: Sequence[Path], language: str) -> Iterator[tuple[str, str]]:
    for file in walk(sources, readable=lambda path: language_of(path) == language):
        try:
            documents = list(extract(file.data, language))
        except SourceError:
            continue
        for document in documents:
            if document.kind not in OUTLINES and document.code.count("\n") + 1 in LINES:
                yield f"{file.repository}/{file.path}:{document.start_line}", document.code


def _halve(code: str) -> tuple[str, str]:
    """The lines in two halves, the second the longer.

    >>> _halve("a\\nb\\nc")
    ('a', 'b\\nc')
    """
    lines = code.split("\n")
    return "\n".join(lines[: len(lines) // 2]), "\n".join(lines[len(lines) // 2 :])
