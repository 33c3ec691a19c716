"""One source file into Documents with tree-sitter: one parse, one query."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

from tree_sitter import Language as Grammar
from tree_sitter import Parser, Query, QueryCursor

from ncs.extract.document import MARKS, Container, decode, documents_of
from ncs.extract.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.types import Document

    Captures = dict[str, list[Node]]


def read(source: bytes, row: Language, repository: str, path: str) -> tuple[list[Document], bool]:
    """Documents of a file in source order, and whether it has syntax errors."""
    source = clean(source)
    parser, cursor = _tools(row)
    root = parser.parse(source).root_node
    found = cursor.captures(root)
    text = source.decode("latin-1")
    containers, names = _containers(found, row, text)
    if not names and not any(container.kind for container in containers):
        return [], root.has_error
    marks = {start: (end, "name") for start, end in names}
    for what in MARKS:  # where two patterns meet, the later field wins
        for node in found.get(what, ()):
            marks[node.start_byte] = (node.end_byte, what)
    return documents_of(text, containers, marks, row, repository, path), root.has_error


def clean(source: bytes) -> bytes:
    """Without what no parser wants: a byte order mark, UTF-16, control characters that are marks here."""
    if source[:3] == b"\xef\xbb\xbf":
        source = source[3:]
    elif source[:2] in (b"\xff\xfe", b"\xfe\xff"):
        source = source.decode("utf-16", "replace").encode()
    if b"\0" in source or b"\1" in source:
        source = source.translate(bytes.maketrans(b"\0\1", b"  "))
    return source


@lru_cache
def _tools(row: Language) -> tuple[Parser, QueryCursor]:
    grammar = Grammar(import_module(row.grammar).language())
    query = files("ncs.extract").joinpath(f"{row.name}.scm").read_text("utf-8")
    return Parser(grammar), QueryCursor(Query(grammar, query))


def _containers(found: Captures, row: Language, text: str) -> tuple[list[Container], list[int]]:
    """Functions and classes, the outer before the inner; and where the functions' names stand."""
    decorated = dict(zip(_starts(found, "decorated.definition"), _starts(found, "decorated"), strict=False))
    containers = []
    names: list[tuple[int, int]] = []
    for kind in (*row.kinds, "class"):
        nodes = sorted([node.byte_range for node in found.get(kind, ())])
        kind_names = sorted([node.byte_range for node in found.get(f"{kind}.name", ())])
        names_left = iter(kind_names)
        for start, end in nodes:
            name = kind
            if kind_names:
                a, b = next((place for place in names_left if place[0] >= start), (start, start))
                name = decode(text[a:b]).partition("<")[0].rpartition(".")[2].strip()
            containers.append((decorated.get(start, start), -end, "" if kind == "class" else kind, name))
        if kind != "class":
            names += kind_names
    containers.sort()
    return [Container(start, -minus_end, kind, name) for start, minus_end, kind, name in containers], names


def _starts(found: Captures, what: str) -> list[int]:
    return sorted([node.start_byte for node in found.get(what, ())])
