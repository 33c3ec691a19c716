"""One source file into Documents with tree-sitter: one parse, one query, then byte ranges.

The query captures functions, classes, literals, comments and those names whose field the text around does not tell.
Nodes are not walked: the code of a file becomes names and spaces at the same offsets, and the byte after a name is its
tag, from the query's capture, else from the round bracket after it (`Language.bracket_calls`); other names go by their
case. The names of a function are those in its byte range.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from operator import itemgetter

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Query, QueryCursor

from ncs.errors import SourceError, unknown
from ncs.extract.comments import Comments, unquote
from ncs.extract.documents import Class, File, Function, Outlines, documents_of, with_distinct_ids
from ncs.extract.languages import LANGUAGES, Language
from ncs.extract.source_bytes import NOT_BRACKETS, Span, after_space, as_utf8, blanked
from ncs.types import Document, Field, Tokens

Captures = Mapping[str, Sequence[Node]]
"""Capture -> its nodes, in no order."""
Literal = tuple[int, str]
"""Where a string literal starts, and its text."""
Scope = tuple[int, int, str, str]
"""Start, end, kind (CLASS; empty for a scope without a document) and name."""

MAX_NESTING = 16
"""Functions and classes nested deeper are no documents or scopes: their code would grow with the depth squared."""
MAX_BRACKETS = 20_000
"""Most brackets open at once, or closed without being open. Captures take time with the square of their number, hours
for 1 MB; some 200,000 nested ones crash the process."""
MAX_LINE = 300_000
"""Bytes of a line; a file with a longer one is data or minified, and some grammars take minutes for it."""
CALLS, CALLS_PER_BYTE = 5_000, 0.1
"""Most calls of the parser's progress callback, one per hundred steps, for a file. The maximum of 4,000 large files was
0.022 per byte, that of 1 MB of `1,` 0.05.
"""
CPU_SECONDS = 10
"""Most seconds for parsing a file; ordinary files of 1 MB take 1. The calls are limited earlier, except where each step
is slower than the one before: Scala's grammar takes 20 seconds for 100 KB of `0a,`.
"""
PROBE, DEPTH_BYTES = 5_000, 2_000_000_000
"""The depth of the tree is sampled every PROBE bytes; DEPTH_BYTES is its maximum, summed over all bytes: for each of
these captures take 6 ns in Scala, Elixir and JavaScript. The maximum of 1,560 ordinary files was 7 million.
"""
STUCK, BALANCE = 2_000, 2
"""Most calls without progress: STUCK, and BALANCE for each call until then, since balancing the tree at the end takes
up to 1.7 times the calls of parsing. In code with errors Kotlin's grammar makes millions, of 300 us and 30 KB each.
"""
MATCHES = 128
"""Most unfinished matches of the query at once; captures take time with the square of their number. A Swift declaration
of 10,000 names had 10,000: minutes for 30 KB. Of 2,690 ordinary files two in Zig had more than this, and lost nothing.
"""
CLASS = "class"
_parsing = threading.Lock()

_FIELDS: tuple[Field, ...] = ("calls", "enums", "identifiers", "types", "parameters")
_CALL, _ENUM, _BY_CASE, _TYPE, _PARAMETER, _OWN_NAME = 1, 2, 3, 4, 5, 6
"""Tags: 1 + the number of the field; _OWN_NAME: of a function."""
_TAGS = {"types": _TYPE, "parameters": _PARAMETER, "enums": _ENUM, "calls": _CALL, "names": _BY_CASE}
"""Captures and their tags; the later overwrites the earlier."""
_LETTERS = bytes(c if c > 127 or chr(c).isalnum() or c in b"_$" else 0x20 for c in range(256))
_LETTERS_AND_CALLS = bytes(_CALL if c == ord("(") else _LETTERS[c] for c in range(256))
_SEPARATED = [(bytes((tag,)), bytes((tag, 0x20))) for tag in range(_CALL, _OWN_NAME + 1)]
_BLANK, _NO_BODY = b" \t\r\n\f\0", (b"...", b":", b"pass")
"""What comments and strings are blanked to, and the ends of functions that are only declared."""
_TEST_ATTRIBUTE = re.compile(rb"\w*(?:Fact|Theory|Tests?|TestCase(?:Source)?|TestMethod)")
"""Of C# and PHP. A method may have a hundred attributes: another pattern for each would exceed MATCHES."""
_SPACED_BRACKET = re.compile(rb" \(")
_WORD = re.compile(rb"\w+")
_CACHE_SIZE, _MAX_CACHED = 200_000, 100
"""Names in the cache before it is emptied, and bytes of the longest, so that memory stays flat."""


def read(
    source: bytes, language: Language, repository: str, path: str, *, outside: bool = False
) -> tuple[list[Document], bool]:
    """Documents of a file in source order, and whether it has syntax errors; none where a line is over MAX_LINE.

    outside: after the functions, classes and the top level too.
    Raises SourceError for more than MAX_BRACKETS open brackets, DEPTH_BYTES, and as `parse` does.
    """
    source = as_utf8(source)
    if _depth(source) > MAX_BRACKETS:
        raise SourceError(f"{path or 'the file'} is no program: over {MAX_BRACKETS:,} brackets are open")
    if len(source) > MAX_LINE and max(map(len, source.split(b"\n"))) > MAX_LINE:
        return [], True
    parser, cursor, names = _tools(language)
    root = _parse(source, parser, language)
    depths = (_depth_at(root, at) for at in range(PROBE, len(source), PROBE))
    if any(total * PROBE > DEPTH_BYTES for total in accumulate(depths)):
        raise SourceError(f"{path or 'the file'} is no program: its code is nested too deep")
    captures = cursor.captures(root)
    docstrings = _spans(captures, "doc")
    comments = Comments(source, _spans(captures, "comments"), docstrings, language)
    strings = _strings(captures)
    bare = blanked(comments.code, strings + _spans(captures, "nothing"))
    texts = ((start, unquote(source[start:end].decode("utf-8", "replace"))) for start, end in strings)
    literals = [(start, text) for start, text in texts if text]
    tagged = _tag_names(captures, bare, language)
    preambles: dict[int, int] = {}
    for start, end in _spans(captures, "preamble"):
        preambles[after_space(source, end)] = preambles.get(start, start)  # where the first one before it starts
    scopes = _scopes(source, captures, language, preambles)
    functions, classes = _functions_and_classes(scopes, tagged, literals, names)
    file = File(source, comments, language, repository, path, bare, _tests(source, captures, scopes, preambles))
    documents = documents_of(file, _without_overloads(functions, bare, captures))
    if outside:
        documents += Outlines(file, literals, partial(names.of, tagged)).documents(functions, classes)
    return with_distinct_ids(documents), root.has_error


@lru_cache
def _tools(language: Language) -> tuple[Parser, QueryCursor, _NamesByField]:
    grammar = Grammar(language.load())
    return Parser(grammar), QueryCursor(Query(grammar, language.query), match_limit=MATCHES), _NamesByField(language)


@lru_cache
def parser_of(language: str) -> Parser:
    """The parser of a language; raises BadInput for an unknown one, MissingExtra for one that is not installed."""
    if language not in LANGUAGES:
        raise unknown("language", language, LANGUAGES)
    return Parser(Grammar(LANGUAGES[language].load()))


def _parse(source: bytes, parser: Parser, language: Language) -> Node:
    """The root of the tree; where it has errors, of the source without what the grammar cannot parse."""
    root = parse(source, parser)
    if root.has_error and language.mask and (masked := language.mask(source)):
        return parse(bytes(blanked(source, masked, b" ")), parser)
    return root


def parse(source: bytes, parser: Parser) -> Node:
    """The root of the tree of a source; raises SourceError where it takes more than CALLS, STUCK or CPU_SECONDS."""
    calls = at_last_byte = 0
    end = time.thread_time() + CPU_SECONDS
    last_byte, limit = -1, CALLS + int(CALLS_PER_BYTE * len(source))
    chunk = len(source)

    def read_chunk(at: int, _: object) -> bytes:
        return source[at : at + chunk]

    def is_too_much(byte: int, _: bool) -> bool:
        nonlocal calls, last_byte, at_last_byte
        calls += 1
        if byte > last_byte:
            last_byte, at_last_byte = byte, calls
            return calls > limit or time.thread_time() > end
        return calls - at_last_byte > STUCK + BALANCE * at_last_byte

    with _parsing:  # other threads run during the callback
        try:
            tree = parser.parse(read_chunk, progress_callback=is_too_much)
        except ValueError:
            raise SourceError("it takes too long to parse") from None
        except SystemError as error:  # the parser calls back once more after an error (MemoryError)
            raise error.__cause__ or error from None
        finally:
            parser.reset()
    chunk = 100  # from now on only the text of names is read
    return tree.root_node


def _depth_at(root: Node, byte: int) -> int:
    """How many nodes enclose a byte."""
    cursor = root.walk()
    while cursor.goto_first_child_for_byte(byte) is not None:
        pass
    return cursor.depth


def _spans(captures: Captures, what: str) -> list[Span]:
    """The byte ranges of a capture, sorted."""
    return sorted([node.byte_range for node in captures.get(what, ())])


def _depth(source: bytes) -> int:
    """The most brackets that are open at once, or closed without being open; 0 if there are at most MAX_BRACKETS."""
    brackets = source.translate(None, NOT_BRACKETS)
    if len(brackets) <= MAX_BRACKETS:
        return 0
    depths = list(accumulate(1 if bracket in b"([{" else -1 for bracket in brackets))
    return max(max(depths), -min(depths))


def _strings(captures: Captures) -> list[Span]:
    """String literals in order, without docstrings of functions."""
    documenting = {node.start_byte for node in captures.get("doc.text", ())}
    return [span for span in _spans(captures, "literals") if span[0] not in documenting]


def _tests(source: bytes, captures: Captures, scopes: Sequence[Scope], preambles: Mapping[int, int]) -> list[Span]:
    """Where tests are: what is captured, and what it stands before; classes with tests as members; and by their names
    only where the file uses a library of tests."""
    spans = _spans(captures, "test") + (_spans(captures, "test.by_name") if "test.library" in captures else [])
    attributes = [(a, b) for a, b in _spans(captures, "test.attribute") if _TEST_ATTRIBUTE.fullmatch(source[a:b])]
    if members := _spans(captures, "test.member") + attributes:
        classes = [((start, end), True) for start, end, kind, _ in scopes if kind == CLASS]
        around: list[Span] = []
        for span, is_class in sorted([*classes, *((member, False) for member in members)], key=itemgetter(0)):
            while around and around[-1][1] <= span[0]:
                around.pop()
            if is_class:
                around.append(span)
            else:
                spans.append(around[-1] if around else span)
    starts = {preambles.get(start, start) for start, _ in spans}
    return [*spans, *((start, end) for start, end, *_ in scopes if start in starts)]


def _without_overloads(functions: Sequence[Function], bare: bytes | bytearray, captures: Captures) -> list[Function]:
    """The functions without declarations of overloads; the first of them stays where the file does not implement it."""
    declared = {
        start for start, end in _spans(captures, "overload") if bare[start:end].rstrip(_BLANK).endswith(_NO_BODY)
    }
    names = {(each.scope, each.name) for each in functions if each.start not in declared} if declared else set()
    kept = []
    for each in functions:
        if each.start in declared:
            if (each.scope, each.name) in names:
                continue
            names.add((each.scope, each.name))
        kept.append(each)
    return kept


def _tag_names(captures: Captures, code: bytearray, language: Language) -> bytes:
    """Names, spaces and tags, one byte longer than the code, which has comments and strings blanked out."""
    tags = [(tag, captures[what]) for what, tag in _TAGS.items() if what in captures]
    tags += [(_OWN_NAME, captures[f"{kind}.name"]) for kind in language.kinds if f"{kind}.name" in captures]
    names = code.translate(_LETTERS_AND_CALLS if language.bracket_calls else _LETTERS) + b" "
    if language.bracket_calls:
        for match in _SPACED_BRACKET.finditer(code):
            names[match.start()] = _CALL
    for tag, nodes in tags:
        for end in [node.end_byte for node in nodes]:
            if end:  # 0: a name that is missing at the start of a file
                # a capture may end with what is no letter (`empty?`): then its last byte is the tag
                names[end if names[end - 1] != 0x20 else end - 1] = tag
    return bytes(names)


class _NamesByField(dict[bytes, "tuple[int, str] | None"]):
    """Sorts tagged names into fields. As a dict: a name with its tag -> number of its list, and spelling; None if
    it is ignored."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._ignored = language.ignored

    def __missing__(self, tagged: bytes) -> tuple[int, str] | None:
        if len(self) > _CACHE_SIZE:
            self.clear()
        tag = tagged[-1]
        name = (tagged[:-1] if tag <= _OWN_NAME else tagged).decode("utf-8", "replace")
        tag = self._final_tag(name, tag) if name else 0
        entry = (tag - 1, name) if tag else None
        if len(tagged) <= _MAX_CACHED:
            self[tagged] = entry
        return entry

    def _final_tag(self, name: str, tag: int) -> int:
        """0: ignored."""
        if tag in (_OWN_NAME, _TYPE, _ENUM):
            return tag
        if name in self._ignored or name == "$" or name[0].isdigit():
            return 0
        if tag in (_CALL, _PARAMETER):
            return tag
        if not "A" <= name[0] <= "_":
            return _BY_CASE
        if name.isupper() and len(name) > 1:
            return _ENUM
        return _BY_CASE if name[0] == "_" else _TYPE

    def of(self, tagged: bytes, spans: Sequence[Span]) -> dict[Field, Tokens]:
        """The names in ranges of tagged code by field, in order; fields without names are left out."""
        # a name that ends where its range does has its tag behind it
        tagged = b" ".join([tagged[start : end + (tagged[end] <= _OWN_NAME)] for start, end in spans])
        for tag, separated in _SEPARATED:
            tagged = tagged.replace(tag, separated)
        lists: tuple[list[str], ...] = ([], [], [], [], [], [])
        for number, name in filter(None, map(self.__getitem__, tagged.split())):
            lists[number].append(name)
        lists[_BY_CASE - 1].extend(lists[_OWN_NAME - 1][1:])  # those of functions inside
        return {field: tuple(names) for field, names in zip(_FIELDS, lists, strict=False) if names}


def _functions_and_classes(
    scopes: Sequence[Scope], tagged: bytes, literals: Sequence[Literal], names: _NamesByField
) -> tuple[list[Function], list[Class]]:
    functions = []
    classes = []
    ends: list[int] = []
    enclosing: list[Tokens] = [()]
    for start, end, kind, name in scopes:
        while ends and ends[-1] <= start:
            ends.pop()
            enclosing.pop()
        if len(ends) >= MAX_NESTING:
            continue
        scope = enclosing[-1]
        if kind == CLASS:
            classes.append(Class(start, end, name, scope))
        elif kind:
            words = names.of(tagged, [(start, end)])
            if inside := literals[bisect_left(literals, (start, "")) : bisect_left(literals, (end, ""))]:
                words["literals"] = tuple(text for _, text in inside)
            functions.append(Function(start, end, kind, name, scope, words))
        ends.append(end)
        enclosing.append((*scope, name))
    return functions, classes


def _scopes(source: bytes, captures: Captures, language: Language, preambles: Mapping[int, int]) -> list[Scope]:
    """Functions, classes and what else names a scope (with an empty kind), the enclosing before the enclosed.

    preambles: where those before some code start, by where it does.
    """
    decorated: dict[int, int] = {}
    if "decorated" in captures:
        starts = ([start for start, _ in _spans(captures, what)] for what in ("decorated.definition", "decorated"))
        decorated = dict(zip(*starts, strict=False))
    titles = {}  # `TEST(Queue, PopsInOrder)` has the name Queue.PopsInOrder
    for (start, _), (a, b) in zip(_spans(captures, "test"), _spans(captures, "test.title"), strict=False):
        titles[start] = b".".join(_WORD.findall(source, a, b)).decode("utf-8", "replace")
    scopes = []
    for kind in (*language.kinds, CLASS, "scope"):
        if kind not in captures:
            continue
        nodes, names = _spans(captures, kind), _spans(captures, f"{kind}.name")
        if len(names) != len(nodes):  # a node in error may have two, a kind may have none
            names = _pair(nodes, names)
        for (start, end), (a, b) in zip(nodes, names, strict=True):
            name = source[a:b].decode("utf-8", "replace") or kind
            if not name[0].isalpha():
                name = _unquote_name(name) or kind
            start = preambles.get(start, start)
            if kind in (CLASS, "scope"):
                name = name.partition("<")[0].rpartition(".")[2].strip()
                scopes.append((start, end, CLASS if kind == CLASS else "", name))
            else:
                scopes.append((decorated.get(start, start), end, kind, titles.get(start) or name))
    scopes.sort(key=lambda scope: (scope[0], -scope[1], *scope[2:]))
    return _join_equations(source, scopes) if language.equations else scopes


def _unquote_name(name: str) -> str:
    """A name without quotes around it, or the colon of a Ruby symbol."""
    if name[:1] in ("'", '"', "`") and name[-1] == name[0]:
        return name[1:-1]
    return name[1:] if name[:1] == ":" and name[1:2].isalpha() else name


def _pair(nodes: list[Span], names: list[Span]) -> list[Span]:
    """For every node the first unused name that starts in it."""
    left = iter(names)
    return [next((name for name in left if name[0] >= start), (start, start)) for start, _ in nodes]


def _join_equations(source: bytes, scopes: list[Scope]) -> list[Scope]:
    """Consecutive equations of one function joined."""
    joined: list[Scope] = []
    numbers: dict[int, int] = {}  # where the next equation would start -> number of the function
    following = {end: after_space(source, end) for end in {end for _, end, *_ in scopes}}  # many may end together
    for start, end, kind, name in scopes:
        number = numbers.pop(start, -1)
        if number >= 0 and kind and joined[number][2:] == (kind, name):
            joined[number] = (joined[number][0], end, kind, name)
        else:
            number = len(joined)
            joined.append((start, end, kind, name))
        numbers[following[end]] = number
    return joined
