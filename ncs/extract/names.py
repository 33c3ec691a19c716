"""The names in a function by field: by the query's capture, else by the bracket after them, else by their case.

The code of a file becomes names and spaces at the same offsets; the byte after a name is its tag. With
`Language.bracket_calls` a round bracket tags a call; captures of the query are tagged over it. The names of a function
are then those in its byte range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ncs.extract.languages import Language
from ncs.extract.source_bytes import Span

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.types import Field, Tokens

_CALL, _TYPE, _PARAMETER, _ENUM, _OWN_NAME, _BY_CASE = b"\1\2\3\4\5\6"
_TAGS: Mapping[str, int] = {
    "types": _TYPE,
    "parameters": _PARAMETER,
    "enums": _ENUM,
    "calls": _CALL,
    "names": _BY_CASE,
}
"""Captures and their tags; the later overwrites the earlier."""
_LETTERS = bytes(c if c > 127 or chr(c).isalnum() or c in b"_$" else 0x20 for c in range(256))
_LETTERS_AND_CALLS = bytes(_CALL if c == ord("(") else _LETTERS[c] for c in range(256))
_SEPARATED = [(bytes((tag,)), bytes((tag, 0x20))) for tag in range(_CALL, _BY_CASE + 1)]
_SPACED_BRACKET = re.compile(rb" \(")
_CACHE_SIZE = 200_000
"""Names in the cache before it is emptied, so that memory stays flat."""

_CALLS, _ENUMS, _IDENTIFIERS, _TYPES, _PARAMETERS, _OWN_NAMES = range(6)


def tag_names(captures: Mapping[str, Sequence[Node]], code: bytearray, language: Language) -> bytes:
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


def cut(tagged: bytes, start: int, end: int) -> bytes:
    """A range of tagged names, with the tag of a name that ends there."""
    return tagged[start : end + 1 if tagged[end : end + 1] <= b"\6" else end]


class FieldNames(dict[bytes, "tuple[int, str] | None"]):
    """Sorts tagged names into fields. As a dict: a name with its tag -> its list and spelling, None if ignored."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._ignored = language.ignored

    def __missing__(self, tagged: bytes) -> tuple[int, str] | None:
        if len(self) > _CACHE_SIZE:
            self.clear()
        tag = tagged[-1]
        name = (tagged[:-1] if tag <= _BY_CASE else tagged).decode("utf-8", "replace")
        number = self._list(name, tag) if name else -1
        entry = self[tagged] = (number, name) if number >= 0 else None
        return entry

    def _list(self, name: str, tag: int) -> int:
        if tag == _OWN_NAME:
            return _OWN_NAMES
        if tag == _TYPE:
            return _TYPES
        if tag == _ENUM:
            return _ENUMS
        if name in self._ignored or name == "$" or name[0].isdigit():
            return -1
        if tag == _CALL:
            return _CALLS
        if tag == _PARAMETER:
            return _PARAMETERS
        if not "A" <= name[0] <= "_":
            return _IDENTIFIERS
        if name.isupper() and len(name) > 1:
            return _ENUMS
        return _IDENTIFIERS if name[0] == "_" else _TYPES

    def of(self, tagged: bytes) -> dict[Field, Tokens]:
        """The names in tagged code by field, in order; fields without names are left out."""
        for tag, separated in _SEPARATED:
            tagged = tagged.replace(tag, separated)
        lists: tuple[list[str], ...] = ([], [], [], [], [], [])
        for number, name in filter(None, map(self.__getitem__, tagged.split())):
            lists[number].append(name)
        calls, enums, identifiers, types, parameters, own_names = lists
        identifiers += own_names[1:]  # those of functions inside
        words: dict[Field, Tokens] = {}
        if calls:
            words["calls"] = tuple(calls)
        if enums:
            words["enums"] = tuple(enums)
        if identifiers:
            words["identifiers"] = tuple(identifiers)
        if types:
            words["types"] = tuple(types)
        if parameters:
            words["parameters"] = tuple(parameters)
        return words


def of_spans(names: FieldNames, tagged: bytes, spans: Sequence[Span]) -> dict[Field, Tokens]:
    """The names in several ranges by field."""
    return names.of(b" ".join([cut(tagged, start, end) for start, end in spans]))
