"""Collecting the functions of one repository that pass every per-function filter into work files, one per language."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, cast

import numpy as np

from corpora.codesearchnet.duplicates import identifiers, rows_of
from corpora.codesearchnet.filters import (
    FEW_TOKENS,
    LEAST_LINES,
    LEAST_TOKENS,
    SHORT,
    UNDOCUMENTED,
    Code,
    comment_above,
    documentation_tokens,
    first_paragraph,
    lines_of,
    read_code,
    unwanted,
)
from corpora.codesearchnet.functions import CodeFunction
from corpora.codesearchnet.licenses import UNKNOWN, permits
from corpora.codesearchnet.repositories import Repository, commit_of, find_license, read_files, url_of
from ncs.errors import NcsError, SourceError
from ncs.extract import readers
from ncs.extract.languages import installed, language_of
from ncs.extract.source_bytes import as_utf8
from ncs.sources import Skipped, SourceFile
from ncs.types import Document

DONE = "repository.json"
ALL_FUNCTIONS = "functions"
"""Counted before any filter."""
TWICE = "on the lines of another"

NO_LICENSE, UNKNOWN_LICENSE, NOT_ALLOWED = "no licence file", "licence not recognised", "licence not allowed"
"""Reasons as statistics.json has them."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a corpus. languages: empty for all; licences: SPDX ids."""

    languages: tuple[str, ...] = ()
    licences: tuple[str, ...] = ()
    any_licence: bool = False
    seed: int = 0

    def refusal(self, expression: str) -> str | None:
        """Why a repository under this license is left out."""
        if self.any_licence:
            return None
        if expression in ("", UNKNOWN):
            return UNKNOWN_LICENSE if expression else NO_LICENSE
        return None if permits(expression, frozenset(self.licences)) else NOT_ALLOWED

    def wanted(self, path: str) -> bool:
        """Whether a file is read, by its path."""
        language = language_of(path)
        return language is not None and (not self.languages or language in self.languages) and installed(language)


SHARES = (("train", 0.8), ("valid", 0.1), ("test", 0.1))
"""Husain et al. 2019, section 2: 80-10-10; all functions of a repository are in one partition."""
PARTITIONS = tuple(name for name, _ in SHARES)


def partition_of(repository: str, seed: int = 0) -> str:
    """train, valid or test, by a hash of the seed and the name in lower case (hosts do not tell cases apart).

    >>> [partition_of(name) for name in ("owner/a", "owner/b", "owner/c")]
    ['train', 'valid', 'train']
    """
    digest = hashlib.sha256(f"{seed}:{repository.lower()}".encode("utf-8", "replace")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    for partition, share in SHARES:
        place -= share
        if place < 0:
            return partition
    return PARTITIONS[-1]


@dataclass(slots=True)
class Collected:
    """The outcome of a repository. counts: language -> reason -> functions."""

    name: str
    commit: str = ""
    license: str = ""
    partition: str = ""
    refused: str | None = None
    error: str = ""
    files: int = 0
    broken: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


def collect(repository: Repository, folder: Path, rules: Rules) -> Collected:
    """Write the functions of a repository below `folder`, which exists only once all of it is written.

    For each language `<language>.jsonl.gz` (lines of the corpus), `.rows` and `.names` (corpora.codesearchnet.
    duplicates); `repository.json` has the outcome. A repository that cannot be read sets `error`; nothing is raised.
    """
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    collected = Collected(repository.name, partition=partition_of(repository.name, rules.seed))
    try:
        collected.commit, collected.license = commit_of(repository), find_license(repository)
        collected.refused = rules.refusal(collected.license)
        if collected.refused is None:
            _write(repository, part, rules, collected)
    except SourceError as error:
        collected.error = str(error)
    (part / DONE).write_text(json.dumps(asdict(collected)) + "\n", encoding="utf-8")
    part.replace(folder)
    return collected


def _write(repository: Repository, part: Path, rules: Rules, collected: Collected) -> None:
    counts: dict[str, Counter[str]] = {}
    skipped = Skipped()
    with ExitStack() as stack:
        outputs: dict[str, _Output] = {}
        for file in read_files(repository, wanted=rules.wanted, skipped=skipped):
            collected.files += 1
            language = language_of(file.path) or ""
            try:
                documents, broken = readers.read_code(file.data, language, repository.name, file.path, "tree-sitter")
            except NcsError:
                collected.failed += 1
                continue
            collected.broken += broken
            tally = counts.setdefault(language, Counter())
            functions = list(_functions(repository, file, documents, collected, tally))
            if functions and language not in outputs:
                outputs[language] = stack.enter_context(_Output(part, language))
            if functions:
                outputs[language].add(functions, language)
    collected.skipped = {reason: n for reason, n in sorted(skipped.counts.items()) if reason != "other language"}
    collected.counts = {language: dict(sorted(tally.items())) for language, tally in sorted(counts.items())}


def _functions(
    repository: Repository, file: SourceFile, documents: Sequence[Document], collected: Collected, tally: Counter[str]
) -> Iterator[tuple[CodeFunction, bytes]]:
    """The functions of a file that pass, with their digests; the others are counted by reason."""
    lines = as_utf8(file.data).decode("utf-8", "replace").split("\n")
    spans: set[tuple[int, int]] = set()
    tally[ALL_FUNCTIONS] += len(documents)
    for document in documents:
        if reason := unwanted(document.language, document.kind, document.name, document.qualified_name):
            tally[reason] += 1
            continue
        code = read_code(document.code, document.language, document.kind)
        place = (document.start_line, document.end_line)
        if lines_of(code.text) < LEAST_LINES or place in spans:
            tally[TWICE if place in spans else SHORT] += 1
            continue
        spans.add(place)
        documentation = _documentation(document, code.docstring, lines)
        function = _function(repository, document, code, first_paragraph(documentation), collected)
        if not function.docstring:
            tally[FEW_TOKENS if documentation else UNDOCUMENTED] += 1
        yield function, document.digest


def _function(
    repository: Repository, document: Document, code: Code, paragraph: str, collected: Collected
) -> CodeFunction:
    """A function in the published fields; a paragraph of too few tokens is dropped."""
    tokens = documentation_tokens(paragraph)
    if len(tokens) < LEAST_TOKENS:
        paragraph, tokens = "", ()
    return CodeFunction(
        repo=repository.name,
        path=document.path,
        func_name=document.qualified_name,
        original_string=document.code,
        language=document.language,
        code=code.text,
        code_tokens=code.tokens,
        docstring=paragraph,
        docstring_tokens=tokens,
        sha=collected.commit,
        url=url_of(repository, collected.commit, document.path, document.start_line, document.end_line),
        partition=collected.partition,
        license=collected.license,
    )


def _documentation(document: Document, docstring: str, lines: Sequence[str]) -> str:
    """The docstring in Python, elsewhere the comment above the function."""
    if docstring or document.language == "python":
        return docstring
    if not document.words.get("doc"):
        return ""
    return comment_above(lines, document.start_line) or "\n".join(document.words["doc"])


class _Output:
    """The three files of a language."""

    def __init__(self, folder: Path, language: str) -> None:
        self._stem = folder / language
        self._stack = ExitStack()

    def __enter__(self) -> _Output:
        raw, self._rows, self._names = (
            self._stack.enter_context(self._stem.with_suffix(suffix).open("wb"))
            for suffix in (".jsonl.gz", ".rows", ".names")
        )
        lines = gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0)
        self._lines = cast("IO[bytes]", self._stack.enter_context(lines))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def add(self, functions: Sequence[tuple[CodeFunction, bytes]], language: str) -> None:
        """Append the functions of a file."""
        names = [identifiers(function.code_tokens, language) for function, _ in functions]
        documented = [bool(function.docstring) for function, _ in functions]
        self._rows.write(rows_of(names, [digest for _, digest in functions], documented).tobytes())
        for (function, _), each in zip(functions, names, strict=True):
            self._lines.write((json.dumps(function.row(), ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            self._names.write(np.array(each, "<u4").tobytes())
