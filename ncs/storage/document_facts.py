"""What an index knows of its documents beyond their words: names used and defined, places, near duplicates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.errors import IndexDamaged
from ncs.storage.definitions import Symbols
from ncs.storage.duplicates import NearDuplicates
from ncs.storage.file_roles import Places
from ncs.storage.uses import References
from ncs.storage.words import WordTable
from ncs.text.stems import Stems

if TYPE_CHECKING:
    from ncs.storage.documents import Store

MOSTLY = 0.9
"""Share of the documents from which on a language is what the index is about: naming it tells no two apart."""
FILE = "structure.json"


@dataclass(frozen=True, slots=True)
class Structure:
    """Memory-mapped; a query reads what it needs."""

    references: References
    symbols: Symbols
    places: Places
    near_duplicates: NearDuplicates
    words: WordTable
    languages: tuple[str, ...]
    """Languages that a question need not name: nearly every document is in it."""
    stems: Stems
    """Of the words."""

    @classmethod
    def of(cls, references: References, words: WordTable, store: Store, *, deduplicate: bool = True) -> Structure:
        """From what documents use and say, and the finished store; without deduplicate near duplicates stay apart."""
        total = max(1, len(store))
        languages = store.counts.get("languages", {})
        mostly = tuple(name for name, count in sorted(languages.items()) if count >= MOSTLY * total)
        places = Places.of(store)
        near = NearDuplicates.none(total)
        if deduplicate:
            near = NearDuplicates.of(words, places.outline, store.path.parent)
        return cls(references, Symbols.of(store.names()), places, near, words, mostly, Stems(words.vocabulary))

    def save(self, folder: Path) -> None:
        """Write `references/`, `symbols/`, `places/`, near duplicates and `structure.json`; words save themselves."""
        for part in (self.references, self.symbols, self.places, self.near_duplicates):
            part.save(folder)
        (folder / FILE).write_text(json.dumps({"languages": self.languages}) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Structure:
        """Raises IndexDamaged where files are missing, truncated or do not fit each other."""
        try:
            languages = tuple(json.loads((folder / FILE).read_bytes())["languages"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexDamaged(f"cannot read {folder / FILE} ({error}); build the index again") from error
        places = Places.load(folder)
        near = NearDuplicates.load(folder, len(places))
        words, symbols = WordTable.load(folder), Symbols.load(folder)
        return cls(References.load(folder), symbols, places, near, words, languages, Stems(words.vocabulary))
