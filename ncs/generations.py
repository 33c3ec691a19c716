"""Writing an index: a generation of files becomes the index all at once, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

from ncs.errors import BadInput, IndexBusy, IndexFolderError, NcsError
from ncs.manifest import FORMAT, GENERATION, LOCK, NAME, TUNED, Manifest, checksum, current_generation

IGNORE = ".gitignore"
IGNORED = "# made by ncs: an index is built, not committed\n*\n"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_SPACE_LEFT = 1 << 20  # bytes


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
    ) -> Manifest:
        """Bring every file to the disk, then let the manifest name this generation: from then on it answers."""
        files = {}
        for folder, _, names in os.walk(self.path):
            for path in (Path(folder, name) for name in names):
                if path.name != TUNED:  # it may be replaced and removed afterwards
                    files[path.relative_to(self.path).as_posix()] = checksum(path)
                _sync(path)
            _sync(Path(folder))
        created = datetime.now(timezone.utc).isoformat(timespec="seconds")
        manifest = Manifest(
            FORMAT, self._data.name, created, versions, config, counts, tuple(notes), dict(sorted(files.items()))
        )
        self.path.rename(self._data)
        temporary = self.folder / f"{NAME}.part"
        temporary.write_text(manifest.to_json(), encoding="utf-8")
        _sync(temporary)
        _sync(self.folder)  # the renamed data are on the disk before the manifest that names them
        temporary.replace(self.folder / NAME)
        _sync(self.folder)
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
                shutil.copytree(entry, self.path / entry.name, copy_function=_link)
            else:
                _link(entry, self.path / entry.name)


def _link(source: str | Path, target: str | Path) -> None:
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
        with _unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with _write_lock(folder):
            try:
                with _unwritable(folder):
                    generation = _begin(folder, needed_bytes)
                with disk_errors(folder):
                    yield generation
            finally:
                with suppress(OSError):
                    _remove_others(folder)
                    _take_back(folder)
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()


def _begin(folder: Path, needed_bytes: int) -> Generation:
    """The next generation, begun, once what killed builds left is out of the way."""
    number = _next_number(folder)
    _remove_others(folder)
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


@contextmanager
def _write_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the one build that writes; the system lets go of it when that process dies, however it dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise IndexBusy(f"another build is writing to {folder}; wait for it or choose another folder with -i") from None
    except OSError as error:
        raise _cannot_write(folder, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _unwritable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _cannot_write(folder, error) from error


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Say in one line that the disk is full, whoever found out; other errors pass.

    numpy and faiss report a failed write without the system's error number: then the space left tells.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in FULL or (number is None and _free(folder) < NO_SPACE_LEFT):
            raise _cannot_write(folder, OSError(errno.ENOSPC, "")) from error
        raise


def _cannot_write(folder: Path, error: OSError) -> NcsError:
    if error.errno in FULL:
        return NcsError(f"the disk of {folder} is full; free some space or choose another folder with -i")
    return NcsError(f"cannot write to {folder}: {error.strerror or error}; choose another folder with -i")


def _free(folder: Path) -> float:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return float("inf")


def sweep(folder: Path) -> None:
    """Remove generations that readers held when they were replaced, if nobody writes or reads there now."""
    with suppress(OSError, NcsError), _write_lock(folder):
        _remove_others(folder)


def _remove_others(folder: Path) -> None:
    """Remove what killed builds left, and the generations before the current one.

    Where the manifest cannot be read, finished generations stay: they may be all that is left of an index.
    """
    current = current_generation(folder)
    certain = current is not None or not (folder / NAME).exists()
    (folder / f"{NAME}.part").unlink(missing_ok=True)
    for entry in list(os.scandir(folder)):
        unfinished = entry.name.endswith(".part")
        ours = GENERATION.fullmatch(entry.name.removesuffix(".part"))
        if ours and entry.name != current and (unfinished or certain):
            _remove_unread(Path(entry))


def _remove_unread(data: Path) -> None:
    """Remove a generation, unless a reader holds it (`ncs.folder.Hold`): then a later build will."""
    if os.name == "nt":  # there files that are open stay by themselves
        shutil.rmtree(data, ignore_errors=True)
        return
    descriptor = os.open(data, os.O_RDONLY)
    try:
        if _lock_alone(descriptor):
            shutil.rmtree(data, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock_alone(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks has no holds either
    return True


def _take_back(folder: Path) -> None:
    """Where there was no index and the build failed, nothing of ours may keep the folder; the mark goes last."""
    if not (folder / NAME).exists():
        ignore = folder / IGNORE
        if ignore.exists() and IGNORED.startswith(ignore.read_text(encoding="utf-8", errors="replace")):
            ignore.unlink()
        (folder / LOCK).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Bring a file or a folder's list of names to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # there a folder cannot be opened, and need not
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
