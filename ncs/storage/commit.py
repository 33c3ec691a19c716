"""The writer of an index, which commits segments, statistics and tombstones as one snapshot."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from ncs.errors import BadInput, IndexBusy, IndexFolderError, NcsError
from ncs.files import read_regular, refuse_links, replace_file, save_array, sync
from ncs.storage.snapshot import (
    LOCK,
    NAME,
    SEGMENTS,
    SNAPSHOT,
    STATISTICS,
    TOMBSTONES,
    WINDOWS,
    Description,
    Hold,
    StoredFile,
    checksum,
    read_description,
)
from ncs.storage.trust import check_trust, distrust, sign

IGNORE = ".gitignore"
IGNORED = "# made by ncs: an index is built, not committed\n*\n"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_SPACE_LEFT = 1 << 20
"""A write that fails with fewer free bytes means a full disk."""
MAX_DIGITS = 10
"""Longer numbers of folders, which only a hostile index has, are ignored when the next number is chosen."""
SYNCED = 16
"""Files synced in parallel."""


class IndexWriter:
    """Creates folders for segments and statistics, and commits snapshots. An index has one writer (`open_writer`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.previous: Description | None = None
        """The current snapshot; None if there is none, or it cannot be read or trusted."""
        self.distrust = ""
        """Why the current snapshot is not trusted."""
        with suppress(NcsError):
            description = read_description(folder)
            self.distrust = distrust(folder, description)
            self.previous = None if self.distrust else description
        self._entries: dict[str, StoredFile] = dict(self.previous.files) if self.previous else {}
        """Entries of files that are already synced."""
        # numbers are never reused, as a worker of a killed build may still be writing
        numbers = [int(path.stem) for path in _parts(folder) if len(path.stem) < MAX_DIGITS]
        self._number = max([self.previous.number if self.previous else 0, *numbers])

    def new_folder(self, kind: str, name: str | None = None) -> Path:
        """An empty folder for a segment (SEGMENTS) or statistics (STATISTICS), named by the next number or `name`."""
        if name is None:
            self._number += 1
            name = f"{self._number:06}"
        path = self.folder / kind / name
        path.mkdir(parents=True)
        return path

    def copy_folder(self, source: Path, name: str | None = None, *, without: Sequence[str] = ()) -> Path:
        """A copy of a segment or statistics folder, without files and folders of these names. Files are hard links:
        replace them, never write to them."""
        target = self.new_folder(source.parent.name, name)
        ignore = shutil.ignore_patterns(*without)
        shutil.copytree(source, target, copy_function=_link, ignore=ignore, dirs_exist_ok=True)
        for path in target.rglob("*"):
            old = (source / path.relative_to(target)).relative_to(self.folder).as_posix()
            if old in self._entries and path.is_file():
                self._entries[path.relative_to(self.folder).as_posix()] = self._entries[old]
        return target

    def commit(
        self,
        segments: Sequence[tuple[Path, int]],
        statistics: Path,
        *,
        tombstones: NDArray[np.int64] | None = None,
        config: Mapping[str, object],
        counts: Mapping[str, object],
        notes: Sequence[str] = (),
        versions: Mapping[str, str],
    ) -> Description:
        """Sync all files, replace snapshot.json, collect garbage. This is the only commit.

        segments: folder and number of documents of each. tombstones: [n, 2], segment number and local file number.
        """
        self._number += 1
        paths, tombstones_name = [statistics, *(path for path, _ in segments)], None
        if tombstones is not None and len(tombstones):
            tombstones_name = f"{self._number:06}"
            (self.folder / TOMBSTONES).mkdir(exist_ok=True)
            paths.append(self.folder / TOMBSTONES / f"{tombstones_name}.npy")
            save_array(paths[-1], tombstones.astype(np.int64))
        files = self._sync_new_files(paths)
        description = Description(
            self._number,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            statistics.name,
            tuple((path.name, documents) for path, documents in segments),
            tombstones_name,
            versions,
            config,
            counts,
            tuple(notes),
            files,
            str(self.folder.resolve()),
        )
        description = sign(description)
        replace_file(self.folder / SNAPSHOT, description.to_json())
        self.previous = description
        collect_garbage(self.folder)
        return description

    def _sync_new_files(self, paths: Sequence[Path]) -> dict[str, StoredFile]:
        """Entries of all files in these folders; new files are synced, and all folders."""
        every = (each for path in paths for each in ([path] if path.is_file() else sorted(path.rglob("*"))))
        names = [each.relative_to(self.folder).as_posix() for each in every if not each.is_dir()]
        new = {name: checksum(self.folder / name) for name in names if name not in self._entries}
        _sync_all(self.folder / name for name in new)
        _sync_all({self.folder / parent for name in names for parent in PurePosixPath(name).parents})
        self._entries.update(new)
        return {name: self._entries[name] for name in names}


@contextmanager
def open_writer(folder: Path, *, needed_bytes: int = 0, anew: bool = False) -> Iterator[IndexWriter]:
    """Open an index folder, which need not exist, for writing; uncommitted files are removed.

    anew: nothing of an existing index is used, so it need not be trusted. Raises IndexBusy if another process is
    writing, BadInput if the folder is not an index, NcsError if it cannot be written, has less than `needed_bytes`
    free, or is not trusted; and NcsError when the disk fills up later.
    """
    _refuse_foreign(folder)
    refuse_links(folder)
    with suppress(IndexFolderError):  # there is no index, or none that can be read
        if not anew:
            check_trust(folder, read_description(folder))
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    with ExitStack() as stack:
        stack.callback(_remove_empty, new_folders)
        with _write_error(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_write_lock(folder))
            stack.callback(_clean_up, folder)
            for path in (folder, *(each.parent for each in new_folders)):
                sync(path)  # else a power cut takes the whole index, or the lock by which the folder is known
            collect_garbage(folder)
            _check_space(folder, needed_bytes)
            if not (folder / IGNORE).exists():
                replace_file(folder / IGNORE, IGNORED)
            writer = IndexWriter(folder)
        with _disk_errors(folder):
            yield writer


def collect_garbage(folder: Path) -> None:
    """Delete the files that the snapshot does not use, of killed builds and replaced segments; nothing if the snapshot
    cannot be read."""
    for path in folder.glob("*.part"):
        if path.is_file():
            path.unlink()
    try:
        current = read_description(folder)
    except NcsError:
        if not (folder / SNAPSHOT).exists():  # a first build that failed
            for kind in (SEGMENTS, STATISTICS, TOMBSTONES):
                shutil.rmtree(folder / kind, ignore_errors=True)
        return
    live = {folder / SEGMENTS / name for name, _ in current.segments}
    live |= {folder / STATISTICS / current.statistics, folder / TOMBSTONES / f"{current.tombstones}.npy"}
    for path in _parts(folder):
        if path not in live:
            _remove_unless_open(path)


def _remove_unless_open(path: Path) -> None:
    """Delete a path unless a reader holds it (`ncs.storage.snapshot.Hold`); then a later commit does."""
    with suppress(BlockingIOError, PermissionError), closing(Hold(path, exclusive=True)):
        if WINDOWS:  # where a reader has it open this is refused; to delete it would take away what else is in it
            path = path.rename(path.with_suffix(".gone"))
        if path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


def _parts(folder: Path) -> list[Path]:
    """All segments, statistics and tombstones in an index folder, whether a snapshot uses them or not."""
    paths = (path for kind in (SEGMENTS, STATISTICS, TOMBSTONES) for path in (folder / kind).glob("*"))
    return sorted(path for path in paths if NAME.fullmatch(path.stem))


def _check_space(folder: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise NcsError(
            f"{folder} has {free / 1e6:,.1f} MB free and the index may take {needed_bytes / 1e6:,.1f} MB;"
            " free some space or choose another folder with -i"
        )


def _refuse_foreign(folder: Path) -> None:
    """Raise BadInput for a folder that contains something other than an index."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise BadInput(f"{folder} is not a folder; choose another one with -i") from None
    except OSError as error:
        raise IndexFolderError(f"cannot read {folder}: {error.strerror}; choose another folder with -i") from None
    if names and LOCK not in names and SNAPSHOT not in names:
        raise BadInput(f"{folder} is not empty and not an index; choose another folder with -i")


def _write_lock(folder: Path) -> AbstractContextManager[object]:
    """Take the write lock; the system releases it when the process dies."""
    from filelock import FileLock, Timeout

    try:
        return FileLock(folder / LOCK).acquire(blocking=False)
    except Timeout:
        raise IndexBusy(f"another build is writing to {folder}; wait for it or choose another folder with -i") from None


def _clean_up(folder: Path) -> None:
    """Collect garbage; after a failed first build also delete .gitignore and, last, the lock."""
    with suppress(OSError):
        collect_garbage(folder)
        if (folder / SNAPSHOT).exists():
            return
        ignore = folder / IGNORE
        if ignore.exists() and IGNORED.encode().startswith(read_regular(ignore, len(IGNORED))):
            ignore.unlink()
        (folder / LOCK).unlink(missing_ok=True)


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _link(source: str, target: str) -> None:
    """Hard link a file; copy where the system cannot link."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@contextmanager
def _write_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise _disk_full(folder) from error
        raise NcsError(f"cannot write to {folder}: {error.strerror or error}; choose another folder with -i") from error


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Turn errors of a full disk into NcsError; numpy and faiss raise errors without a number, so the free space
    decides."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in FULL or (number is None and shutil.disk_usage(folder).free < NO_SPACE_LEFT):
            raise _disk_full(folder) from error
        raise


def _disk_full(folder: Path) -> NcsError:
    return NcsError(f"the disk of {folder} is full; free some space or choose another folder with -i")


def _sync_all(paths: Iterable[Path]) -> None:
    """Sync files in parallel: a journaling file system writes its journal once for many."""
    with ThreadPoolExecutor(SYNCED) as pool:
        list(pool.map(sync, paths))  # raises the first error
