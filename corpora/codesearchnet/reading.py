"""A corpus read back, made here or published: documents for an index, pairs to train on, questions to evaluate with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from corpora.codesearchnet.documentation import first_paragraph
from corpora.codesearchnet.functions import CodeFunction, corpus_files, corpus_languages, read_functions
from corpora.corpus import Corpus
from corpora.pairs import Pair
from ncs.errors import BadInput
from ncs.types import Document, Query

SOURCE = "CodeSearchNet"


def functions(
    folder: Path, languages: Sequence[str] = (), partition: str = "", *, all_of_them: bool = False
) -> Iterator[CodeFunction]:
    """The pairs of a corpus, each URL once; all_of_them: the functions without documentation too.

    Raises BadInput where a language, or its partition, is not there.
    """
    seen: set[bytes] = set()
    for language in languages or corpus_languages(folder) or [""]:
        for function in read_functions(corpus_files(folder, language, partition, undocumented=all_of_them)):
            key = _key(function.url)
            if key not in seen and partition in ("", function.partition):
                seen.add(key)
                yield function


def _key(url: str) -> bytes:
    """Sixteen bytes of a URL: a set of these is a third of one of URLs."""
    from hashlib import blake2b

    return blake2b(url.encode("utf-8", "replace"), digest_size=16).digest()


def question(function: CodeFunction) -> str:
    """What a pair asks: the first paragraph of its documentation, also where the files hold all of it."""
    return first_paragraph(function.docstring)


def pairs(folder: Path, languages: Sequence[str] = (), partition: str = "") -> Iterator[Pair]:
    """(first paragraph, code without comments) of every pair; `python -m unif train --pairs` reads them."""
    for function in functions(folder, languages, partition):
        asked = question(function)
        if asked and function.code.strip():
            yield Pair(
                query=asked,
                code=function.code,
                language=function.language,
                source=SOURCE,
                id=function.url,
                split=function.partition,
                license=function.license,
            )


def documents(folder: Path, languages: Sequence[str] = (), partition: str = "") -> Iterator[Document]:
    """All functions, with and without documentation, as documents whose ids are URLs."""
    for function in functions(folder, languages, partition, all_of_them=not partition):
        yield function.document()


def corpora_of(folder: Path, partition: str = "test") -> list[Corpus]:
    """A corpus a language: each pair's documentation asks for its function, which is searched without it (section 4.3:
    rank it among 999 distractors). Raises BadInput where no language has pairs in that partition."""
    found = [_corpus(folder, language, partition) for language in corpus_languages(folder)]
    asked = [corpus for corpus in found if corpus is not None]
    if not asked:
        raise BadInput(f"{folder} has no pairs in the partition {partition!r}; name a corpus that has some")
    return asked


def _corpus(folder: Path, language: str, partition: str) -> Corpus | None:
    try:
        corpus_files(folder, language, partition)
    except BadInput:
        return None

    def asked() -> Iterator[CodeFunction]:
        return (function for function in functions(folder, [language], partition) if question(function))

    def source() -> Iterator[Document]:
        return (function.document(documented=False) for function in asked())

    queries = tuple(Query(function.url, question(function)) for function in asked())
    qrels = {query.id: {query.id: 1} for query in queries}
    return Corpus(f"codesearchnet-{language}-{partition}", queries, qrels, source) if queries else None
