"""Whether the files of an index have changed, by their stamps: cheap enough before each query."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ncs.errors import reading
from ncs.files import read_regular, replace_file
from ncs.storage.files import FILES, FileTable, full_place, home_of
from ncs.storage.snapshot import PENDING, Snapshot, read_description

MAX_FILES = 10_000
"""An index of more files is not checked before a query."""
SEEN = "seen.json"
"""The state of the files at the last comparison, and how many had changed; no part of a snapshot."""
_SEEN_BYTES = 1000
_IGNORE_FILES = (".gitignore", ".ncsignore")


def state_of(snapshot: Snapshot) -> str:
    """A digest of the state of an index's files, their folders and the ignore files of its roots; "" if unchanged.

    New files are noticed in folders with a file of the index only, and objects of git are not checked. Also "" for an
    index that is not to be updated: not trusted, not complete, read-only, too large, or without its sources.
    """
    roots, counts = snapshot.roots, snapshot.description.counts
    fit = counts.get("files", 0) <= MAX_FILES and PENDING not in counts and os.access(snapshot.folder, os.W_OK)
    if not (fit and roots and all(root.exists() for root in roots)):
        return ""
    archives: dict[str, str] = {}
    stamps, folders, current = list[str](), set[str](), True
    expected, began = _stamps(snapshot)
    for place, stamp in expected.items():
        folder = place.rpartition(os.sep)[0]
        now = archives.get(folder) or _stamp(place)
        if now is None:
            now = archives[folder] = _stamp_above(folder)
        elif folder not in archives:
            folders.add(folder)
        stamps.append(now)
        current &= now == stamp
    if not any(stamps):  # the index was copied without its sources
        return ""
    folders |= _above(folders, {str(root) for root in roots})
    ignores = [_stamp(f"{root}{os.sep}{name}") or "" for root in roots for name in _IGNORE_FILES]
    edited = any(int(time) >= began for stamp in ignores for time in stamp.split(":")[1:])
    times = {folder: _time(folder) for folder in folders}
    if current and not edited:
        known = expected.keys() | folders | {str(snapshot.folder.resolve())}
        if not any(time >= began and _has_new(folder, known, began) for folder, time in times.items()):
            return ""
    text = json.dumps([stamps, sorted(times.items()), ignores])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def known_changes(snapshot: Snapshot, state: str) -> int | None:
    """The number of changed files that an earlier comparison in this state found; None without one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        seen = json.loads(read_regular(snapshot.folder / SEEN, _SEEN_BYTES, follow=False))
        if seen["state"] == state and seen["snapshot"] == snapshot.description.number:
            return int(seen["changed"])
    return None


def remember(snapshot: Snapshot, state: str, changed: int) -> None:
    """Store a result for `known_changes`, unless it cannot be written or the index has changed meanwhile."""
    with suppress(OSError):
        number = snapshot.description.number
        if read_description(snapshot.folder).number == number:
            content = {"state": state, "snapshot": number, "changed": changed}
            replace_file(snapshot.folder / SEEN, json.dumps(content))


def _stamps(snapshot: Snapshot) -> tuple[dict[str, str], int]:
    """place -> stamp of every live file on disk, and when reading of the oldest segment began."""
    home, stamps, began = home_of(snapshot.folder), dict[str, str](), list[int]()
    for segment in snapshot.segments:
        table = FileTable.of_segment(segment.path)
        with reading(segment.path / FILES):
            texts = json.loads(f"[{','.join(table.texts)}]")
            live = np.ones(len(table.place), np.bool_)
            live[segment.dead_files] = False
            for place, stamp in zip(table.place[live].tolist(), table.stamp[live].tolist(), strict=True):
                if ":" in texts[stamp]:  # else the name of an object of git
                    stamps[full_place(texts[place], home)] = texts[stamp]
            began.append(int(table.began[0]))
    return stamps, min(began)


def _stamp(path: str) -> str | None:
    """As `ncs.sources.files.file_origin`; "" for what is gone, None below a file."""
    try:
        status = os.lstat(path)
    except OSError:  # Windows does not tell which
        above = next((each for each in Path(path).parents if each.exists()), None)
        return None if above and above.is_file() else ""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def _stamp_above(folder: str) -> str:
    """The stamp of the archive that holds a folder."""
    while (stamp := _stamp(folder)) is None:
        folder = folder.rpartition(os.sep)[0]
    return stamp


def _time(folder: str) -> int:
    with suppress(OSError):
        return os.stat(folder).st_mtime_ns  # noqa: PTH116
    return 0


def _above(folders: Iterable[str], roots: Collection[str]) -> set[str]:
    """The folders between these and the roots."""
    above = set[str]()
    for folder in folders:
        while folder not in roots and (folder := folder.rpartition(os.sep)[0]) and folder not in above:
            above.add(folder)
    return above


def _has_new(folder: str, known: Collection[str], began: int) -> bool:
    """Whether a folder has an unknown entry that was created, renamed or changed since reading began."""
    with suppress(OSError), os.scandir(folder) as entries:  # what fails here is seen by the next query
        unknown = (entry for entry in entries if entry.path not in known and entry.name != ".git")
        return any(entry.stat(follow_symlinks=False).st_ctime_ns >= began for entry in unknown)
    return False
