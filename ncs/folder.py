"""The index folder: generations of files, one of them named by the manifest, which is written last.

<folder>/manifest.json      names the generation that answers; replaced at once, and only when all else is on disk
<folder>/data-<n>/          the files of that generation
<folder>/data-<n>.part/     a generation being written
<folder>/ncs.lock           held by the build that writes; it also marks the folder as ours
<folder>/.gitignore         keeps the index out of the repository it is built in
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from ncs.errors import BadInput, IndexBusy, IndexDamaged, IndexFolderError, IndexNotFound, NcsError
from ncs.manifest import FORMAT, GENERATION, NAME, FileEntry, Manifest, check_files, checksum, read_manifest, rebuild

__all__ = ["DEFAULT_NAME", "FORMAT", "FileEntry", "Generation", "Manifest"]
__all__ += ["disk_errors", "find_index", "new_generation", "open_folder", "reading"]

T = TypeVar("T")

DEFAULT_NAME = ".ncs"
LOCK = "ncs.lock"
IGNORE = ".gitignore"
IGNORED = "# made by ncs: an index is built, not committed\n*\n"
ATTEMPTS = 3
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_SPACE_LEFT = 1 << 20  # bytes


class Generation:
    """Files being written; they become the index with `commit`."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.path = folder / f"data-{number}.part"
        """Where to write."""
        self.committed = False
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
        for folder, _, names in os.walk(self.path, topdown=False):
            for name in sorted(names):
                path = Path(folder, name)
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
        _sync(self.folder)
        temporary.replace(self.folder / NAME)
        self.committed = True
        _sync(self.folder)
        return manifest


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
        with _write_lock(folder), disk_errors(folder):
            try:
                with _unwritable(folder):
                    generation = _begin(folder, needed_bytes)
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
    _remove_others(folder)
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise NcsError(
            f"{folder} has {_megabytes(free)} free and the index may take {_megabytes(needed_bytes)};"
            " free some space or choose another folder with -i"
        )
    names = [*os.listdir(folder), _current(folder) or ""]  # noqa: PTH208
    numbers = [int(match[1]) for match in map(GENERATION.match, names) if match]
    generation = Generation(folder, max(numbers, default=0) + 1)
    generation.path.mkdir()
    if not (folder / IGNORE).exists():
        (folder / IGNORE).write_text(IGNORED, encoding="utf-8")
    return generation


@contextmanager
def _write_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the one build that writes; the system lets go of it when that process dies, however it dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        with _unwritable(folder):
            lock.acquire(blocking=False)
    except Timeout:
        raise IndexBusy(f"another build is writing to {folder}; wait for it or choose another folder with -i") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _unwritable(folder: Path) -> Iterator[None]:
    """Say in one line that a folder cannot be written to."""
    try:
        yield
    except TimeoutError:  # filelock's, which is an OSError too
        raise
    except OSError as error:
        if error.errno in FULL:
            raise
        raise NcsError(f"cannot write to {folder}: {error.strerror}; choose another folder with -i") from error


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Say in one line that the disk is full.

    numpy and faiss report a failed write without the system's error number: then the space left tells.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in FULL or (number is None and _free(folder) < NO_SPACE_LEFT):
            raise NcsError(f"the disk of {folder} is full; free some space or choose another folder with -i") from error
        raise


def _free(folder: Path) -> float:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return float("inf")


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


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
    if names and LOCK not in names and _current(folder) is None:
        raise BadInput(f"{folder} is not empty and no ncs index; choose another folder with -i")


def _current(folder: Path) -> str | None:
    """The generation that the manifest names, if there is one that can be read, in whatever format."""
    import json

    try:
        name = json.loads((folder / NAME).read_bytes())["generation"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and GENERATION.fullmatch(name) else None


def _remove_others(folder: Path) -> None:
    """Remove what killed builds left, and the generations before the current one.

    Where the manifest cannot be read, finished generations stay: they may be all that is left of an index.
    """
    current = _current(folder)
    certain = current is not None or not (folder / NAME).exists()
    for entry in list(os.scandir(folder)):
        if entry.name == f"{NAME}.part":
            Path(entry).unlink(missing_ok=True)
        elif (
            GENERATION.fullmatch(entry.name.removesuffix(".part"))
            and entry.name != current
            and (certain or entry.name.endswith(".part"))
        ):
            shutil.rmtree(entry, ignore_errors=True)


def _take_back(folder: Path) -> None:
    """Where there was no index and the build failed, nothing of ours may keep the folder."""
    if not (folder / NAME).exists():
        (folder / LOCK).unlink(missing_ok=True)
        if (folder / IGNORE).read_text(encoding="utf-8") == IGNORED:
            (folder / IGNORE).unlink()


def _sync(path: Path) -> None:
    """Bring a file or a folder's list of names to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # there a folder cannot be opened, and need not
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_folder(folder: Path, *, verify: bool = False) -> tuple[Path, Manifest]:
    """The folder of the current generation's files, and the manifest; nothing is written.

    All files must be there in their size; checksums are compared of the small ones, with `verify` of all.
    Raises IndexNotFound, IndexDamaged or IndexVersion, each naming the folder and the remedy.
    """
    for attempt in range(ATTEMPTS):
        manifest = read_manifest(folder)
        data = folder / manifest.generation
        wrong = next(check_files(data, manifest.files, verify=verify), None)
        if wrong is None:
            return data, manifest
        if attempt + 1 == ATTEMPTS or _current(folder) == manifest.generation:
            break
    raise IndexDamaged(f"{wrong}; {rebuild(folder)}")


def reading(folder: Path, load: Callable[[Path, Manifest], T]) -> T:
    """`load(data folder, manifest)`, once more where a build replaced the generation meanwhile.

    Raises what open_folder and load raise.
    """
    for _ in range(ATTEMPTS - 1):
        data, manifest = open_folder(folder)
        try:
            return load(data, manifest)
        except (OSError, ValueError, RuntimeError, NcsError):
            if _current(folder) == manifest.generation:
                raise
    return load(*open_folder(folder))


def find_index(start: Path) -> Path:
    """The `.ncs` index folder in `start` or the nearest folder above, as git finds its repository.

    Raises IndexNotFound.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / DEFAULT_NAME / NAME).is_file():
            return folder / DEFAULT_NAME
    raise IndexNotFound(f"no index in {start} or above; make one with: ncs build <sources>")
