"""One source file into Documents with tree-sitter: one parse, one query, then byte ranges.

The query says what is a function, a class, a call, a literal, a comment ...; names that it leaves are told
apart by their case: CONSTANT, Type, variable. There is no walk over nodes, so nesting costs nothing: what
the query captured is marked in a copy of the source, and the words of a function are those of its range.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tree_sitter import Language as Grammar
from tree_sitter import Parser, Query, QueryCursor

from ncs.errors import SourceError
from ncs.extract.comments import unquote
from ncs.extract.documents import Comments, Function, Span, after_space, as_utf8, blanked, documents_of
from ncs.extract.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.types import Document, Field, Tokens

    Captures = dict[str, list[Node]]
    Container = tuple[int, int, str, str]

DEEPEST = 64
"""Functions nested deeper make no documents: the code of all of them would grow with the square."""

UNCLOSED = 20_000
"""Brackets too many or too few that a file may have: captures take the square of their number, hours for 1 MB."""

_CALL, _PARAMETER, _TYPE, _ENUM, _NAME = "\1\2\3\4\5"
_TAGS: Mapping[str, str] = {"types": _TYPE, "parameters": _PARAMETER, "enums": _ENUM, "calls": _CALL}
"""A captured name has its tag in place of the character before it; of two the later."""
_LETTERS = bytes(c if c > 127 or chr(c).isalnum() or c in b"_$" else 0x20 for c in range(256))


def read(source: bytes, row: Language, repository: str, path: str) -> tuple[list[Document], bool]:
    """Documents of a file in source order, and whether it has syntax errors.

    Raises SourceError for what is no program and would take hours: a million opening brackets.
    """
    source = as_utf8(source)
    parser, cursor = _tools(row)
    if len(source) > UNCLOSED and _unclosed(source) > UNCLOSED:
        raise SourceError(f"over {UNCLOSED:,} brackets of {path or 'the file'} do not match; it is no program")
    root = parser.parse(source).root_node
    if row.opaque and root.has_error:
        hidden = [match.span(2) for match in row.opaque.finditer(source)]
        root = parser.parse(bytes(blanked(source, hidden, b" "))).root_node
    found = cursor.captures(root)
    if not any(kind in found for kind in row.kinds):
        return [], root.has_error
    docs = _spans(found, "doc")
    comments = Comments(source, _spans(found, "comments"), docs, row)
    functions = _functions(source, found, comments, docs, row)
    return documents_of(source, functions, comments, row, repository, path), root.has_error


def _unclosed(source: bytes) -> int:
    return abs(sum(map(source.count, (b"(", b"[", b"{"))) - sum(map(source.count, (b")", b"]", b"}"))))


def _functions(source: bytes, found: Captures, comments: Comments, docs: list[Span], row: Language) -> list[Function]:
    literals = _spans(found, "literals")
    if docs:
        documenting = {node.start_byte for node in found["doc.text"]}
        literals = [span for span in literals if span[0] not in documenting]
    starts = [start for start, _ in literals]
    texts = [unquote(source[start:end].decode("utf-8", "replace")) for start, end in literals]
    code, tags = _tagged(found, blanked(comments.without, literals + _spans(found, "nothing")), row)
    functions = []
    ends: list[int] = []
    scopes: list[Tokens] = [()]
    for start, end, kind, name in _containers(source, found, row):
        while ends and ends[-1] <= start:
            ends.pop()
            scopes.pop()
        scope = scopes[-1]
        if kind and len(ends) < DEEPEST:
            words = _words(code[start : end + 1], tags, row.ignored)
            if starts:
                first = bisect_left(starts, start)
                inside = [text for text in texts[first : bisect_left(starts, end, first)] if text]
                if inside:
                    words["literals"] = tuple(inside)
            functions.append(Function(start, end, kind, name, scope, words))
        ends.append(end)
        scopes.append((*scope, name))
    for number, start in _docstrings(functions, docs).items():
        functions[number] = functions[number]._replace(docstring=start)
    return functions


def _docstrings(functions: Sequence[Function], docs: Sequence[Span]) -> dict[int, int]:
    """Function number -> where its docstring starts: it is the innermost function's that holds it."""
    found: dict[int, int] = {}
    starts = [function.start for function in functions] if docs else []
    for start, _ in docs:
        number = bisect_left(starts, start) - 1
        while number >= 0 and functions[number].end <= start:
            number -= 1
        if number >= 0:
            found.setdefault(number, start)
    return found


def _words(code: bytes, tags: Sequence[bytes], ignored: frozenset[str]) -> dict[Field, Tokens]:
    """The names in a function's tagged code by field: by tag, or by case where there is none."""
    for tag in tags:
        code = code.replace(tag, b" " + tag)
    calls: list[str] = []
    types: list[str] = []
    enums: list[str] = []
    identifiers: list[str] = []
    parameters: list[str] = []
    names: list[str] = []
    tagged = {_CALL: calls, _TYPE: types, _PARAMETER: parameters, _ENUM: enums, _NAME: names}
    for name in code.decode("utf-8", "replace").split():
        if name >= "a":
            if name not in ignored:
                identifiers.append(name)
        elif name < "\6":
            if len(name) > 1:  # it may begin with what is no letter: #private
                tagged[name[0]].append(name[1:])
        elif name >= "A" and name not in ignored:
            if name.isupper() and len(name) > 1:
                enums.append(name)
            else:
                (identifiers if name[0] == "_" else types).append(name)
        elif name[0] == "$" and len(name) > 1:
            identifiers.append(name)
    identifiers += names[1:]  # those of functions in it
    words: dict[Field, Tokens] = {}
    if calls and (kept := tuple([name for name in calls if name not in ignored])):
        words["calls"] = kept
    if enums:
        words["enums"] = tuple(enums)
    if identifiers:
        words["identifiers"] = tuple(identifiers)
    if types:
        words["types"] = tuple(types)
    if parameters and (kept := tuple([name for name in parameters if name not in ignored])):
        words["parameters"] = kept
    return words


def _tagged(found: Captures, code: bytearray, row: Language) -> tuple[bytes, list[bytes]]:
    """The code with spaces for what is between names, and tags after captured names; and which tags there are."""
    code = bytearray(b" ") + code.translate(_LETTERS)
    tags = {what: tag for what, tag in _TAGS.items() if what in found}
    tags |= {f"{kind}.name": _NAME for kind in row.kinds if f"{kind}.name" in found}
    for what, tag in tags.items():
        byte = ord(tag)
        for node in found[what]:
            code[node.start_byte] = byte  # that is, before the name: the code starts with one space more
    return bytes(code), [tag.encode() for tag in sorted(set(tags.values()))]


def _containers(source: bytes, found: Captures, row: Language) -> list[Container]:
    """Functions and classes (these with an empty kind), the enclosing before the enclosed."""
    decorated: dict[int, int] = {}
    if "decorated" in found:
        starts = (sorted([node.start_byte for node in found[what]]) for what in ("decorated.definition", "decorated"))
        decorated = dict(zip(*starts, strict=False))
    preambles = {after_space(source, end): start for start, end in _spans(found, "preamble")}
    containers = []
    for kind in (*row.kinds, "class", "scope"):
        if kind not in found:
            continue
        nodes, names = _spans(found, kind), _spans(found, f"{kind}.name")
        if len(names) != len(nodes):  # a node in error may have two, a kind may have none
            names = _paired(nodes, names)
        for (start, end), (a, b) in zip(nodes, names, strict=True):
            name = _bare(source[a:b].decode("utf-8", "replace")) or kind
            while start in preambles:
                start = preambles[start]
            if kind in ("class", "scope"):
                containers.append((start, -end, "", name.partition("<")[0].rpartition(".")[2].strip()))
            else:
                containers.append((decorated.get(start, start) if decorated else start, -end, kind, name))
    containers.sort()
    found_in_order = [(start, -minus_end, kind, name) for start, minus_end, kind, name in containers]
    return _joined(source, found_in_order) if row.equations else found_in_order


def _bare(name: str) -> str:
    """A name without the quotes that it may stand in, or the colon of a Ruby symbol."""
    if name[:1] in ("'", '"', "`") and name[-1] == name[0]:
        return name[1:-1]
    return name[1:] if name[:1] == ":" and name[1:2].isalpha() else name


def _joined(source: bytes, containers: list[Container]) -> list[Container]:
    """Functions that are written as several equations, one below the other, made one each."""
    joined: list[Container] = []
    open_ends: dict[int, int] = {}
    for start, end, kind, name in containers:
        number = open_ends.pop(start, -1)
        if number >= 0 and kind and joined[number][2:] == (kind, name):
            joined[number] = (joined[number][0], end, kind, name)
        else:
            number = len(joined)
            joined.append((start, end, kind, name))
        open_ends[after_space(source, end)] = number
    return joined


def _paired(nodes: list[Span], names: list[Span]) -> list[Span]:
    """For every node the first name that starts in it and is not taken."""
    left = iter(names)
    return [next((name for name in left if name[0] >= start), (start, start)) for start, _ in nodes]


def _spans(found: Captures, what: str) -> list[Span]:
    """Byte ranges of a capture, sorted: tree-sitter gives them in no order."""
    return sorted([node.byte_range for node in found[what]]) if what in found else []


@lru_cache
def _tools(row: Language) -> tuple[Parser, QueryCursor]:
    grammar = Grammar(row.load())
    query = "\n".join(files("ncs.extract").joinpath(f"{name}.scm").read_text("utf-8") for name in row.queries)
    return Parser(grammar), QueryCursor(Query(grammar, query))
