"""Which front end reads a file: one signature, two implementations for Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncs.errors import BadInput
from ncs.extract.languages import LANGUAGES

if TYPE_CHECKING:
    from ncs.types import Document

FRONTENDS = ("tree-sitter", "javalang")


def read_file(
    source: bytes, language: str, repository: str, path: str, frontend: str, *, outside: bool = False
) -> tuple[list[Document], bool]:
    """Documents of a file in source order, and whether it has syntax errors.

    outside: classes and the top level too; javalang gives functions only.
    "javalang" reads Java; every other language is read with tree-sitter whatever the front end.
    Raises SourceError where the front end cannot read the file at all, BadInput for an unknown name.
    """
    if frontend not in FRONTENDS:
        raise BadInput(f"there is no front end {frontend!r}; there are: {', '.join(FRONTENDS)}")
    if language not in LANGUAGES:
        raise BadInput(f"there is no language {language!r}; there are: {', '.join(LANGUAGES)}")
    if frontend == "javalang" and language == "java":
        from ncs.extract.java_javalang import read as read_javalang

        return read_javalang(source, LANGUAGES[language], repository, path)
    from ncs.extract.treesitter import read

    return read(source, LANGUAGES[language], repository, path, outside=outside)
