"""One repository's functions into work files, a language a file, past every filter that looks at one function alone."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from corpora.codesearchnet.code import Code, read_code
from corpora.codesearchnet.documentation import comment_above, documentation_tokens, first_paragraph
from corpora.codesearchnet.filters import FEW_TOKENS, LEAST_LINES, LEAST_TOKENS, SHORT, UNDOCUMENTED, lines_of, unwanted
from corpora.codesearchnet.functions import CodeFunction
from corpora.codesearchnet.repositories import Repository, commit_of, licence, read_files, url_of
from corpora.codesearchnet.rules import Rules
from corpora.codesearchnet.signatures import identifiers, rows_of
from corpora.codesearchnet.splits import partition_of
from ncs.errors import NcsError, SourceError
from ncs.extract import readers
from ncs.extract.languages import language_of
from ncs.extract.source_bytes import as_utf8
from ncs.sources import Skipped, SourceFile
from ncs.types import Document

DONE = "repository.json"
FOUND = "functions"
"""Counted before any filter."""
TWICE = "on the lines of another"


@dataclass(slots=True)
class Found:
    """What a repository came to. counts: language -> reason -> functions."""

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


def collect(repository: Repository, folder: Path, rules: Rules) -> Found:
    """Write the functions of a repository below `folder`, which is there when all of it is written.

    For each language `<language>.jsonl.gz` (lines of the corpus), `.rows` and `.names` (corpora.codesearchnet.
    signatures); `repository.json` says what came of it. What cannot be read is noted in `error`, not raised.
    """
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    found = Found(repository.name, partition=partition_of(repository.name, rules.seed))
    try:
        found.commit, found.license = commit_of(repository), licence(repository)
        found.refused = rules.refusal(found.license)
        if found.refused is None:
            _write(repository, part, rules, found)
    except SourceError as error:
        found.error = str(error)
    (part / DONE).write_text(json.dumps(found_dict(found)) + "\n", encoding="utf-8")
    part.replace(folder)
    return found


def found_dict(found: Found) -> dict[str, Any]:
    """As JSON has it."""
    return {name: getattr(found, name) for name in Found.__slots__}


def _write(repository: Repository, part: Path, rules: Rules, found: Found) -> None:
    counts: dict[str, Counter[str]] = {}
    skipped = Skipped()
    with ExitStack() as stack:
        outputs: dict[str, _Output] = {}
        for file in read_files(repository, wanted=rules.wanted, skipped=skipped):
            found.files += 1
            language = language_of(file.path) or ""
            try:
                documents, broken = readers.read_code(file.data, language, repository.name, file.path, "tree-sitter")
            except NcsError:
                found.failed += 1
                continue
            found.broken += broken
            tally = counts.setdefault(language, Counter())
            functions = list(_functions(repository, file, documents, found, tally))
            if functions and language not in outputs:
                outputs[language] = stack.enter_context(_Output(part, language))
            if functions:
                outputs[language].add(functions, language)
    found.skipped = {reason: n for reason, n in sorted(skipped.counts.items()) if reason != "other language"}
    found.counts = {language: dict(sorted(tally.items())) for language, tally in sorted(counts.items())}


def _functions(
    repository: Repository, file: SourceFile, documents: Sequence[Document], found: Found, tally: Counter[str]
) -> Iterator[tuple[CodeFunction, bytes]]:
    """The functions of a file that pass, with their digests; what does not pass is counted."""
    lines = as_utf8(file.data).decode("utf-8", "replace").split("\n")
    seen: set[tuple[int, int]] = set()
    tally[FOUND] += len(documents)
    for document in documents:
        if reason := unwanted(document.language, document.kind, document.name, document.qualified_name):
            tally[reason] += 1
            continue
        code = read_code(document.code, document.language, document.kind)
        place = (document.start_line, document.end_line)
        if lines_of(code.text) < LEAST_LINES or place in seen:
            tally[TWICE if place in seen else SHORT] += 1
            continue
        seen.add(place)
        said = _documentation(document, code.docstring, lines)
        function = _function(repository, document, code, first_paragraph(said), found)
        if not function.docstring:
            tally[FEW_TOKENS if said else UNDOCUMENTED] += 1
        yield function, document.digest


def _function(repository: Repository, document: Document, code: Code, paragraph: str, found: Found) -> CodeFunction:
    """In the published fields; a paragraph of too few tokens is none."""
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
        sha=found.commit,
        url=url_of(repository, found.commit, document.path, document.start_line, document.end_line),
        partition=found.partition,
        license=found.license,
    )


def _documentation(document: Document, docstring: str, lines: Sequence[str]) -> str:
    """By the language's own convention: Python's docstring, elsewhere the comment above, as it stands in the file."""
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
