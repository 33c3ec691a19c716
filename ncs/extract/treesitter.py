"""One source file into Documents with tree-sitter: one parse, one query, then byte ranges.

The query says what is a function, a class, a call, a literal, a comment ...; names that it leaves are told
apart by their case: CONSTANT, Type, variable. There is no walk over nodes, so nesting costs nothing: what
the query captured is marked in a copy of the source, and the words of a function are those of its range.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING

from tree_sitter import Language as Grammar
from tree_sitter import Parser, Query, QueryCursor

from ncs.extract.comments import unquote
from ncs.extract.documents import Comments, Function, Span, as_utf8, blanked, documents_of
from ncs.extract.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.types import Document, Field, Tokens

    Captures = dict[str, list[Node]]

DEEPEST = 64
"""Functions nested deeper make no documents: the code of all of them would grow with the square."""

_TAGS: Mapping[str, int] = {"calls": 1, "parameters": 2, "types": 3, "enums": 4}
"""What a captured name is tagged with: this character stands in place of the one before it."""
_FIELD_TAGS: tuple[tuple[int, Field], ...] = ((1, "calls"), (2, "parameters"), (3, "types"), (4, "enums"))
_NAME_TAG = 5
_UPPER, _LOWER = 6, 7
_LETTERS = bytes(c if c > 127 or chr(c).isalnum() or c in b"_$" else 0x20 for c in range(256))
_SORTS = bytes(
    c if c <= _NAME_TAG else _UPPER if chr(c).isupper() else 0 if chr(c).isdigit() else _LOWER for c in range(256)
)
_ONLY = [bytes(c == sort for c in range(256)) for sort in range(_LOWER + 1)]
_first = itemgetter(0)


def read(source: bytes, row: Language, repository: str, path: str) -> tuple[list[Document], bool]:
    """Documents of a file in source order, and whether it has syntax errors."""
    source = as_utf8(source)
    parser, cursor = _tools(row)
    root = parser.parse(source).root_node
    found = cursor.captures(root)
    if not any(kind in found for kind in row.kinds):
        return [], root.has_error
    docs = _spans(found, "doc")
    comments = Comments(source, _spans(found, "comments"), docs, row)
    functions = _functions(source, found, comments, docs, row)
    return documents_of(source, functions, comments, row, repository, path), root.has_error


def _functions(source: bytes, found: Captures, comments: Comments, docs: list[Span], row: Language) -> list[Function]:
    containers = _containers(source, found, row)
    literals = _spans(found, "literals")
    if docs:
        literals = [span for span in literals if span not in docs]
    starts = [start for start, _ in literals]
    texts = [unquote(source[start:end].decode("utf-8", "replace")) for start, end in literals]
    code, tags = _tagged(found, blanked(comments.without, literals + _spans(found, "nothing")), row)
    functions = []
    ends: list[int] = []
    scopes: list[Tokens] = [()]
    for start, end, kind, name in containers:
        while ends and ends[-1] <= start:
            ends.pop()
            scopes.pop()
        scope = scopes[-1]
        if kind and len(ends) < DEEPEST:
            functions.append((start, end, kind, name, scope))
        ends.append(end)
        scopes.append((*scope, name))
    slices = [code[start : end + 1] for start, end, _, _, _ in functions]
    for tag in tags:
        spaced = b" " + tag
        slices = [piece.replace(tag, spaced) for piece in slices]
    ignored = row.keywords | row.ignored
    names = [[name for name in piece.decode("utf-8", "replace").split() if name not in ignored] for piece in slices]
    sorts = ["".join(map(_first, some)).encode("latin-1", "replace").translate(_SORTS) for some in names]
    docstrings = _docstrings(functions, docs)
    made = []
    for number, (function, words) in enumerate(zip(functions, map(_words, names, sorts), strict=True)):
        first = bisect_left(starts, function[0])
        inside = texts[first : bisect_left(starts, function[1], first)]
        if any(inside):
            words["literals"] = tuple(filter(None, inside))
        made.append(Function(*function, words, docstrings.get(number, -1)))
    return made


def _docstrings(functions: Sequence[tuple[int, int, str, str, Tokens]], docs: Sequence[Span]) -> dict[int, int]:
    """Function number -> where its docstring starts: it is the innermost function's that holds it."""
    found: dict[int, int] = {}
    for start, _ in docs:
        number = bisect_left(functions, start, key=_first) - 1
        while number >= 0 and functions[number][1] <= start:
            number -= 1
        found.setdefault(number, start)
    return found


def _words(names: list[str], sorts: bytes) -> dict[Field, Tokens]:
    words: dict[Field, Tokens] = {}
    for sort, field in _FIELD_TAGS:
        if sort in sorts:
            words[field] = tuple([name[1:] for name in compress(names, sorts.translate(_ONLY[sort]))])
    if _LOWER in sorts:
        words["identifiers"] = tuple(compress(names, sorts.translate(_ONLY[_LOWER])))
    if _UPPER in sorts:
        upper = list(compress(names, sorts.translate(_ONLY[_UPPER])))
        constants = [name for name in upper if name.isupper()]
        if constants:
            words["enums"] = words.get("enums", ()) + tuple(constants)
            upper = [name for name in upper if not name.isupper()]
        if upper:
            words["types"] = words.get("types", ()) + tuple(upper)
    return words


def _tagged(found: Captures, code: bytearray, row: Language) -> tuple[bytes, list[bytes]]:
    """The code with spaces for what is between names, and tags after captured names; and which tags there are."""
    code = bytearray(b" ") + code.translate(_LETTERS)
    tags = {what: tag for what, tag in _TAGS.items() if what in found}
    tags |= {f"{kind}.name": _NAME_TAG for kind in row.kinds if f"{kind}.name" in found}
    for what, tag in tags.items():
        for node in found[what]:
            code[node.start_byte] = tag
    return bytes(code), [bytes((tag,)) for tag in sorted(set(tags.values()))]


def _containers(source: bytes, found: Captures, row: Language) -> list[tuple[int, int, str, str]]:
    """Functions and classes (these with an empty kind), the enclosing before the enclosed."""
    decorated: dict[int, int] = {}
    if "decorated" in found:
        starts = (sorted([node.start_byte for node in found[what]]) for what in ("decorated.definition", "decorated"))
        decorated = dict(zip(*starts, strict=False))
    containers = []
    for kind in (*row.kinds, "class"):
        if kind not in found:
            continue
        nodes, names = _spans(found, kind), _spans(found, f"{kind}.name")
        if len(names) != len(nodes):  # a node in error may have two, a kind may have none
            names = _paired(nodes, names)
        for (start, end), (a, b) in zip(nodes, names, strict=True):
            name = source[a:b].decode("utf-8", "replace") or kind
            if kind == "class":
                containers.append((start, -end, "", name.partition("<")[0].rpartition(".")[2].strip()))
            else:
                containers.append((decorated.get(start, start) if decorated else start, -end, kind, name))
    containers.sort()
    return [(start, -minus_end, kind, name) for start, minus_end, kind, name in containers]


def _paired(nodes: list[Span], names: list[Span]) -> list[Span]:
    """For every node the first name that starts in it and is not taken."""
    left = iter(names)
    return [next((name for name in left if name[0] >= start), (start, start)) for start, _ in nodes]


def _spans(found: Captures, what: str) -> list[Span]:
    """Byte ranges of a capture, sorted: tree-sitter gives them in no order."""
    return sorted([node.byte_range for node in found[what]]) if what in found else []


@lru_cache
def _tools(row: Language) -> tuple[Parser, QueryCursor]:
    grammar = Grammar(import_module(row.grammar).language())
    query = files("ncs.extract").joinpath(f"{row.name}.scm").read_text("utf-8")
    return Parser(grammar), QueryCursor(Query(grammar, query))
