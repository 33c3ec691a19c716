"""Source files into Documents: one for every function and method, with its words by field."""

from __future__ import annotations

from collections.abc import Iterator

from ncs.extract.frontends import FRONTENDS, read_file
from ncs.extract.languages import LANGUAGES, Language, is_readable, language_of
from ncs.extract.pool import Extraction, extract_files
from ncs.extract.readers import readable
from ncs.types import Document

__all__ = ["FRONTENDS", "LANGUAGES", "Extraction", "Language", "extract", "extract_files", "is_readable", "language_of"]
__all__ += ["readable"]


def extract(
    source: bytes,
    language: str,
    *,
    repository: str = "",
    path: str = "",
    frontend: str = "tree-sitter",
    outside: bool = False,
) -> Iterator[Document]:
    """Documents of one source file, in source order; of a file with syntax errors, what parsed.

    outside: after the functions, the classes as outlines and the top level (ncs.extract.outside).
    Raises BadInput for an unknown language or front end, SourceError where the front end cannot read the file.

    >>> [d.qualified_name for d in extract(b"class A { void hide() {} }", "java")]
    ['A.hide']
    """
    yield from read_file(source, language, repository, path, frontend, outside=outside)[0]
