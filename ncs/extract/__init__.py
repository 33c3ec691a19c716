"""Source files into Documents: one for every function, with its words by field."""

from __future__ import annotations

from collections.abc import Iterator

from ncs.extract.languages import LANGUAGES, Language, language_of
from ncs.extract.pool import Extraction, extract_files
from ncs.extract.readers import read_code
from ncs.types import Document

__all__ = ["LANGUAGES", "Extraction", "Language", "extract", "extract_files", "language_of"]


def extract(
    source: bytes,
    language: str,
    *,
    repository: str = "",
    path: str = "",
    frontend: str = "tree-sitter",
    outside: bool = False,
) -> Iterator[Document]:
    """Documents of one source file, in source order; of a file with syntax errors, what can be parsed.

    outside: also classes as outlines and top-level code, after the functions.
    Raises BadInput for an unknown language or front end, SourceError where the front end cannot read the file.

    >>> [d.qualified_name for d in extract(b"class A { void hide() {} }", "java")]
    ['A.hide']
    """
    yield from read_code(source, language, repository, path, frontend, outside=outside)[0]
