"""The names each document uses and defines, and how query symbols such as `View.setPadding` match definitions."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ncs.storage.arrays import ArrayTable, are_below, are_offsets, both, distinct, gather_several, offsets_of, values_of
from ncs.storage.words import BatchWords, WordTable, batch_words
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary, merge
from ncs.types import Document, Field, Mask, Rows

if TYPE_CHECKING:
    from ncs.storage.snapshot import Snapshot

USES, DEFINITIONS, DECLARED = "uses", "definitions", "declared"
"""Folders of a segment."""
USED: tuple[Field, ...] = ("calls", "types", "enums")
MAX_LETTERS, MAX_SHORT = 80, 3
"""Most letters of a stored name, as longer ones are generated, and of a name that is never matched as a prefix."""
MAX_DEFINITIONS = 2_000
"""Most definitions of one name that are compared."""

EXACT, FOLDED, PREFIX = 1.0, 0.8, 0.4
"""Score of a match: same spelling; same but for case and underscores; prefix of a longer name."""
UNCERTAIN = 0.3
"""Factor of a symbol recognized by a capital letter only."""
UNSCOPED = 0.1
"""Added to an exact or folded match without a scope, if the query has no qualifier."""
QUALIFIED = 0.25
"""Added if the qualifier (`View.`) is the scope of the definition, else subtracted."""

_NAME = re.compile(r"[^\W\d]\w*")
NAME_PATH = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|->|/)[^\W\d]\w*)*")
_SEPARATOR = re.compile(r"[\s|,*]|(?<=\w)-(?=\w)")
"""What stands between the words of a query: `hide-keyboard` and `hide|keyboard` are two words."""
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z]\d*_\w|^_+\w")


@dataclass(frozen=True, slots=True)
class NameUses(ArrayTable):
    """The distinct names of each document: ids int32 [n_uses] and offsets int64 [n_documents + 1] into `names`;
    documents int32 [len(names)]: how many use each. On disk in `<segment>/uses/`.
    """

    names: Vocabulary
    ids: NDArray[np.int32]
    offsets: Rows
    documents: NDArray[np.int32]

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.offsets) - 1

    def fits(self) -> bool:
        return len(self.documents) == len(self.names) and len(self.ids) == self.offsets[-1]

    def is_sound(self, documents: int) -> bool:
        leads = are_offsets(self.offsets, len(self.ids)) and are_below(self.ids, len(self.names))
        return leads and are_below(self.documents, 1 << 31) and len(self) == documents

    def of(self, rows: Rows) -> tuple[NDArray[np.int32], Rows]:
        """The names used by these rows, joined: ids [m], and how many each row uses [len(rows)]."""
        return values_of(self.ids, self.offsets, rows)


class Uses:
    """The names that the documents of a snapshot use, in ids of the first segment's vocabulary, extended. documents:
    int32 [len(names)], how many use each, counted in the first segment that has the name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._firsts = snapshot.firsts
        self._parts = [NameUses.load(segment.path / USES) for segment in snapshot.segments]
        first, *others = self._parts
        self.names, self._ids = merge(first.names, [part.names for part in others])
        self.documents = first.documents
        if others:
            self.documents = np.concatenate([first.documents, np.zeros(len(self.names) - len(first.names), np.int32)])
            for part, ids in zip(others, self._ids, strict=True):
                new = ids >= len(first.names)
                self.documents[ids[new]] = np.maximum(self.documents[ids[new]], part.documents[new])

    def __len__(self) -> int:
        """Number of documents in the first segment, where `documents` was counted."""
        return len(self._parts[0])

    def of(self, rows: Rows) -> tuple[NDArray[np.int32], Rows]:
        """`NameUses.of`, over all segments."""

        def read(number: int, local: Rows) -> tuple[NDArray[np.int32], Rows]:
            ids, counts = self._parts[number].of(local)
            return self._ids[number - 1][ids] if number else ids, counts

        return gather_several(self._firsts, rows, read)

    def rows_with(self, names: Iterable[str]) -> Rows:
        """The rows that use one of these names, as spelled; ascending, tombstones included."""
        rows = [np.zeros(0, np.int64)]
        for name in names:
            for first, part in zip(self._firsts.tolist(), self._parts, strict=True):
                if (id := part.names.id(name)) is not None:
                    rows.append(np.searchsorted(part.offsets, np.flatnonzero(part.ids == id), side="right") - 1 + first)
        return distinct(np.concatenate(rows))


def name_uses(table: WordTable) -> NameUses:
    """The table of names of `batch_uses`, with ids ascending in each document."""
    owners = np.repeat(np.arange(len(table.offsets) - 1), np.diff(table.offsets))
    ids = (np.sort((owners << 32) | table.ids) & 0xFFFFFFFF).astype(np.int32)
    documents = np.bincount(ids, minlength=len(table.vocabulary)).astype(np.int32)
    return NameUses(table.vocabulary, ids, table.offsets, documents)


def batch_uses(documents: Iterable[Document]) -> BatchWords:
    """Each document's distinct names, as `WordTableBuilder.add` takes them."""
    return batch_words([[_names(document)] for document in documents])


def _names(document: Document) -> list[str]:
    distinct_names = dict.fromkeys(name for field in USED for name in document.words.get(field, ()))
    return [name for name in distinct_names if len(name) <= MAX_LETTERS]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name in a query: `View.setPadding` has the qualifiers ("View",)."""

    name: str
    qualifiers: tuple[str, ...] = ()
    certain: bool = True
    """False if recognized by a capital letter only: `how to restart an Activity`."""


def innermost(qualified_name: str) -> str:
    """The innermost scope of a qualified name, "" for none."""
    return qualified_name.rpartition(".")[0].rpartition(".")[2]


def folded(name: str) -> str:
    """A name without case and separators, equal for names that differ only in style.

    >>> folded("hide_soft_keyboard"), folded("hideSoftKeyboard"), folded("__init__")
    ('hidesoftkeyboard', 'hidesoftkeyboard', 'init')
    """
    return "".join(tokenize(name)) or name.lower()


def query_symbols(text: str) -> list[Symbol]:
    """The code names in a query: with dots, camel case, underscores or a call's bracket; or its only word.

    >>> query_symbols("View.setPadding"), query_symbols("close the file")
    ([Symbol(name='setPadding', qualifiers=('View',), certain=True)], [])
    >>> [(symbol.name, symbol.certain) for symbol in query_symbols("where is parseJson( called by Gson")]
    [('parseJson', True), ('Gson', False)]
    """
    alone = len(_SEPARATOR.split(text.strip().strip("|,*"))) == 1
    symbols: dict[Symbol, None] = {}
    for match in NAME_PATH.finditer(text):
        names = _NAME.findall(match.group())
        called = text[match.end() : match.end() + 1] == "("
        end = match.start()
        while end and text[end - 1].isspace():
            end -= 1
        capital = names[0][0].isupper() and len(names[0]) > 1 and text[end - 1 : end] not in ("", ".", "?", "!")
        qualified = len(names) > 1 and "/" not in match.group() and not match.group().endswith((".e", ".g"))
        certain = alone or called or qualified or any(_HUMP.search(name) for name in names)
        if certain or capital:
            symbols[Symbol(names[-1], tuple(names[:-1]), certain)] = None
    return list(symbols)


@dataclass(frozen=True, slots=True)
class DefinitionTable(ArrayTable):
    """Folded name -> its definitions: rows int32 [n_definitions], offsets int64 [len(names) + 1], and the CRC-32 of the
    name as spelled and of the folded innermost scope (0: none), uint32 [n_definitions]. On disk in
    `<segment>/definitions/`; in `<segment>/declared/` names declared in a document: constants, macros, type aliases.
    """

    names: Vocabulary
    rows: NDArray[np.int32]
    offsets: NDArray[np.int64]
    spelled: NDArray[np.uint32]
    scopes: NDArray[np.uint32]

    @classmethod
    def of(cls, definitions: Iterable[tuple[int, str, str]]) -> DefinitionTable:
        """Make the table from (row, name, scope) of every definition, by ascending row of each name."""
        numbers: dict[str, int] = {}  # each distinct name once: a definition takes sixteen bytes
        rows, keys, spelled, scopes = array("i"), array("i"), array("I"), array("I")
        for row, name, scope in definitions:
            if key := folded(name):
                rows.append(row)
                keys.append(numbers.setdefault(key, len(numbers)))
                spelled.append(_crc(name))
                scopes.append(_folded_crc(scope) if scope else 0)
        names, ids = Vocabulary.numbered(numbers)
        owners = ids[np.array(keys, np.int32)]
        order = np.argsort(owners, kind="stable")
        marks = (np.array(values, np.uint32)[order] for values in (spelled, scopes))
        offsets = offsets_of(np.bincount(owners, minlength=len(names)))
        return cls(names, np.array(rows, np.int32)[order], offsets, *marks)

    def fits(self) -> bool:
        return len(self.offsets) == len(self.names) + 1 and len(self.rows) == self.offsets[-1]

    def is_sound(self, documents: int) -> bool:
        marks = len(self.spelled) == len(self.scopes) == len(self.rows)
        return marks and are_offsets(self.offsets, len(self.rows)) and are_below(self.rows, documents)

    def of_names(self, ids: range) -> Rows:
        """The definitions of consecutive names, [3, n]: rows, spellings, scopes."""
        here = slice(self.offsets[ids.start], self.offsets[ids.stop])
        return np.stack([self.rows[here], self.spelled[here], self.scopes[here]]).astype(np.int64)


class Definitions:
    """The names that the documents of a snapshot define."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        segments = [(segment.first, segment.path) for segment in snapshot.segments]
        self._tables = [(first, DefinitionTable.load(path / DEFINITIONS)) for first, path in segments]
        declaring = [(first, path / DECLARED) for first, path in segments if (path / DECLARED).is_dir()]
        self._declared = [(first, DefinitionTable.load(path)) for first, path in declaring]

    def match(self, symbol: Symbol, *, allowed: Mask | None = None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows that define a symbol, ascending, and their weights: EXACT, FOLDED or PREFIX, plus QUALIFIED or UNSCOPED.
        Declared names match as spelled only, prefixes only without other matches."""
        key = folded(symbol.name)
        found, declared = self._live(self._tables, key), self.declaring(symbol.name)
        whole = found.shape[1] + declared.shape[1] > 0 or len(key) <= MAX_SHORT
        found = found if whole else self._live(self._tables, key, prefixes=True)
        (rows, spellings, scopes), exact = np.concatenate([found, declared], axis=1), _crc(symbol.name)
        weights = np.where(spellings == exact, EXACT, FOLDED) if whole else np.full(len(rows), PREFIX)
        if symbol.qualifiers:
            weights += np.where(scopes == _folded_crc(symbol.qualifiers[-1]), QUALIFIED, -QUALIFIED)
        elif whole:
            weights += np.where(scopes == 0, UNSCOPED, 0.0)
        if not symbol.certain:
            weights = weights * UNCERTAIN
        if (mask := both(allowed, self._snapshot.live)) is not None:
            weights, rows = weights[mask[rows]], rows[mask[rows]]
        order = np.lexsort((-weights, rows))
        first = np.concatenate([[True], np.diff(rows[order]) > 0])[: len(order)]
        return rows[order[first]], weights[order[first]]

    def declaring(self, name: str) -> Rows:
        """The documents of other names that declare a name as spelled, as `of_names`."""
        found = self._live(self._declared, folded(name))
        return found[:, found[1] == _crc(name)]

    def constructors(self, symbol: Symbol) -> Rows:
        """Rows of functions named like their class, if the symbol is that class without a qualifier."""
        found = self._live(self._tables, folded(symbol.name))
        mine: Rows = found[0, (found[2] == _folded_crc(symbol.name)) & (not symbol.qualifiers)]
        return mine

    def names(self) -> Iterator[str]:
        """The folded names of all segments, some of them several times."""
        return chain.from_iterable(table.names for _, table in self._tables)

    def _live(self, tables: Sequence[tuple[int, DefinitionTable]], key: str, *, prefixes: bool = False) -> Rows:
        """The first MAX_DEFINITIONS live definitions of a folded name, or of all names with this prefix, as `of_names`.
        tables: (first row of the segment, table)."""
        parts = [np.zeros((3, 0), np.int64)]
        for first, table in tables:
            id = table.names.id(key)
            whole = range(0) if id is None else range(id, id + 1)
            parts.append(table.of_names(table.names.starting(key) if prefixes else whole))
            parts[-1][0] += first
        definitions, live = np.concatenate(parts, axis=1), self._snapshot.live
        return (definitions if live is None else definitions[:, live[definitions[0]]])[:, :MAX_DEFINITIONS]


def _folded_crc(name: str) -> int:
    return _crc(folded(name))


def _crc(name: str) -> int:
    return crc32(name.encode("utf-8", "replace"))
