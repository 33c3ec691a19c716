"""Writing an index: a generation of files becomes the index all at once, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType

from ncs.errors import BadInput, IndexBusy, IndexFolderError, NcsError
from ncs.storage.disk import cannot_write, disk_errors, sync, sync_all, unwritable
from ncs.storage.garbage import remove_others
from ncs.storage.manifest import (
    FORMAT,
    GENERATION,
    LOCK,
    NAME,
    TUNED,
    FileEntry,
    Manifest,
    checksum,
    current_generation,
)

IGNORE = ".gitignore"
IGNORED = "# made by ncs: an index is built, not committed\n*\n"


class Generation:
    """Files being written; they become the index with `commit`."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self._number = number
        self.path = folder / f"data-{number}.part"
        """Where to write."""
        self._data = folder / f"data-{number}"

    def commit(
        self,
        *,
        config: Mapping[str, object],
        counts: Mapping[str, object],
        notes: Sequence[str] = (),
        versions: Mapping[str, str],
        linked: Mapping[str, FileEntry] = MappingProxyType({}),
    ) -> Manifest:
        """Bring every file to the disk, then let the manifest name this generation: from then on it answers.

        linked: files that another generation brought there.
        """
        files, written, folders = {}, [], []
        for folder, _, names in os.walk(self.path):
            folders.append(Path(folder))
            for path in (Path(folder, name) for name in names):
                name = path.relative_to(self.path).as_posix()
                if path.name != TUNED:  # it may be replaced and removed afterwards
                    files[name] = linked[name] if name in linked else checksum(path)
                if name not in linked:
                    written.append(path)
        sync_all(written)
        sync_all(folders)
        created = datetime.now(timezone.utc).isoformat(timespec="seconds")
        manifest = Manifest(
            FORMAT, self._data.name, created, versions, config, counts, tuple(notes), dict(sorted(files.items()))
        )
        self.path.rename(self._data)
        temporary = self.folder / f"{NAME}.part"
        temporary.write_text(manifest.to_json(), encoding="utf-8")
        sync(temporary)
        sync(self.folder)  # the renamed data are on the disk before the manifest that names them
        temporary.replace(self.folder / NAME)
        sync(self.folder)
        return manifest

    def next(self) -> Generation:
        """After `commit`: another generation, begun with the files of this one."""
        following = Generation(self.folder, self._number + 1)
        following.path.mkdir()
        return following

    def begin_with(self, data: Path, *, without: Sequence[str] = ()) -> None:
        """The files of another generation, but for these top-level names.

        They are linked, not copied, where the system can: they must be replaced, never written to.
        """
        for entry in sorted(data.iterdir()):
            if entry.name in without:
                continue
            if entry.is_dir():
                shutil.copytree(entry, self.path / entry.name, copy_function=link)
            else:
                link(entry, self.path / entry.name)


def link(source: str | Path, target: str | Path) -> None:
    """The same file under another name; a copy where the system cannot."""
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


@contextmanager
def new_generation(folder: Path, *, needed_bytes: int = 0) -> Iterator[Generation]:
    """Write a new generation into `folder`, which need not exist; leaving without `commit` takes it back.

    Raises, before any work: IndexBusy where another build writes there, BadInput for a folder of something else,
    NcsError where it cannot be written or has less than `needed_bytes` free. A disk that fills up later is NcsError.
    """
    _refuse_foreign(folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with write_lock(folder):
            try:
                with unwritable(folder):
                    generation = _begin(folder, needed_bytes)
                with disk_errors(folder):
                    yield generation
            finally:
                with suppress(OSError):
                    remove_others(folder)
                    _take_back(folder)
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()


def _begin(folder: Path, needed_bytes: int) -> Generation:
    """The next generation, begun, once what killed builds left is out of the way."""
    number = _next_number(folder)
    remove_others(folder)
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise NcsError(
            f"{folder} has {free / 1e6:,.1f} MB free and the index may take {needed_bytes / 1e6:,.1f} MB;"
            " free some space or choose another folder with -i"
        )
    generation = Generation(folder, number)
    generation.path.mkdir()
    if not (folder / IGNORE).exists():
        (folder / IGNORE).write_text(IGNORED, encoding="utf-8")
    return generation


def _next_number(folder: Path) -> int:
    """Above all that is there: a process that a killed build left behind may still write to the old name."""
    names = [*os.listdir(folder), current_generation(folder) or ""]  # noqa: PTH208
    matches = [GENERATION.fullmatch(name.removesuffix(".part")) for name in names]
    return 1 + max((int(match[1]) for match in matches if match), default=0)


def _refuse_foreign(folder: Path) -> None:
    """Nothing is written to, let alone removed from, a folder that holds something else."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise BadInput(f"{folder} is not a folder; choose another one with -i") from None
    except OSError as error:
        raise IndexFolderError(f"cannot read {folder}: {error.strerror}; choose another folder with -i") from None
    if names and LOCK not in names and current_generation(folder) is None:
        raise BadInput(f"{folder} is not empty and no ncs index; choose another folder with -i")


def unread(folder: Path) -> bool:
    """Whether nobody reads a generation before the one that answers, as far as is known: a build removes others."""
    current = current_generation(folder)
    return all(not GENERATION.fullmatch(name) or name == current for name in os.listdir(folder))  # noqa: PTH208


@contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the one build that writes; the system lets go of it when that process dies, however it dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise IndexBusy(f"another build is writing to {folder}; wait for it or choose another folder with -i") from None
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        yield
    finally:
        lock.release()


def _take_back(folder: Path) -> None:
    """Where there was no index and the build failed, nothing of ours may keep the folder; the mark goes last."""
    if not (folder / NAME).exists():
        ignore = folder / IGNORE
        if ignore.exists() and IGNORED.startswith(ignore.read_text(encoding="utf-8", errors="replace")):
            ignore.unlink()
        (folder / LOCK).unlink(missing_ok=True)
