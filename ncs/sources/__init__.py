"""Where source files come from: folders, git repositories (bare ones too) and archives."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncs.errors import SourceError
from ncs.sources import folders, git
from ncs.sources.folders import Place, Read
from ncs.sources.skips import Sieve, Skipped, shown

__all__ = ["MAX_FILE_BYTES", "SourceFile", "Skipped", "walk", "count"]

MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of source code: `path` is posix and relative to its repository."""

    repository: str
    path: str
    data: bytes


def walk(
    roots: Sequence[Path],
    *,
    wanted: Callable[[str], bool],
    revision: str | None = None,
    force: bool = False,
    skipped: Skipped | None = None,
    max_file_bytes: int = MAX_FILE_BYTES,
) -> Iterator[SourceFile]:
    """All source files below the roots: roots as given, then repositories and paths in bytewise order.

    A root is a folder, a git repository (bare ones too), an archive or a file. Every git directory
    below a folder is one repository, named by its path; what lies outside of them belongs to one
    named after the folder. `wanted` chooses by path; what is left out is counted in `skipped`.
    Raises SourceError for a root that is missing, unreadable or (without force) a home folder or drive.
    """
    sieve = Sieve(wanted, Skipped() if skipped is None else skipped, max_file_bytes)
    for repository, (path, _, data) in _read(roots, sieve, revision, force, read=True):
        yield SourceFile(repository, shown(path), data)


def count(
    roots: Sequence[Path],
    *,
    wanted: Callable[[str], bool],
    revision: str | None = None,
    force: bool = False,
    max_file_bytes: int = MAX_FILE_BYTES,
) -> tuple[int, int]:
    """(files, bytes) that `walk` will read at most: it judges paths and sizes, not contents."""
    sieve = Sieve(wanted, Skipped(), max_file_bytes)
    n_files = n_bytes = 0
    for _, (_, size, _) in _read(roots, sieve, revision, force, read=False):
        n_files += 1
        n_bytes += size
    return n_files, n_bytes


def _read(
    roots: Sequence[Path], sieve: Sieve, revision: str | None, force: bool, *, read: bool
) -> Iterator[tuple[str, Read]]:
    names: set[str] = set()
    for root in [_checked(root, force) for root in roots]:
        if root.is_file():
            yield from _one_file(root, sieve, names, read=read)
            continue
        heap: list[tuple[bytes, Place]] = [(b"", _place(root))]

        def found(place: Place, heap: list[tuple[bytes, Place]] = heap) -> None:
            heapq.heappush(heap, (os.fsencode(place.where.rstrip("/")), place))

        while heap:
            _, place = heapq.heappop(heap)
            name = None
            for item in _files(place, sieve, revision, found, read=read):
                if name is None:
                    name = _name(place, root, names)
                yield name, item


def _files(
    place: Place, sieve: Sieve, revision: str | None, found: Callable[[Place], None], *, read: bool
) -> Iterator[Read]:
    if place.kind == "archive":
        return iter(())
    if place.kind != "tree" or (revision is not None and place.is_repository):
        return git.files(place, sieve, revision, read=read)
    return folders.files(place, sieve, found, read=read)


def _place(root: Path) -> Place:
    try:
        names = set(os.listdir(root))
    except OSError as error:
        raise SourceError(f"cannot read {root} ({error.strerror}); check its permissions") from error
    kind = folders.kind_of(names, str(root))
    return Place(kind or "tree", str(root), "", is_repository=kind is not None)


def _one_file(root: Path, sieve: Sieve, names: set[str], *, read: bool) -> Iterator[tuple[str, Read]]:
    if not sieve.wanted(root.name):
        raise SourceError(f"{root} is no source file of a known language; name a folder, archive or source file")
    data = root.read_bytes()
    yield _unique(root.parent.name, root.parent.parent.name, names), (root.name, len(data), data if read else b"")


def _checked(root: Path, force: bool) -> Path:
    """The root, resolved; SourceError where it is missing or too much."""
    resolved = Path(os.path.realpath(Path(root).expanduser()))
    if not resolved.exists():
        raise SourceError(f"there is no {root}; name a folder, git repository, archive or source file")
    if not force and (resolved == Path(resolved.anchor) or resolved == Path(os.path.realpath(Path.home()))):
        raise SourceError(f"{resolved} is a home folder or a whole drive; name a folder in it, or use --force")
    return resolved


def _name(place: Place, root: Path, names: set[str]) -> str:
    own = place.where.rstrip("/") or root.name
    return _unique(shown(own.removesuffix(".git") or own), shown(root.name), names)


def _unique(name: str, above: str, names: set[str]) -> str:
    """The name, or where another root has that name already: with its folder before it, then numbered."""
    candidates = [name, f"{above}/{name}", *(f"{name}~{n}" for n in range(2, len(names) + 3))]
    chosen = next(candidate for candidate in candidates if candidate not in names)
    names.add(chosen)
    return chosen
