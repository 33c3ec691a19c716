"""Where source files come from: folders, git repositories (bare ones too) and archives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ncs.sources.origins import Origin
from ncs.sources.roots import check, read_all
from ncs.sources.seen import Seen
from ncs.sources.skips import Limits, Sieve, Skipped, Wanted, shown

__all__ = ["Limits", "Origin", "SourceFile", "Skipped", "Wanted", "walk", "count"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of source code: `path` is posix and relative to its repository.

    data: as on disk, but without a byte order mark and, where one marked UTF-16, in UTF-8; empty
    where it is `unchanged` since the caller saw it.
    """

    repository: str
    path: str
    data: bytes
    origin: Origin | None = field(default=None, compare=False)
    unchanged: bool = False


def walk(
    roots: Sequence[Path],
    *,
    wanted: Callable[[str], Wanted],
    revision: str | None = None,
    force: bool = False,
    skipped: Skipped | None = None,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    unchanged: Callable[[Origin], bool] = lambda origin: False,
    seen: Seen | None = None,
    enter: Callable[[str], bool] | None = None,
) -> Iterator[SourceFile]:
    """All source files below the roots: roots as given, in them repositories by name, in them files by path.

    A root is a folder, a git repository (bare ones too), an archive or a file. Every git directory
    below a folder is one repository, named by its path; so is every archive directly in a folder that
    is no repository; files outside of them belong to one named after the folder. Names and paths are
    ordered by their bytes.
    `wanted` chooses by path, or asks the content; all that is left out is counted in `skipped`. Contents
    that are `unchanged` are named and not read; it is asked in the order of the files. Folders that are not to be
    `enter`ed are passed over; what else is met is noted in `seen`. With a revision, git
    repositories are read as of that revision, and nothing else is.
    Raises SourceError for a root that is missing, unreadable, unsupported, or (without force) a home
    folder or a whole drive.
    """
    sieve = Sieve(wanted, Skipped() if skipped is None else skipped, limits, unchanged, seen, enter)
    files = read_all(check(roots, force), sieve, revision, read=True)
    return (
        SourceFile(repository, shown(file.path), file.data, file.origin, file.unchanged) for repository, file in files
    )


def count(
    roots: Sequence[Path],
    *,
    wanted: Callable[[str], Wanted],
    revision: str | None = None,
    force: bool = False,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> tuple[int, int]:
    """(files, bytes) that `walk` reads at most: paths and sizes are judged, contents are not read."""
    sieve = Sieve(wanted, Skipped(), limits)
    n_files = n_bytes = 0
    for _, file in read_all(check(roots, force), sieve, revision, read=False):
        n_files += 1
        n_bytes += file.size
    return n_files, n_bytes
