"""What an index knows of its documents beyond their words: names they use, names they define, where they stand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.errors import IndexDamaged
from ncs.places import Places
from ncs.references import References
from ncs.symbols import Symbols
from ncs.vocabulary import WordTable

if TYPE_CHECKING:
    from ncs.store import Store

MOSTLY = 0.9
"""Share of the documents from which on a language is what the index is about: naming it tells no two apart."""
FILE = "structure.json"


@dataclass(frozen=True, slots=True)
class Structure:
    """Memory-mapped; a query reads what it needs."""

    references: References
    symbols: Symbols
    places: Places
    words: WordTable
    languages: tuple[str, ...]
    """Languages that a question need not name: nearly every document is in it."""

    @classmethod
    def of(cls, references: References, words: WordTable, store: Store) -> Structure:
        """From what documents use and say, and the finished store."""
        total = max(1, len(store))
        languages = store.counts.get("languages", {})
        mostly = tuple(name for name, count in sorted(languages.items()) if count >= MOSTLY * total)
        return cls(references, Symbols.of(store.names()), Places.of(store), words, mostly)

    def save(self, folder: Path) -> None:
        """Write `references/`, `symbols/`, `places/` and `structure.json`; words save themselves."""
        for part in (self.references, self.symbols, self.places):
            part.save(folder)
        (folder / FILE).write_text(json.dumps({"languages": self.languages}) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Structure:
        """Raises IndexDamaged where files are missing, truncated or do not fit each other."""
        try:
            languages = tuple(json.loads((folder / FILE).read_bytes())["languages"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexDamaged(f"cannot read {folder / FILE} ({error}); build the index again") from error
        return cls(
            References.load(folder), Symbols.load(folder), Places.load(folder), WordTable.load(folder), languages
        )
