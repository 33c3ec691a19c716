"""Snapshots: the segments, tombstones and statistics a reader opens (docs/index-format.md)."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from ncs.errors import BROKEN, IndexDamaged, IndexFolderError, IndexNotFound, IndexVersion, NcsError, damaged
from ncs.files import JSON_BYTES, read_regular
from ncs.messages import NO_INDEX, UNUSABLE
from ncs.storage.arrays import load_array
from ncs.storage.checks import check_values
from ncs.storage.files import FILES
from ncs.storage.trust import check_place, distrust, roots_of
from ncs.types import Mask

T = TypeVar("T")

FORMAT = 3
SNAPSHOT, LOCK, DEFAULT_NAME = "snapshot.json", "ncs.lock", ".ncs"
SEGMENTS, STATISTICS, TOMBSTONES = "segments", "statistics", "tombstones"
NAME = re.compile(r"[0-9]{6,18}")
MAX_FILES = 100_000
QUICK_BYTES = 8 << 20
"""Bytes to checksum when an index is opened (7 ms); `verify` reads everything."""
PENDING = "pending"
"""Key of `counts`: what is still missing from an index committed before its build was complete."""
WINDOWS = os.name == "nt"


class StoredFile(TypedDict):
    """Size and checksum of a file."""

    bytes: int
    blake2b: str


@dataclass(frozen=True, slots=True)
class Description:
    """The content of snapshot.json."""

    number: int
    created: str
    statistics: str
    segments: tuple[tuple[str, int], ...]
    """Name and number of documents of each segment, tombstones included."""
    tombstones: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, StoredFile] = field(default_factory=dict)
    folder: str | None = None
    """The index folder when this was committed."""
    signature: str | None = None
    """Of all the rest (ncs.storage.trust)."""

    def to_json(self) -> str:
        """One object."""
        return json.dumps({"format": FORMAT, **{name: getattr(self, name) for name in self.__slots__}}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Description:
        """Raises IndexVersion for another format, ValueError for anything else; unknown keys are ignored."""
        try:
            content = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deep") from None
        if not isinstance(content, dict) or type(content.get("format")) is not int:
            raise ValueError("not a snapshot")
        if content["format"] != FORMAT:
            raise IndexVersion(f"has format {content['format']}, this ncs reads {FORMAT}")
        for key, kind in _KINDS.items():
            if not isinstance(content.get(key), kind):
                raise ValueError(f"{key} is missing or has the wrong type")
        segments = tuple(_segment(entry) for entry in content["segments"])
        names = [content["statistics"], *(name for name, _ in segments), *filter(None, [content.get("tombstones")])]
        if not segments or not all(isinstance(name, str) and NAME.fullmatch(name) for name in names):
            raise ValueError("names a file outside the folder")
        for path, entry in content["files"].items():
            _check_entry(path, entry)
        values: dict[str, Any] = {key: content.get(key) for key in _KINDS}
        return cls(**{**values, "segments": segments, "notes": tuple(map(str, content["notes"]))})


_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "number": int,
    "created": str,
    "statistics": str,
    "segments": list,
    "tombstones": (str, type(None)),
    "versions": dict,
    "config": dict,
    "counts": dict,
    "notes": list,
    "files": dict,
    "folder": (str, type(None)),
    "signature": (str, type(None)),
}


def _segment(entry: object) -> tuple[str, int]:
    if not (isinstance(entry, list) and len(entry) == 2 and type(entry[1]) is int and 0 <= entry[1] < 1 << 31):
        raise ValueError("a segment is not a pair of name and size")
    return entry[0], entry[1]


def _check_entry(path: str, entry: object) -> None:
    """Raise ValueError for a path outside the folder, or an entry without size and checksum."""
    parts = PurePosixPath(path).parts
    outside = not parts or ".." in parts or path.startswith("/") or "\\" in path or PureWindowsPath(path).drive
    if outside or not path.isprintable():
        raise ValueError(f"names a file outside the folder: {path!r}")
    if not (isinstance(entry, dict) and type(entry.get("bytes")) is int and isinstance(entry.get("blake2b"), str)):
        raise ValueError(f"has no size or checksum of {path!r}")


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a snapshot. first: row of its first document. dead_files: local numbers of deleted files."""

    name: str
    path: Path
    first: int
    documents: int
    dead_files: NDArray[np.int64]

    def dead_rows(self) -> Iterator[tuple[int, int]]:
        """Ranges [start, stop) of local rows that are tombstones."""
        if len(self.dead_files):
            bounds = load_array(self.path / FILES / "rows.npy", np.int64)
            yield from zip(bounds[self.dead_files].tolist(), bounds[self.dead_files + 1].tolist(), strict=True)


class Snapshot:
    """An open snapshot. Its files are not deleted until it is closed, whatever is committed meanwhile."""

    def __init__(self, folder: Path, description: Description, distrust: str = "") -> None:
        """distrust: why it is not trusted (ncs.storage.trust), else "". Raises OSError if a segment was removed
        meanwhile, IndexDamaged for damaged tombstones."""
        self.folder, self.description, self.distrust = folder, description, distrust
        self.statistics = folder / STATISTICS / description.statistics
        self._holds = [Hold(self.statistics)]
        try:
            self.segments = tuple(self._open_segments())
            self.firsts = np.array([segment.first for segment in self.segments])
            self.live = self._live()
        except BaseException:
            self.close()
            raise

    def _open_segments(self) -> Iterator[Segment]:
        dead, first = self.tombstones, 0
        for name, documents in self.description.segments:
            path = self.folder / SEGMENTS / name
            self._holds.append(Hold(path))
            yield Segment(name, path, first, documents, dead[dead[:, 0] == int(name), 1])
            first += documents

    @property
    def tombstones(self) -> NDArray[np.int64]:
        """Segment number and local file number of every dead file, [n, 2]."""
        if self.description.tombstones is None:
            return np.zeros((0, 2), np.int64)
        return load_array(self._tombstones, np.int64, 2)

    @property
    def _tombstones(self) -> Path:
        return self.folder / TOMBSTONES / f"{self.description.tombstones}.npy"

    def keep_tombstones(self) -> None:
        """Hold their file, too, for another process that will open this snapshot."""
        if self.description.tombstones is not None:
            with suppress(OSError):  # a commit has removed it already
                self._holds.append(Hold(self._tombstones))

    def _live(self) -> Mask | None:
        """Mask of live rows, bool [len(self)]; None without tombstones."""
        if not any(len(segment.dead_files) for segment in self.segments):
            return None
        live = np.ones(len(self), np.bool_)
        for segment in self.segments:
            for start, stop in segment.dead_rows():
                live[segment.first + start : segment.first + stop] = False
        return live

    @property
    def roots(self) -> tuple[Path, ...]:
        """Its sources; none where it is not trusted, or was built from documents."""
        return () if self.distrust else roots_of(self.folder, self.description)

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return self.segments[-1].first + self.segments[-1].documents

    @property
    def documents(self) -> int:
        """Number of live documents."""
        return len(self) if self.live is None else int(np.count_nonzero(self.live))

    def close(self) -> None:
        """Release its files; nothing can be opened from it afterwards."""
        for hold in self._holds:
            hold.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Close; raises IndexDamaged for an error caused by damaged files."""
        try:
            if isinstance(error, BROKEN) and self.description.files:  # a draft has none
                find_damage(self, error)
        finally:
            self.close()


class Hold:
    """A lock on a folder or file of an index: shared for readers, exclusive for garbage collection. It works on
    read-only media, ends with the process, and has no effect if locks are unsupported."""

    def __init__(self, path: Path, *, exclusive: bool = False) -> None:
        """Raises OSError if it is gone, BlockingIOError if another lock forbids this one."""
        self._descriptor = -1
        if WINDOWS:  # without such locks, but while a file is open there its folder cannot be renamed
            if not exclusive:
                file = path if path.is_file() else next(each for each in sorted(path.rglob("*")) if each.is_file())
                self._descriptor = os.open(file, os.O_RDONLY)
            return
        import fcntl

        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise
        except OSError:  # a file system without locks
            self.close()

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def open_snapshot(
    folder: Path, load: Callable[[Snapshot], T], *, verify: bool = False, held: Description | None = None
) -> T:
    """Open the snapshot of an index and return `load(snapshot)`; retried if a commit replaced it meanwhile.

    Checks the size of every file and the checksums of small ones, with `verify` of all. held: an older snapshot, held
    by a caller, to open instead. Raises IndexNotFound, IndexDamaged or IndexVersion, and what `load` raises.
    """
    while True:
        description = held or read_description(folder)
        with ExitStack() as stack:
            try:
                snapshot = stack.enter_context(_open(folder, description, verify=verify))
                loaded = load(snapshot)
                stack.pop_all()  # the snapshot stays open
                return loaded
            except (OSError, ValueError, RuntimeError, NcsError):
                if held or read_description(folder).number == description.number:
                    raise


def _open(folder: Path, description: Description, *, verify: bool) -> Snapshot:
    try:
        _check_files(folder, description, verify=verify)
        snapshot = Snapshot(folder, description, distrust(folder, description))
        if snapshot.distrust:
            check_values(snapshot)
        return snapshot
    except (OSError, ValueError, IndexError) as error:
        raise damaged(f"cannot read {folder} ({error})", folder) from error


def find_damage(snapshot: Snapshot, error: Exception) -> None:
    """Raise IndexDamaged if an error was caused by the files: if they were altered, or are not trusted."""
    try:
        _check_files(snapshot.folder, snapshot.description, verify=True)
        check_values(snapshot)
    except IndexDamaged as damage:
        raise damage from error
    if snapshot.distrust:
        message = f"{type(error).__name__}: {error}".replace("\n", " ")
        raise damaged(f"{snapshot.folder} is no index of ncs ({message})", snapshot.folder) from error


def read_description(folder: Path) -> Description:
    """The content of snapshot.json; raises IndexNotFound, IndexDamaged or IndexVersion."""
    try:
        return Description.from_json(read_regular(folder / SNAPSHOT, JSON_BYTES, follow=False))
    except FileNotFoundError:
        raise _no_snapshot(folder) from None
    except NotADirectoryError:
        raise IndexNotFound(f"{folder} is not a folder; name an index folder with -i") from None
    except OSError as error:
        what = f"cannot read {folder / SNAPSHOT} ({error.strerror or error})"
        if isinstance(error, PermissionError):
            raise IndexFolderError(f"{what}; check its permissions") from None
        raise IndexFolderError(UNUSABLE.format(what=what, folder=folder)) from None
    except IndexVersion as error:
        raise IndexVersion(UNUSABLE.format(what=f"index {folder} {error}", folder=folder)) from None
    except ValueError as error:
        raise damaged(f"{folder / SNAPSHOT} is damaged ({error})", folder) from None


def find_index(start: Path) -> Path:
    """The `.ncs` folder in `start` or the nearest folder above, up to a linked work tree inside another one.

    Raises IndexNotFound, and IndexFolderError for a link out of the project or another user's folder.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        index = folder / DEFAULT_NAME
        if (index / SNAPSHOT).is_file():
            check_place(index)
            return index
        if (folder / ".git").is_file():
            from ncs.sources.repositories import is_inner_work_tree  # nearly no query needs it

            if is_inner_work_tree(folder):
                raise _not_found(f"in {folder}, which is a work tree of its own")
    raise _not_found(f"in {start} or above")


def work_tree(folder: Path) -> Path:
    """The git work tree around a folder, else the folder itself."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def _not_found(where: str, sources: str = ".") -> IndexNotFound:
    return IndexNotFound(NO_INDEX.format(where=where, remedy=f"make one with: ncs build {sources}"))


def _no_snapshot(folder: Path) -> NcsError:
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        names = set()
    if not names:
        return _not_found(f"at {folder}", f"SOURCES -i {folder}")
    if LOCK in names:
        return damaged(
            f"{folder} has no {SNAPSHOT}: its build has not ended (wait for it), or an older ncs made it", folder
        )
    return IndexDamaged(f"{folder} has no {SNAPSHOT} and is not an index; name another folder with -i")


def checksum(path: Path) -> StoredFile:
    """Size and checksum of a file."""
    digest, size = blake2b(digest_size=16), 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return {"bytes": size, "blake2b": digest.hexdigest()}


def _check_files(folder: Path, description: Description, *, verify: bool) -> None:
    """Compare all sizes; checksums of all files with `verify`, else of the smallest, up to QUICK_BYTES in total. Raises
    IndexDamaged, also for anything but regular files and folders."""
    sizes = _sizes(folder, description)
    budget = float("inf") if verify else QUICK_BYTES
    for path, entry in sorted(description.files.items(), key=lambda item: (item[1]["bytes"], item[0])):
        budget -= entry["bytes"]
        if wrong := _wrong(folder / path, entry, sizes.get(path), read=budget >= 0):
            raise damaged(f"{folder / path} {wrong}", folder)
    if sum(documents for _, documents in description.segments) > sum(sizes.values()):
        raise damaged(f"{folder / SNAPSHOT} counts more documents than its files can hold", folder)


def _sizes(folder: Path, description: Description) -> dict[str, int]:
    """The size of every file of a snapshot by its path below the index; raises IndexDamaged for links and pipes."""
    names = [f"{SEGMENTS}/{name}" for name, _ in description.segments]
    names += [f"{STATISTICS}/{description.statistics}"]
    names += [f"{TOMBSTONES}/{description.tombstones}.npy"] if description.tombstones else []
    sizes: dict[str, int] = {}
    pending = [*{name.partition("/")[0]: None for name in names}, *names]
    for path in pending:
        with suppress(FileNotFoundError):
            status = (folder / path).lstat()
            if stat.S_ISREG(status.st_mode):
                sizes[path] = status.st_size
            elif not stat.S_ISDIR(status.st_mode):
                raise damaged(f"{folder / path} is not a regular file", folder)
            elif "/" in path:
                pending += [f"{path}/{name}" for name in os.listdir(folder / path)]  # noqa: PTH208
        if len(pending) > MAX_FILES:
            raise damaged(f"{folder} holds more than {MAX_FILES:,} files", folder)
    return sizes


def _wrong(path: Path, entry: StoredFile, size: int | None, *, read: bool) -> str:
    try:
        if size is None:
            return "is missing"
        if size != entry["bytes"]:
            return f"has {size:,} bytes instead of {entry['bytes']:,}"
        if read and checksum(path) != entry:
            return "was altered"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""
