"""One source file into Documents with tree-sitter: one parse, one query, then byte ranges.

The query says what is a function, a class, a literal, a comment ...; names that it leaves are told apart by the
bracket after them or by their case (words.py). There is no walk over nodes, so nesting costs nothing: what the
query captured is marked in a copy of the source, and the words of a function are those of its range.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING

from tree_sitter import Language as Grammar
from tree_sitter import Parser

from ncs.errors import SourceError
from ncs.extract.bytewise import Span, as_utf8, blanked
from ncs.extract.captures import Captures, Found, captures_of
from ncs.extract.comments import unquote
from ncs.extract.containers import CLASS, containers_of, docstrings_of
from ncs.extract.described import Comments
from ncs.extract.documents import Function, documents_of
from ncs.extract.languages import Language
from ncs.extract.outside import Class, File, outlines
from ncs.extract.words import Names, names_of, piece, tagged

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.types import Document, Field, Tokens

    Literal = tuple[Span, str]

DEEPEST = 64
"""Functions nested deeper make no documents: the code of all of them would grow with the square."""

DEEPEST_BRACKETS = 20_000
"""Brackets open at once, or closed too often: captures take the square of their number, hours for 1 MB; and where
all close again, some 200,000 end the process."""
LONGEST_LINE = 300_000
"""Bytes of a line; a file with a longer one is data or minified, and some grammars take minutes for it."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))

_function = partial(tuple.__new__, Function)  # a third of the time that Function(...) takes


def read(
    source: bytes, row: Language, repository: str, path: str, *, outside: bool = False
) -> tuple[list[Document], bool]:
    """Documents of a file in source order, and whether it has syntax errors; none where a line is over LONGEST_LINE.

    outside: after the functions, classes and the top level too (ncs.extract.outside).
    Raises SourceError for what is no program and would take hours, or the process: a million opening brackets.
    """
    source = as_utf8(source)
    parser, captures = _tools(row)
    if len(source) > DEEPEST_BRACKETS and _depth(source) > DEEPEST_BRACKETS:
        raise SourceError(f"over {DEEPEST_BRACKETS:,} brackets of {path or 'the file'} are open; it is no program")
    if len(source) > LONGEST_LINE and max(map(len, source.split(b"\n"))) > LONGEST_LINE:
        return [], True
    root = _parsed(source, parser, row)
    found = captures(source, root)
    if not outside and not any(kind in found for kind in row.kinds):
        return [], root.has_error
    docs = found.get("doc", [])
    comments = Comments(source, found.get("comments", []), docs, row)
    literals = _literals(source, found, docs)
    code = tagged(found, blanked(comments.without, [span for span, _ in literals] + found.get("nothing", [])), row)
    functions, classes = _functions(source, found, code, literals, row)
    for number, start in docstrings_of(functions, docs).items():
        functions[number] = functions[number]._replace(docstring=start)
    documents = documents_of(source, functions, comments, row, repository, path)
    if outside:

        def words(spans: Sequence[Span]) -> dict[Field, Tokens]:
            pieces = b" ".join([piece(code, a, b) for a, b in spans])
            return _names(row)(pieces, 0, len(pieces))

        said = [(start, text) for (start, _), text in literals if text]
        file = File(source, words, said, comments, row, repository, path)
        documents += outlines(file, functions, classes)
    return documents, root.has_error


def _parsed(source: bytes, parser: Parser, row: Language) -> Node:
    """The root of the tree; where it has errors, of the source without what is no code of the language."""
    hidden, surely = row.opaque(source) if row.opaque else ((), False)
    if not surely:
        root = parser.parse(source).root_node
        if not (hidden and root.has_error):
            return root
    return parser.parse(bytes(blanked(source, hidden, b" "))).root_node


def _depth(source: bytes) -> int:
    """The most brackets that are open at once, or closed too often; 0 where they are few."""
    brackets = source.translate(None, _NO_BRACKETS)
    if len(brackets) <= DEEPEST_BRACKETS:
        return 0
    depths = list(accumulate(1 if bracket in b"([{" else -1 for bracket in brackets))
    return max(max(depths), -min(depths))


def _literals(source: bytes, found: Found, docs: list[Span]) -> list[Literal]:
    """Where string literals are, in order, and what they say; docstrings of functions are none."""
    spans = found.get("literals", [])
    if docs:
        documenting = {start for start, _ in found["doc.text"]}
        spans = [span for span in spans if span[0] not in documenting]
    return [(span, unquote(source[span[0] : span[1]].decode("utf-8", "replace"))) for span in spans]


def _functions(
    source: bytes, found: Found, code: bytes, literals: Sequence[Literal], row: Language
) -> tuple[list[Function], list[Class]]:
    starts = [start for (start, _), _ in literals]
    texts = [text for _, text in literals]
    names = _names(row)
    functions = []
    classes = []
    ends: list[int] = []
    scopes: list[Tokens] = [()]
    for start, end, kind, name in containers_of(source, found, row):
        while ends and ends[-1] <= start:
            ends.pop()
            scopes.pop()
        scope = scopes[-1]
        if kind == CLASS:
            classes.append(Class(start, end, name, scope))
        elif kind and len(ends) < DEEPEST:
            words = names(code, start, end)
            if starts:
                first = bisect_left(starts, start)
                inside = [text for text in texts[first : bisect_left(starts, end, first)] if text]
                if inside:
                    words["literals"] = tuple(inside)
            functions.append(_function((start, end, kind, name, scope, words, -1)))
        ends.append(end)
        scopes.append((*scope, name))
    return functions, classes


@lru_cache
def _tools(row: Language) -> tuple[Parser, Captures]:
    grammar = Grammar(row.load())
    return Parser(grammar), captures_of(row, grammar)


@lru_cache
def _names(row: Language) -> Names:
    return names_of(row)
