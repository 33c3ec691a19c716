"""The index folder: generations of files, one of them named by the manifest, which is written last.

<folder>/manifest.json      names the generation that answers; replaced at once, when all else is on the disk
<folder>/data-<n>/          the files of that generation
<folder>/data-<n>.part/     a generation being written
<folder>/ncs.lock           held by the build that writes; it also marks the folder as ours
<folder>/.gitignore         keeps the index out of the repository it is built in

Here it is opened; `ncs.storage.generations` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ncs.errors import IndexDamaged, IndexNotFound, NcsError
from ncs.storage.generations import Generation, new_generation
from ncs.storage.manifest import FORMAT, NAME, Manifest, check_files, current_generation, read_manifest, rebuild

__all__ = ["DEFAULT_NAME", "FORMAT", "Generation", "Hold", "Manifest"]
__all__ += ["find_index", "new_generation", "open_folder", "reading"]

T = TypeVar("T")

DEFAULT_NAME = ".ncs"
ATTEMPTS = 3


def open_folder(folder: Path, *, verify: bool = False) -> tuple[Path, Manifest]:
    """The folder of the current generation's files, and the manifest; nothing is written.

    All files must be there in their size; checksums are compared of the small ones, with `verify` of all.
    Raises IndexNotFound, IndexDamaged or IndexVersion, each naming the folder and the remedy.
    """
    for _ in range(ATTEMPTS):
        manifest = read_manifest(folder)
        data = folder / manifest.generation
        wrong = next(check_files(data, manifest.files, verify=verify), None)
        if wrong is None:
            return data, manifest
        if current_generation(folder) == manifest.generation:
            break
    raise IndexDamaged(f"{wrong}; {rebuild(folder)}")


def reading(folder: Path, load: Callable[[Path, Manifest], T]) -> T:
    """`load(data folder, manifest)`; again where a build replaced the generation meanwhile.

    Raises what open_folder and load raise.
    """
    for _ in range(ATTEMPTS - 1):
        data, manifest = open_folder(folder)
        try:
            return load(data, manifest)
        except (OSError, ValueError, RuntimeError, NcsError):
            if current_generation(folder) == manifest.generation:
                raise
    return load(*open_folder(folder))


class Hold:
    """Keeps the files of a generation from being removed by a build, for who opens them later.

    What is open or memory-mapped already stays readable anyway. A hold writes nothing, works on read-only media,
    and ends with the process. Where the system has no such locks it holds nothing.
    """

    def __init__(self, data: Path) -> None:
        """Raises OSError where the generation is being removed or gone: `reading` then takes the next one."""
        self._descriptor = -1
        if os.name == "nt":
            return
        import fcntl

        self._descriptor = os.open(data, os.O_RDONLY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise
        except OSError:  # a file system without locks
            self.close()

    def close(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def find_index(start: Path) -> Path:
    """The `.ncs` index folder in `start` or the nearest folder above, as git finds its repository.

    Raises IndexNotFound.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / DEFAULT_NAME / NAME).is_file():
            return folder / DEFAULT_NAME
    raise IndexNotFound(f"no index in {start} or above; make one with: ncs build .")
