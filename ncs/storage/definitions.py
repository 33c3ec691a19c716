"""Definitions by name, and how query symbols such as `View.setPadding` or `HttpClient::post` match them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.arrays import load_arrays, save_arrays
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask

FOLDER = "definitions"
FILES = ("rows", "offsets", "spelled", "scopes")
SHORT = 3
"""Shorter names are not matched as prefixes."""
MOST = 2_000
"""At most so many definitions of one name are compared."""

EXACT, FOLDED, PREFIX = 1.0, 0.8, 0.4
"""Score of a match: same spelling; same but for case and underscores; prefix of a longer name."""
GUESSED = 0.3
"""Factor of a symbol recognized by a capital letter only."""
QUALIFIED = 0.25
"""Added where the qualifier (`View.`) is the scope of the definition; subtracted where it is not."""

_NAME = re.compile(r"[^\W\d]\w*")
_PATH = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|->|/)[^\W\d]\w*)*")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z]\d*_\w|^_+\w")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name in a query: `View.setPadding` has the qualifiers ("View",)."""

    name: str
    qualifiers: tuple[str, ...] = ()
    certain: bool = True
    """False if recognized by a capital letter only: `how to restart an Activity`."""


def folded(name: str) -> str:
    """A name without case and separators, equal for names that differ only in style.

    >>> folded("hide_soft_keyboard"), folded("hideSoftKeyboard"), folded("__init__")
    ('hidesoftkeyboard', 'hidesoftkeyboard', 'init')
    """
    return "".join(tokenize(name)) or name.lower()


def query_symbols(text: str) -> list[Symbol]:
    """The code names in a query: with dots, camel case, underscores or a bracket; or the only word.

    >>> query_symbols("View.setPadding"), query_symbols("close the file")
    ([Symbol(name='setPadding', qualifiers=('View',), certain=True)], [])
    >>> [(symbol.name, symbol.certain) for symbol in query_symbols("where is parseJson( called by Gson")]
    [('parseJson', True), ('Gson', False)]
    """
    alone = len(text.split()) == 1
    symbols: dict[Symbol, None] = {}
    for match in _PATH.finditer(text):
        names = _NAME.findall(match.group())
        called = text[match.end() : match.end() + 1] == "("
        before = text[: match.start()].rstrip()
        capital = names[0][0].isupper() and len(names[0]) > 1 and before != "" and not before.endswith((".", "?", "!"))
        qualified = len(names) > 1 and "/" not in match.group() and not match.group().endswith((".e", ".g"))
        certain = alone or called or qualified or any(_HUMP.search(name) for name in names)
        if certain or capital:
            symbols[Symbol(names[-1], tuple(names[:-1]), certain)] = None
    return list(symbols)


@dataclass(frozen=True, slots=True)
class DefinitionTable:
    """Folded name -> its definitions: rows int32 [n_definitions], offsets int64 [len(names) + 1]; and of each
    definition the CRC-32 of its name as spelled and of its innermost scope, folded, uint32: enough to compare.
    On disk in `<segment>/definitions/`, memory-mapped when loaded.
    """

    names: Vocabulary
    rows: NDArray[np.int32]
    offsets: NDArray[np.int64]
    spelled: NDArray[np.uint32]
    scopes: NDArray[np.uint32]

    @classmethod
    def of(cls, definitions: Iterable[tuple[str, str, str]]) -> DefinitionTable:
        """From (name, qualified name, kind) of every row, in order; those without a name of their own are left out."""
        numbers_of: dict[str, int] = {"": -1}  # each distinct name once: a definition takes twelve bytes
        keys, spelled, scopes = array("i"), array("I"), array("I")
        for name, qualified, kind in definitions:
            keys.append(numbers_of.setdefault("" if kind in _NAMELESS else folded(name), len(numbers_of) - 1))
            spelled.append(crc32(name.encode("utf-8", "replace")))
            scopes.append(_scope(qualified))
        del numbers_of[""]
        names = Vocabulary.of(numbers_of)
        numbers = np.full(len(numbers_of) + 1, -1, np.int64)
        for id, name in enumerate(names):
            numbers[numbers_of.get(name, -1)] = id
        numbers[-1] = -1
        ids = numbers[np.frombuffer(keys, np.intc)] if keys else np.zeros(0, np.int64)
        rows = np.argsort(ids, kind="stable")[np.count_nonzero(ids < 0) :]
        offsets = np.zeros(len(names) + 1, np.int64)
        np.cumsum(np.bincount(ids[ids >= 0], minlength=len(names)), out=offsets[1:])
        marks = (np.array(values, np.uint32)[rows] for values in (spelled, scopes))
        return cls(names, rows.astype(np.int32), offsets, *marks)

    def of_name(self, key: str) -> range:
        """The id of a folded name, as a range."""
        id = self.names.id(key)
        return range(0) if id is None else range(id, id + 1)

    def of_names(self, ids: range, most: int) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
        """The first definitions of names that stand side by side: rows, spellings, scopes."""
        here = slice(int(self.offsets[ids.start]), int(self.offsets[ids.stop]))
        here = slice(here.start, min(here.stop, here.start + most))
        return self.rows[here].astype(np.int64), self.spelled[here], self.scopes[here]

    def save(self, folder: Path) -> None:
        """Write `<folder>/definitions/`."""
        save_arrays(folder / FOLDER, self.names, {name: getattr(self, name) for name in FILES})

    @staticmethod
    def load(folder: Path) -> DefinitionTable:
        """Of a segment; raises IndexDamaged where files are missing or do not fit each other."""
        names, (rows, offsets, spelled, scopes) = load_arrays(folder / FOLDER, FILES)
        table = DefinitionTable(names, rows, offsets, spelled, scopes)
        if len(table.offsets) != len(table.names) + 1 or len(table.rows) != table.offsets[-1]:
            raise IndexDamaged(f"the files in {folder / FOLDER} do not fit each other; build the index again")
        return table


class Definitions:
    """The names that the documents of a snapshot define."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tables = [DefinitionTable.load(segment.path) for segment in snapshot.segments]

    def match(self, symbol: Symbol, *, allowed: Mask | None = None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows that define a symbol, ascending, and how well: EXACT, FOLDED or PREFIX, more where they are
        qualified as in the query. Prefixes are looked at only where there is no definition."""
        rows, spellings, scopes, whole = self._definitions(folded(symbol.name))
        spelled = spellings == crc32(symbol.name.encode("utf-8", "replace"))
        weights = np.where(spelled, EXACT, FOLDED) if whole else np.full(len(rows), PREFIX)
        if symbol.qualifiers:
            weights += np.where(scopes == _folded_crc(symbol.qualifiers[-1]), QUALIFIED, -QUALIFIED)
        if not symbol.certain:
            weights = weights * GUESSED
        if (mask := self._snapshot.allowed(allowed)) is not None:
            weights, rows = weights[mask[rows]], rows[mask[rows]]
        order = np.argsort(rows, kind="stable")
        return rows[order], weights[order]

    def _definitions(self, key: str) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32], bool]:
        """The first MOST definitions of a folded name, or where there is none of names that begin so: rows, spellings,
        scopes; and whether it is the whole name."""
        rows, spellings, scopes = self._live([table.of_name(key) for table in self._tables])
        if len(rows) or len(key) <= SHORT:
            return rows, spellings, scopes, True
        return *self._live([table.names.starting(key) for table in self._tables]), False

    def _live(self, ids: Sequence[range]) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
        """The first MOST definitions of names, given segment by segment, without tombstones."""
        live = self._snapshot.live
        most = MOST if live is None else len(self._snapshot)
        parts = []
        for table, segment, own in zip(self._tables, self._snapshot.segments, ids, strict=True):
            rows, spellings, scopes = table.of_names(own, most)
            here = slice(None) if live is None else live[rows + segment.first]
            parts.append((rows[here] + segment.first, spellings[here], scopes[here]))
        rows, spellings, scopes = (np.concatenate(each)[:MOST] for each in zip(*parts, strict=True))
        return rows, spellings, scopes


_NAMELESS = frozenset({"initializer", "block"})


def _scope(qualified_name: str) -> int:
    """The CRC-32 of the innermost scope, folded; 0 for a name without one."""
    scope = qualified_name.rpartition(".")[0].rpartition(".")[2]
    return _folded_crc(scope) if scope else 0


def _folded_crc(name: str) -> int:
    return crc32(folded(name).encode("utf-8", "replace"))
