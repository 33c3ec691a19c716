"""Checks of all values of a snapshot that is not trusted or may be damaged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ncs.errors import IndexDamaged, reading
from ncs.files import map_array
from ncs.storage.arrays import are_finite
from ncs.storage.duplicates import NearDuplicates
from ncs.storage.file_roles import FOLDER, TESTS, FileRoleTable, read_mask, read_sections
from ncs.storage.files import FileTable
from ncs.storage.names import DECLARED, DEFINITIONS, USES, DefinitionTable, NameUses
from ncs.storage.postings import PostingTable, TermStatistics
from ncs.storage.words import WordTable
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ncs.storage.snapshot import Snapshot

WORDS = "bm25"


def check_values(snapshot: Snapshot) -> None:
    """Raise IndexDamaged for invalid offsets and ids and for numbers that are not finite. Reads every file."""
    for path in (snapshot.folder / name for name in snapshot.description.files):
        with reading(path):
            if path.suffix == ".npy" and not are_finite(map_array(path, dimensions=None)):
                raise ValueError("numbers are missing")
            if path.name == "vocabulary.txt" and not Vocabulary.load(path.parent).is_sound():
                raise ValueError("its words do not fit vocabulary.npy")
    with reading(snapshot.statistics):
        _check(TermStatistics.load(snapshot.statistics / WORDS).is_sound(snapshot.documents))
    for segment in snapshot.segments:
        with reading(segment.path):
            _check_segment(segment.path, segment.documents)


def _check_segment(path: Path, n: int) -> None:
    _check(FileTable.of_segment(path).is_sound(n))
    _check(WordTable.load(path).is_sound(n))
    _check(NearDuplicates.load(path, n).is_sound(n))
    _check(NameUses.load(path / USES).is_sound(n))
    _check(DefinitionTable.load(path / DEFINITIONS).is_sound(n))
    _check(not (path / DECLARED).is_dir() or DefinitionTable.load(path / DECLARED).is_sound(n))
    _check(FileRoleTable.load(path / FOLDER).is_sound(n))
    read_sections(path / FOLDER, n)
    read_mask(path / FOLDER, TESTS, n)
    _check(PostingTable.load(path / WORDS).is_sound(n))


def _check(sound: bool) -> None:
    if not sound:
        raise IndexDamaged("its numbers do not fit each other")
