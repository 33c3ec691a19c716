"""What an index knows of its documents beyond their words: names used and defined, file roles, near duplicates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.errors import IndexDamaged
from ncs.storage.definitions import Definitions, DefinitionTable
from ncs.storage.duplicates import Duplicates, NearDuplicates
from ncs.storage.file_roles import FileRoles, FileRoleTable
from ncs.storage.uses import NameUses, Uses
from ncs.storage.words import Words, WordTable

if TYPE_CHECKING:
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot

MOSTLY = 0.9
"""Share of the documents from which on a language is what the index is about: naming it tells no two apart."""
FILE = "languages.json"


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """Of a snapshot, memory-mapped; a query reads what it needs."""

    uses: Uses
    definitions: Definitions
    file_roles: FileRoles
    duplicates: Duplicates
    words: Words
    languages: tuple[str, ...]
    """Languages that a query need not name: nearly every document is in it."""

    @classmethod
    def open(cls, snapshot: Snapshot) -> DocumentFacts:
        """Raises IndexDamaged where files are missing, truncated or do not fit each other."""
        path = snapshot.statistics / FILE
        try:
            languages = tuple(map(str, json.loads(path.read_bytes())))
        except (OSError, ValueError, TypeError) as error:
            raise IndexDamaged(f"cannot read {path} ({error}); build the index again") from error
        words = Words(snapshot)
        duplicates = Duplicates(snapshot, words)
        return cls(Uses(snapshot), Definitions(snapshot), FileRoles(snapshot), duplicates, words, languages)


def write_facts(
    segment: Path, uses: NameUses, words: WordTable, documents: DocumentTable, *, deduplicate: bool
) -> None:
    """The facts of a new segment, but for its words; without deduplicate no near duplicates are looked for."""
    roles = FileRoleTable.of(documents)
    near = NearDuplicates.none(len(documents))
    if deduplicate:
        near = NearDuplicates.of(words, roles.outline, segment)
    for part in (uses, DefinitionTable.of(documents.names()), roles, near):
        part.save(segment)


def write_languages(statistics: Path, documents: DocumentTable) -> None:
    """The languages that nearly every document is in."""
    counts, total = documents.counts.get("languages", {}), max(1, len(documents))
    mostly = [name for name, count in sorted(counts.items()) if count >= MOSTLY * total]
    (statistics / FILE).write_text(json.dumps(mostly) + "\n", encoding="utf-8")
