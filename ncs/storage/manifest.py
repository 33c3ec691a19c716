"""The manifest of an index: what it was made with, what is in it, and a checksum of every file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TypedDict

from ncs.errors import IndexDamaged, IndexFolderError, IndexNotFound, IndexVersion

FORMAT = 2
NAME = "manifest.json"
LOCK = "ncs.lock"
"""The write lock, which also marks a folder as ours."""
TUNED = "tuned.json"
"""What `ncs tune` learnt, in a generation's folder; replaced and removed at will, so no manifest lists it."""
GENERATION = re.compile(r"data-([1-9][0-9]{0,17})")
QUICK_BYTES = 8 << 20
"""How much is read for checksums when an index is opened: 7 ms; `verify` reads everything."""


class FileEntry(TypedDict):
    """Size and checksum of a file."""

    bytes: int
    blake2b: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the folder says of itself; config and versions are enough to build it again."""

    format: int
    generation: str
    created: str
    versions: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)
    counts: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, FileEntry] = field(default_factory=dict)

    def to_json(self) -> str:
        """One object, keys in the order above."""
        return json.dumps({part.name: getattr(self, part.name) for part in fields(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
        """Read back; keys this program does not know are passed over.

        Raises IndexVersion for another format and ValueError for what is no manifest; neither names the folder.
        """
        try:
            found = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deep") from None
        if not isinstance(found, dict) or type(found.get("format")) is not int or "generation" not in found:
            raise ValueError("not an index manifest")
        if found["format"] != FORMAT:
            raise IndexVersion(f"has format {found['format']}, this ncs reads {FORMAT}")
        for key, kind in _KINDS.items():
            if not isinstance(found.get(key), kind):
                raise ValueError(f"{key} is missing or of the wrong kind")
        if not GENERATION.fullmatch(found["generation"]):
            raise ValueError(f"names a generation outside the folder: {found['generation']!r}")
        for path, entry in found["files"].items():
            _check_entry(path, entry)
        found["notes"] = tuple(map(str, found["notes"]))
        return cls(found["format"], **{key: found[key] for key in _KINDS})


_KINDS: Mapping[str, type] = {
    "generation": str,
    "created": str,
    "versions": dict,
    "config": dict,
    "counts": dict,
    "notes": list,
    "files": dict,
}


def _check_entry(path: str, entry: object) -> None:
    """Raise ValueError for a path that leads outside the folder, or an entry without size and checksum."""
    parts = PurePosixPath(path).parts
    outside = not parts or ".." in parts or path.startswith("/") or "\\" in path or PureWindowsPath(path).drive
    if outside or not path.isprintable():
        raise ValueError(f"names a file outside the folder: {path!r}")
    if not (isinstance(entry, dict) and type(entry.get("bytes")) is int and isinstance(entry.get("blake2b"), str)):
        raise ValueError(f"has no size or checksum of {path!r}")


def rebuild(folder: Path) -> str:
    """The remedy for an index that cannot be used."""
    return f"build it again with: ncs build <sources> -i {folder}"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index folder.

    Raises IndexNotFound where nothing is, IndexDamaged where it is missing or garbled, IndexVersion.
    """
    try:
        return Manifest.from_json((folder / NAME).read_bytes())
    except FileNotFoundError:
        raise _no_manifest(folder) from None
    except NotADirectoryError:
        raise IndexNotFound(f"{folder} is not a folder; name an index folder with -i") from None
    except OSError as error:
        raise IndexFolderError(f"cannot read {folder / NAME}: {error.strerror}; check its permissions") from None
    except IndexVersion as error:
        raise IndexVersion(f"index {folder} {error}; {rebuild(folder)}") from None
    except ValueError as error:
        raise IndexDamaged(f"{folder / NAME} is damaged ({error}); {rebuild(folder)}") from None


def current_generation(folder: Path) -> str | None:
    """The generation that the manifest names; None where no manifest can be read. Other formats count."""
    try:
        name = json.loads((folder / NAME).read_bytes())["generation"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and GENERATION.fullmatch(name) else None


def _no_manifest(folder: Path) -> IndexNotFound | IndexDamaged:
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        names = set()
    if not names:
        return IndexNotFound(f"no index at {folder}; make one with: ncs build <sources> -i {folder}")
    if LOCK in names:
        return IndexDamaged(f"{folder} has no {NAME}: its build has not ended; wait for it or {rebuild(folder)}")
    return IndexDamaged(f"{folder} has no {NAME} and is no ncs index; name another folder with -i")


def checksum(path: Path) -> FileEntry:
    """Size and checksum of a file, read in pieces."""
    digest, size = blake2b(digest_size=16), 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return {"bytes": size, "blake2b": digest.hexdigest()}


def check_files(data: Path, files: Mapping[str, FileEntry], *, verify: bool) -> Iterator[str]:
    """What is wrong with files, one sentence each.

    Every size is compared; checksums of all files with `verify`, else of the smallest, up to QUICK_BYTES together.
    """
    left = float("inf") if verify else QUICK_BYTES
    for path, entry in sorted(files.items(), key=lambda item: (item[1]["bytes"], item[0])):
        left -= entry["bytes"]
        wrong = _wrong(data / path, entry, read=left >= 0)
        if wrong:
            yield f"{data / path} {wrong}"


def _wrong(path: Path, entry: FileEntry, *, read: bool) -> str:
    try:
        size = path.stat().st_size
        if size != entry["bytes"]:
            return f"has {size:,} bytes instead of {entry['bytes']:,}"
        if read and checksum(path) != entry:
            return "was altered"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""
