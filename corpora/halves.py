"""Functions cut in two, the first half a query and the second its answer: code searched with code.

CoIR's CodeSearchNet-CCR (Li et al. 2024, section 3.3) of any source trees: nothing of an answer is in its question but
what one function has in common with itself.
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
"""Lines of a function that is cut: halves of less say nothing, of more everything."""


def halves(
    sources: Sequence[Path], language: str, *, documents: int = 2_000, queries: int = 300, seed: int = 0
) -> Corpus:
    """So many functions of a language, drawn from all in these sources that differ, and questions about the first.

    Raises BadInput for a language that is not read and for sources without such a function.
    """
    if language not in LANGUAGES:
        raise BadInput(f"no language called {language!r}; there are: {', '.join(sorted(LANGUAGES))}")
    functions = {code: id for id, code in _functions(sources, language)}
    if not functions:
        raise BadInput(
            f"no function of {LINES[0]} to {LINES[-1]} lines of {language} in {', '.join(map(str, sources))}"
        )
    every = sorted((id, code) for code, id in functions.items())
    drawn = random.Random(seed).sample(every, min(documents, len(functions)))  # noqa: S311
    cut = [(id, *_cut(code)) for id, code in drawn]

    def source() -> Iterable[Document]:
        return (read_program(second, language, id=id) for id, _, second in cut)

    questions = tuple(Query(id, first) for id, first, _ in cut[:queries])
    return Corpus(f"halves-{language}", questions, {query.id: {query.id: 1} for query in questions}, source)


def _functions(sources: Sequence[Path], language: str) -> Iterator[tuple[str, str]]:
    for file in walk(sources, wanted=lambda path: language_of(path) == language):
        try:
            documents = list(extract(file.data, language))
        except SourceError:
            continue
        for document in documents:
            if document.kind not in OUTLINES and document.code.count("\n") + 1 in LINES:
                yield f"{file.repository}/{file.path}:{document.start_line}", document.code


def _cut(code: str) -> tuple[str, str]:
    """Its lines in two, the longer half behind.

    >>> _cut("a\\nb\\nc")
    ('a', 'b\\nc')
    """
    lines = code.split("\n")
    return "\n".join(lines[: len(lines) // 2]), "\n".join(lines[len(lines) // 2 :])
