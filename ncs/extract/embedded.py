"""Code inside a file of another kind (a notebook's cells, a page's scripts): its documents, placed in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ncs.extract.languages import LANGUAGES, installed
from ncs.extract.texts import TEXTS
from ncs.types import Document


class Piece(NamedTuple):
    """A piece of code in a file."""

    code: bytes
    language: str
    """A key of LANGUAGES or TEXTS."""
    lines: Sequence[int]
    """The line of the file, 1-based, on which each line of the code stands; ascending."""


def read_piece(piece: Piece, repository: str, path: str, *, outside: bool) -> tuple[list[Document], bool]:
    """The documents of a piece, placed in its file, and whether it has syntax errors."""
    if piece.language in LANGUAGES and installed(piece.language):
        from ncs.extract.treesitter import read

        found, broken = read(piece.code, LANGUAGES[piece.language], repository, path, outside=outside)
    elif piece.language in TEXTS:
        from ncs.extract.text import read as read_text

        found, broken = read_text(piece.code, piece.language, repository, path, outside=outside)
    else:
        return [], False
    return [_moved(document, piece.lines) for document in found], broken


def _moved(document: Document, lines: Sequence[int]) -> Document:
    first, last = (lines[min(line, len(lines)) - 1] for line in (document.start_line, document.end_line))
    place = f"{document.repository}/{document.path}:"
    suffix = document.id[len(f"{place}{document.start_line}") :]
    return replace(document, id=f"{place}{first}{suffix}", start_line=first, end_line=last)


def distinct(documents: Iterable[Document]) -> list[Document]:
    """The same documents; where several have one id, because they stand on one line, a number is put behind it."""
    taken: set[str] = set()
    found = []
    for document in documents:
        id, n = document.id, 1
        while id in taken:
            n += 1
            id = f"{document.id}.{n}"
        taken.add(id)
        found.append(document if n == 1 else replace(document, id=id))
    return found
