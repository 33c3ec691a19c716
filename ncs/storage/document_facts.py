"""Facts about documents beyond their words: names used and defined, file roles, near duplicates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ncs.errors import reading
from ncs.files import read_json
from ncs.storage.documents import DocumentTable
from ncs.storage.duplicates import Duplicates, NearDuplicates
from ncs.storage.file_roles import OUTLINES, FileRoles, write_file_roles
from ncs.storage.names import DECLARED, DEFINITIONS, USES, Definitions, DefinitionTable, NameUses, Uses, innermost
from ncs.storage.snapshot import Snapshot
from ncs.storage.words import Words, WordTable
from ncs.types import SECTION

LANGUAGE_SHARE = 0.9
"""Queries ignore the name of a language that has at least this share of the documents."""
FILE = "languages.json"
UNNAMED = frozenset({"initializer", "block", "section"})
"""Kinds of documents without a name of their own."""
DECLARING = OUTLINES | {"definition"}
"""Kinds of documents that may declare names."""


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """The facts of a snapshot, memory-mapped. languages: of nearly every document; queries ignore their names."""

    uses: Uses
    definitions: Definitions
    file_roles: FileRoles
    duplicates: Duplicates
    words: Words
    languages: tuple[str, ...]

    @classmethod
    def open(cls, snapshot: Snapshot) -> DocumentFacts:
        """Raises IndexDamaged where files are missing, truncated or do not fit each other."""
        path = snapshot.statistics / FILE
        with reading(path):
            languages = tuple(map(str, read_json(path)))
        words = Words(snapshot)
        duplicates = Duplicates(snapshot, words)
        return cls(Uses(snapshot), Definitions(snapshot), FileRoles(snapshot), duplicates, words, languages)


def write_facts(
    segment: Path, uses: NameUses, words: WordTable, documents: DocumentTable, *, deduplicate: bool
) -> None:
    """Write the facts of a new segment, except its words; deduplicate: also find near duplicates."""
    roles = write_file_roles(documents, segment)
    duplicates = NearDuplicates.of(words, roles.outline) if deduplicate else NearDuplicates.none(len(documents))
    duplicates.save(segment)
    uses.save(segment / USES)
    DefinitionTable.of(_definitions(documents)).save(segment / DEFINITIONS)
    if len((declared := DefinitionTable.of(_declarations(documents))).rows):
        declared.save(segment / DECLARED)


def _definitions(documents: DocumentTable) -> Iterator[tuple[int, str, str]]:
    """(row, name, innermost scope) of named documents, by ascending row of each name; top-level code, named like its
    file, only if nothing else has its name."""
    names, modules = set[str](), list[tuple[int, str]]()
    for row, (name, qualified, kind) in enumerate(documents.names()):
        if kind == "module":
            modules.append((row, name))
        elif kind not in UNNAMED:
            names.add(name)
            yield row, name, innermost(qualified)
    yield from ((row, name, "") for row, name in modules if name not in names)


def _declarations(documents: DocumentTable) -> Iterator[tuple[int, str, str]]:
    """(row, name, class) of the names that these documents declare."""
    rows = enumerate(documents.names())
    outlines = [(row, name if kind == "class" else "") for row, (name, _, kind) in rows if kind in DECLARING]
    for (row, scope), names in zip(outlines, documents.declared([row for row, _ in outlines]), strict=True):
        yield from ((row, name, scope) for name in names if name != scope)


def write_languages(statistics: Path, documents: DocumentTable) -> None:
    """Write the languages of nearly every document of code."""
    code = ~documents.with_labels("kind", [SECTION])
    names = documents.counts()["languages"] if code.any() else ()
    mostly = [name for name in names if documents.with_labels("language", [name])[code].mean() >= LANGUAGE_SHARE]
    (statistics / FILE).write_text(json.dumps(mostly) + "\n", encoding="utf-8")
