"""The names in a function by field: what the query says of a name, else the bracket after it, else its case.

A file's code becomes names and spaces of the same length; the byte after a name is its tag. With
`Language.bracket_calls` a round bracket is the tag of a call; the query's captures are tagged over it. Then a
function's words are those of its range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ncs.extract.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node

    from ncs.types import Field, Tokens

_CALL, _TYPE, _PARAMETER, _ENUM, _NAME, _BY_CASE = b"\1\2\3\4\5\6"
_TAGS: Mapping[str, int] = {
    "types": _TYPE,
    "parameters": _PARAMETER,
    "enums": _ENUM,
    "calls": _CALL,
    "names": _BY_CASE,
}
"""Captures and their tags; of two the later."""
_LETTERS = bytes(c if c > 127 or chr(c).isalnum() or c in b"_$" else 0x20 for c in range(256))
_LETTERS_AND_CALLS = bytes(_CALL if c == ord("(") else _LETTERS[c] for c in range(256))
_SPACED = re.compile(rb" \(")
_MANY = 200_000
"""Names remembered before they are forgotten: memory stays flat."""

Place = tuple[int, str]
Tags = list[tuple[bytes, bytes]]
"""The tags of a file, and the same with a space behind."""
_CALLS, _ENUMS, _IDENTIFIERS, _TYPES, _PARAMETERS, _NAMES, _NOWHERE = range(7)


class Names(dict[bytes, Place]):
    """A name with its tag -> which of the lists of `words_of` it belongs to, and the name; found out once a name."""

    def __init__(self, row: Language) -> None:
        super().__init__()
        self._ignored = row.ignored

    def __missing__(self, tagged: bytes) -> Place:
        if len(self) > _MANY:
            self.clear()
        tag = tagged[-1]
        name = (tagged[:-1] if tag <= _BY_CASE else tagged).decode("utf-8", "replace")
        place = self[tagged] = self._list(name, tag) if name else _NOWHERE, name
        return place

    def _list(self, name: str, tag: int) -> int:
        if tag == _NAME:
            return _NAMES
        if tag == _TYPE:
            return _TYPES
        if tag == _ENUM:
            return _ENUMS
        if name in self._ignored or name in ("", "$") or name[0].isdigit():
            return _NOWHERE
        if tag == _CALL:
            return _CALLS
        if tag == _PARAMETER:
            return _PARAMETERS
        if not "A" <= name[0] <= "_":
            return _IDENTIFIERS
        if name.isupper() and len(name) > 1:
            return _ENUMS
        return _IDENTIFIERS if name[0] == "_" else _TYPES


def tagged(found: Mapping[str, list[Node]], code: bytearray, row: Language) -> tuple[bytes, Tags]:
    """Names and spaces with tags after names, one byte longer than the code; and what to replace to part them.

    code: without comments and strings.
    """
    names = code.translate(_LETTERS_AND_CALLS if row.bracket_calls else _LETTERS) + b" "
    if row.bracket_calls:
        for match in _SPACED.finditer(code):
            names[match.start()] = _CALL
    tags = {what: tag for what, tag in _TAGS.items() if what in found}
    tags |= {f"{kind}.name": _NAME for kind in row.kinds if f"{kind}.name" in found}
    for what, tag in tags.items():
        for node in found[what]:
            at = node.end_byte
            names[at if names[at - 1] != 0x20 else at - 1] = tag  # it may end with what is no letter: empty?
    used = {*tags.values(), _CALL} if row.bracket_calls else {*tags.values()}
    return bytes(names), [(bytes((tag,)), bytes((tag, 0x20))) for tag in sorted(used)]


def piece(code: bytes, start: int, end: int) -> bytes:
    """A range of a file's tagged code, with the tag of a name that ends it."""
    return code[start : end + 1 if code[end] <= _BY_CASE else end]


def words_of(code: bytes, tags: Tags, names: Names) -> dict[Field, Tokens]:
    """The names in a function's tagged code by field."""
    for tag, parted in tags:
        code = code.replace(tag, parted)
    calls: list[str] = []
    enums: list[str] = []
    identifiers: list[str] = []
    types: list[str] = []
    parameters: list[str] = []
    own: list[str] = []
    nowhere: list[str] = []
    lists = (calls, enums, identifiers, types, parameters, own, nowhere)
    for place, name in map(names.__getitem__, code.split()):  # names[...] would cost twice as much
        lists[place].append(name)
    identifiers += own[1:]  # those of functions in it
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
