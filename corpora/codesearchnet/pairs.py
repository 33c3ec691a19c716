"""Reading a corpus, made here or published: documents for an index, training pairs, evaluation queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np

from corpora.codesearchnet.filters import first_paragraph
from corpora.codesearchnet.functions import CodeFunction, corpus_files, corpus_languages, read_functions
from corpora.corpus import Corpus
from corpora.jsonl import Row
from corpora.pairs import Pair
from ncs.errors import BadInput
from ncs.search.baselines.enhanced import normalized
from ncs.text.tokens import tokenize
from ncs.types import Document, Query

SOURCE = "CodeSearchNet"
MIN_WORDS, MAX_NAMESAKES = 2, 200
"""Fewest words of a descriptive name, and most functions that may share it."""


def functions(
    folder: Path, languages: Sequence[str] = (), partition: str = "", *, undocumented: bool = False
) -> Iterator[CodeFunction]:
    """The pairs of a corpus, each URL once; undocumented: the functions without documentation too.

    Raises BadInput where one of these languages, or the partition, is not there.
    """
    seen: set[bytes] = set()  # a digest takes a third of a URL's memory
    for language in languages or corpus_languages(folder, partition, undocumented=undocumented) or ["*"]:
        for function in read_functions(corpus_files(folder, language, partition, undocumented=undocumented)):
            key = blake2b(function.url.encode("utf-8", "replace"), digest_size=16).digest()
            if key not in seen and partition in ("", function.partition):
                seen.add(key)
                yield function


def question(function: CodeFunction) -> str:
    """The query of a pair: the first paragraph of its documentation, also where the files hold all of it."""
    return first_paragraph(function.docstring)


def pairs(folder: Path, languages: Sequence[str] = (), partition: str = "") -> Iterator[Pair]:
    """(first paragraph, code without comments) of every pair; `ncs train --pairs` reads them."""
    for function in functions(folder, languages, partition):
        query = question(function)
        if query and function.code.strip():
            yield _pair(query, function.code, function)


def _pair(query: str, code: str, function: CodeFunction) -> Pair:
    about = {"split": function.partition, "license": function.license}
    return Pair(query, code, function.language, SOURCE, function.url, **about)


Name = tuple[str, tuple[str, ...]]


def name_of(function: CodeFunction) -> Name | None:
    """The language and the words of the bare name in alphabetical order; None for a name of fewer than MIN_WORDS."""
    words = sorted(set(tokenize(function.func_name.rpartition(".")[2])))
    return (function.language, tuple(words)) if len(words) >= MIN_WORDS else None


def namesakes(folders: Sequence[Path], languages: Sequence[str] = (), *, seed: int = 0) -> Iterator[Pair]:
    """Pairs of two functions of one name: the documentation of one, and all of the other, with its own documentation.

    Two functions of one name, documented by two people, are a query and an answer in other words, without labels. Each
    function of a shared name is a query once and an answer once, in random order; equal documentation makes no pair.
    Memory holds the functions with shared names. Raises BadInput as `functions`.
    """
    counts = Counter(name_of(function) for folder in folders for function in functions(folder, languages))
    common_names = {name for name, count in counts.items() if name is not None and 1 < count <= MAX_NAMESAKES}
    by_name: defaultdict[Name, dict[str, CodeFunction]] = defaultdict(dict)
    for folder in folders:
        for function in functions(folder, languages):
            if (name := name_of(function)) is not None and name in common_names:
                by_name[name].setdefault(function.url, function)
    draw = np.random.default_rng(seed)
    for name in sorted(by_name):
        group = list(by_name[name].values())
        ring = [group[at] for at in draw.permutation(len(group))]
        for source, answer in pairwise([*ring, ring[0]]):
            query, code = question(source), answer.original_string
            if query and code.strip() and normalized(query) != normalized(question(answer)):
                yield _pair(query, code, answer)


def written_pairs(folder: Path, questions: Iterable[Row]) -> Iterator[Pair]:
    """The pairs of questions written about functions of the corpus, in the form of `evaluation/written`.

    A row has query, repo and relevant, places as PATH::NAME. Of a place's functions, such as overloads, all are pairs.
    """
    wanted: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in questions:
        for place in row.texts("relevant"):
            wanted[row.text("repo"), place].append(row)
    for function in functions(folder, undocumented=True):
        for row in wanted.get((function.repo, f"{function.path}::{function.func_name}"), ()):
            yield Pair(row.text("query"), function.code, function.language, "written", row.text("id"))


def documents(folder: Path, languages: Sequence[str] = (), partition: str = "") -> Iterator[Document]:
    """All functions, with and without documentation, as documents whose ids are URLs."""
    for function in functions(folder, languages, partition, undocumented=not partition):
        yield function.document()


def corpora_of(folder: Path) -> list[Corpus]:
    """One corpus per language: each test pair's documentation is a query for its function, which is indexed without it
    (section 4.3). Raises BadInput where no language has test pairs."""
    corpora = [_corpus(folder, language) for language in corpus_languages(folder)]
    evaluable = [corpus for corpus in corpora if corpus is not None]
    if not evaluable:
        raise BadInput(f"{folder} has no pairs in the partition 'test'; name a corpus that has some")
    return evaluable


def _corpus(folder: Path, language: str) -> Corpus | None:
    try:
        corpus_files(folder, language, "test")
    except BadInput:
        return None

    def documented() -> Iterator[CodeFunction]:
        return (function for function in functions(folder, [language], "test") if question(function))

    def source() -> Iterator[Document]:
        return (function.document(documented=False) for function in documented())

    queries = tuple(Query(function.url, question(function)) for function in documented())
    qrels = {query.id: {query.id: 1} for query in queries}
    return Corpus(f"codesearchnet-{language}-test", queries, qrels, source) if queries else None
