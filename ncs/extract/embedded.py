"""Code inside a file of another kind (cells of notebooks, scripts of pages): its documents, with the file's lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ncs.extract.languages import LANGUAGES, installed
from ncs.extract.text_kinds import TEXT_KINDS
from ncs.types import Document


class Piece(NamedTuple):
    """A piece of code in a file."""

    code: bytes
    language: str
    """A key of LANGUAGES or TEXT_KINDS."""
    lines: Sequence[int]
    """For each line of the code its line in the file, 1-based; ascending."""


def read_piece(piece: Piece, repository: str, path: str, *, outside: bool) -> tuple[list[Document], bool]:
    """The documents of a piece, with lines of the file, and whether it has syntax errors."""
    if piece.language in LANGUAGES and installed(piece.language):
        from ncs.extract.treesitter import read

        documents, broken = read(piece.code, LANGUAGES[piece.language], repository, path, outside=outside)
    elif piece.language in TEXT_KINDS:
        from ncs.extract.text_files import read as read_text

        documents, broken = read_text(piece.code, piece.language, repository, path, outside=outside)
    else:
        return [], False
    return [_moved(document, piece.lines) for document in documents], broken


def _moved(document: Document, lines: Sequence[int]) -> Document:
    first, last = (lines[min(line, len(lines)) - 1] for line in (document.start_line, document.end_line))
    place = f"{document.repository}/{document.path}:"
    suffix = document.id[len(f"{place}{document.start_line}") :]
    return replace(document, id=f"{place}{first}{suffix}", start_line=first, end_line=last)


def with_distinct_ids(documents: Iterable[Document]) -> list[Document]:
    """The documents, with a number appended to ids that occur again, as those on one line do."""
    used: set[str] = set()
    distinct = []
    for document in documents:
        id, n = document.id, 1
        while id in used:
            n += 1
            id = f"{document.id}.{n}"
        used.add(id)
        distinct.append(document if n == 1 else replace(document, id=id))
    return distinct
