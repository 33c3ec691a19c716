"""A function of the corpus, and its files: one JSON object a line, gzip, as published or as made here.

As published a language is a folder (in a .zip) with `final/jsonl/<partition>/*.jsonl.gz`; a corpus that was made here
has beside `final` a folder `undocumented`, with the functions that are no pairs.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from corpora.jsonl import Row, parse_row, read_rows, write_rows
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.types import Document

LANGUAGES = ("go", "java", "javascript", "php", "python", "ruby")


@dataclass(frozen=True, slots=True)
class CodeFunction:
    """A line of the corpus, its keys as published (section 2). docstring: the first paragraph of the comment."""

    repo: str
    path: str
    func_name: str
    original_string: str
    language: str
    code: str
    code_tokens: tuple[str, ...]
    docstring: str
    docstring_tokens: tuple[str, ...]
    sha: str
    url: str
    partition: str

    def document(self) -> Document:
        """The function with its comment, as it stood in the file; its id is its URL."""
        return read_program(self.original_string or self.code, self.language, id=self.url)


def read_functions(paths: Iterable[Path]) -> Iterator[CodeFunction]:
    """Functions of .jsonl, .jsonl.gz and of published .zip files, which are read as they are, in name order.

    Raises BadInput, naming the line, for what is no such function.
    """
    for path in paths:
        rows = _archived_rows(path) if path.suffix == ".zip" else read_rows(path)
        yield from map(_function, rows)


def write_functions(functions: Iterable[CodeFunction], path: Path) -> int:
    """JSON lines in the published shape, gzip by the name; how many."""
    return write_rows(path, map(asdict, functions))


def _archived_rows(path: Path) -> Iterator[Row]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".jsonl.gz"))
            if not names:
                raise BadInput(f"{path} holds no .jsonl.gz; name a language's archive of CodeSearchNet")
            for name in names:
                with archive.open(name) as packed, gzip.open(packed, "rb") as lines:
                    for number, line in enumerate(lines, 1):
                        yield parse_row(line, f"{path}: {name}:{number}")
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; get it with: python -m corpora fetch codesearchnet DATA") from None
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadInput(f"{path} is damaged ({error}); get the file again") from None


def _function(row: Row) -> CodeFunction:
    texts = {
        field.name: row.text(field.name, "" if field.name in ("sha", "partition") else None)
        for field in fields(CodeFunction)
        if not field.name.endswith("_tokens")
    }
    return CodeFunction(
        **texts, code_tokens=_tokens(row, "code_tokens"), docstring_tokens=_tokens(row, "docstring_tokens")
    )


def _tokens(row: Row, key: str) -> tuple[str, ...]:
    tokens = row.values.get(key, [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BadInput(f"{row.place}: {key!r} is not a list of strings; correct that line")
    return tuple(tokens)
