"""The names in a function by field: what the query says of a name, else the bracket after it, else its case.

A file's code becomes names and spaces of the same length; the byte after a name is its tag. With
`Language.bracket_calls` a round bracket is the tag of a call; the query's captures are tagged over it. Then a
function's words are those of its range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ncs.extract.languages import Language

if TYPE_CHECKING:
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
LETTERS = bytes(c if c > 127 or chr(c).isalnum() or c in b"_$" else 0x20 for c in range(256))
LETTERS_AND_CALLS = bytes(_CALL if c == ord("(") else LETTERS[c] for c in range(256))
_LAST_TAG = bytes((_BY_CASE,))
_PARTED = [(bytes((tag,)), bytes((tag, 0x20))) for tag in range(_CALL, _BY_CASE + 1)]
_SPACED = re.compile(rb" \(")
_MANY = 200_000
"""Names remembered before they are forgotten: memory stays flat."""

Place = tuple[int, str]
_CALLS, _ENUMS, _IDENTIFIERS, _TYPES, _PARAMETERS, _NAMES, _NOWHERE = range(7)


class Names(Protocol):
    """The names in a range of tagged code by field."""

    def __call__(self, code: bytes, start: int, end: int, /) -> dict[Field, Tokens]:
        """Fields with names only; a tag directly behind the range is that of its last name."""


def names_of(row: Language) -> Names:
    """Finds the names of a language's functions."""
    return NamesInPython(place_of(row))


def place_of(row: Language) -> Callable[[bytes], Place]:
    """A name with its tag -> which of the lists of names it belongs to, and the name."""
    return partial(_place, row.ignored)


def _place(ignored: frozenset[str], tagged: bytes) -> Place:
    tag = tagged[-1]
    name = (tagged[:-1] if tag <= _BY_CASE else tagged).decode("utf-8", "replace")
    return (_list(name, tag, ignored) if name else _NOWHERE), name


def _list(name: str, tag: int, ignored: frozenset[str]) -> int:
    if tag == _NAME:
        return _NAMES
    if tag == _TYPE:
        return _TYPES
    if tag == _ENUM:
        return _ENUMS
    if name in ignored or name in ("", "$") or name[0].isdigit():
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


class NamesInPython(dict[bytes, Place]):
    """A name with its tag -> its place, found out once."""

    def __init__(self, place: Callable[[bytes], Place]) -> None:
        super().__init__()
        self._place = place

    def __missing__(self, tagged: bytes) -> Place:
        if len(self) > _MANY:
            self.clear()
        place = self[tagged] = self._place(tagged)
        return place

    def __call__(self, code: bytes, start: int, end: int, /) -> dict[Field, Tokens]:
        """The names in a range of tagged code by field."""
        code = piece(code, start, end)
        for tag, parted in _PARTED:
            code = code.replace(tag, parted)
        calls: list[str] = []
        enums: list[str] = []
        identifiers: list[str] = []
        types: list[str] = []
        parameters: list[str] = []
        own: list[str] = []
        nowhere: list[str] = []
        lists = (calls, enums, identifiers, types, parameters, own, nowhere)
        for place, name in map(self.__getitem__, code.split()):  # self[...] would cost twice as much
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


def tagged(found: Mapping[str, list[tuple[int, int]]], code: bytearray, row: Language) -> bytes:
    """Names and spaces with tags after names, one byte longer than the code.

    code: without comments and strings.
    """
    marks = [(tag, found[what]) for what, tag in _TAGS.items() if what in found]
    marks += [(_NAME, found[f"{kind}.name"]) for kind in row.kinds if f"{kind}.name" in found]
    letters = LETTERS_AND_CALLS if row.bracket_calls else LETTERS
    return tagged_in_python(code, letters, marks)


def tagged_in_python(code: bytearray, letters: bytes, marks: Iterable[tuple[int, Iterable[tuple[int, int]]]]) -> bytes:
    """letters translates bytes, marks are tags for ranges, of two the later."""
    names = code.translate(letters) + b" "
    if letters is LETTERS_AND_CALLS:
        for match in _SPACED.finditer(code):
            names[match.start()] = _CALL
    for tag, spans in marks:
        for _, at in spans:
            if at:  # else a name that is missing at the start
                names[at if names[at - 1] != 0x20 else at - 1] = tag  # it may end with what is no letter: empty?
    return bytes(names)


def piece(code: bytes, start: int, end: int) -> bytes:
    """A range of a file's tagged code, with the tag of a name that ends it."""
    return code[start : end + 1 if code[end : end + 1] <= _LAST_TAG else end]
