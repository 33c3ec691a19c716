"""Where source files come from: folders, git repositories (bare ones too) and archives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncs.sources.roots import check, read_all
from ncs.sources.skips import Limits, Sieve, Skipped, shown

__all__ = ["Limits", "SourceFile", "Skipped", "walk", "count"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of source code: `path` is posix and relative to its repository.

    data: as on disk, but without a byte order mark and, where one marked UTF-16, in UTF-8.
    """

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
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> Iterator[SourceFile]:
    """All source files below the roots: roots as given, in them repositories by name, in them files by path.

    A root is a folder, a git repository (bare ones too), an archive or a file. Every git directory
    below a folder is one repository, named by its path; so is every archive directly in a folder that
    is no repository; files outside of them belong to one named after the folder. Names and paths are
    ordered by their bytes.
    `wanted` chooses by path; all that is left out is counted in `skipped`. With a revision, git
    repositories are read as of that revision, and nothing else is.
    Raises SourceError for a root that is missing, unreadable, unsupported, or (without force) a home
    folder or a whole drive.
    """
    sieve = Sieve(wanted, Skipped() if skipped is None else skipped, limits)
    files = read_all(check(roots, force), sieve, revision, read=True)
    return (SourceFile(repository, shown(path), data) for repository, (path, _, data) in files)


def count(
    roots: Sequence[Path],
    *,
    wanted: Callable[[str], bool],
    revision: str | None = None,
    force: bool = False,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> tuple[int, int]:
    """(files, bytes) that `walk` reads at most: paths and sizes are judged, contents are not read."""
    sieve = Sieve(wanted, Skipped(), limits)
    n_files = n_bytes = 0
    for _, (_, size, _) in read_all(check(roots, force), sieve, revision, read=False):
        n_files += 1
        n_bytes += size
    return n_files, n_bytes
