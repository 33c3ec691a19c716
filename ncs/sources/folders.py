"""Source files of a folder, down to the borders of the repositories below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ncs.sources import ignore
from ncs.sources.files import RawFile, file_origin
from ncs.sources.filters import Filter
from ncs.sources.ignore import GITIGNORE, NCSIGNORE, Ignores
from ncs.sources.repositories import Repository, archive_suffix, exclude_file, repository_at

Entry = os.DirEntry[str]
Discovered = Callable[[Repository], None]


def files(
    repository: Repository,
    filter: Filter,
    discovered: Discovered,
    other_roots: frozenset[str] = frozenset(),
    *,
    read: bool = True,
) -> Iterator[RawFile]:
    """Source files in bytewise path order; repositories below, and archives in a plain root, go to `discovered`.

    Links are not followed, as in ripgrep: so no file is read twice and loops end. Other roots are skipped here.
    With read=False contents are neither read nor judged.
    """
    ignores = repository.ignores
    if repository.git_dir is not None and not repository.subfolder:
        ignores = ignores.with_git(ignore.load(exclude_file(repository.git_dir), base=repository.prefix))
    at = len(str(repository.path / "x")) - 1
    stack = [_entries(str(repository.path), repository.prefix, ignores, filter, discovered, is_top=True)]
    while stack:
        if (step := next(stack[-1], None)) is None:
            stack.pop()
            continue
        entry, is_folder, ignores = step
        below = entry.path[at:].replace(os.sep, "/")
        path = repository.prefix + below
        if entry.path in other_roots:
            continue
        if is_folder:
            if filter.reaches(entry.path) and filter.folder(path + "/", ignores):
                stack.append(_entries(entry.path, path + "/", ignores, filter, discovered))
        elif repository.kind == "folder" and path == entry.name and archive_suffix(path) and not entry.is_symlink():
            if filter.reaches(entry.path) and filter.archive(path, ignores):
                discovered(Repository("archive", Path(entry.path), path + "/", ignores.without_git()))
        elif filter.covers(entry.path) and filter.file(path, ignores):
            yield from _file(entry, below, path, ignores, filter, read)


def _entries(
    folder: str,
    prefix: str,
    ignores: Ignores,
    filter: Filter,
    discovered: Discovered,
    *,
    is_top: bool = False,
) -> Iterator[tuple[Entry, bool, Ignores]]:
    """(entry, whether it is a folder, the rules that hold here) in the order of full paths.

    Nothing of a folder that is a repository, a virtual environment or an index.
    """
    try:
        with os.scandir(folder) as scan:
            entries = {entry.name: (entry, entry.is_dir(follow_symlinks=False)) for entry in scan}
    except OSError:
        filter.unreadable(prefix or folder)
        return
    if not is_top:
        may_be = ".git" in entries or "objects" in entries  # a Path for every folder is slow
        if may_be and (repository := repository_at(Path(folder), entries, prefix, ignores)):
            discovered(repository)
            return
        if "pyvenv.cfg" in entries and ignores.by_ncsignore(prefix) is None:
            filter.skipped.add("vendored folders")
            return
        if _is_index(entries):
            filter.skipped.add("index folders")
            return
    if GITIGNORE in entries:
        ignores = ignores.with_git(ignore.load(Path(folder, GITIGNORE), base=prefix))
    if NCSIGNORE in entries:
        ignores = ignores.with_ncs(ignore.load(Path(folder, NCSIGNORE), base=prefix))
    for entry, is_folder in sorted(entries.values(), key=_in_path_order):
        yield entry, is_folder, ignores


def _is_index(names: dict[str, tuple[Entry, bool]]) -> bool:
    """Whether a folder with these entries is an index, of this format or of the one before."""
    return {"snapshot.json", "segments"} <= names.keys() or (
        "manifest.json" in names and any(name.startswith("data-") for name in names)
    )


def _in_path_order(entry: tuple[Entry, bool]) -> bytes:
    # a folder sorts as the files in it do: "a-b/x" before "a/x", because "-" < "/"
    return os.fsencode(entry[0].name) + b"/" * entry[1]


def _file(entry: Entry, below: str, path: str, ignores: Ignores, filter: Filter, read: bool) -> Iterator[RawFile]:
    try:
        if not entry.is_file(follow_symlinks=False):
            filter.skipped.add("links" if entry.is_symlink() else "special files")
            return
        status = entry.stat(follow_symlinks=False)
        if not filter.size(status.st_size, path):
            return
        origin = file_origin(entry.path, status)
        if not read:
            yield RawFile(below, status.st_size, b"")
            return
        if filter.unchanged(origin):
            yield RawFile(below, status.st_size, b"", origin, unchanged=True)
            return
        with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123  (a Path a file is slow)
            origin = file_origin(entry.path, os.fstat(file.fileno()))  # of what is read, not of what stood there before
            content = file.readall()
        if (data := filter.content(path, content, ignores)) is not None:
            yield RawFile(below, len(data), data, origin)
    except OSError:
        filter.unreadable(path)
