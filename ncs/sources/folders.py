"""Source files of a folder, down to the borders of the repositories below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ncs.sources import ignores as ignoring
from ncs.sources.ignores import GITIGNORE, NCSIGNORE, Ignores
from ncs.sources.origins import Read, origin_of
from ncs.sources.places import Place, archive_suffix, exclude_file, repository_at
from ncs.sources.seen import NOWHERE, folder_stamp, stamp_of
from ncs.sources.skips import Sieve

Entry = os.DirEntry[str]
Found = Callable[[Place], None]


def files(
    place: Place, sieve: Sieve, found: Found, apart: frozenset[str] = frozenset(), *, read: bool = True
) -> Iterator[Read]:
    """Source files in bytewise path order; repositories below and archives in a plain root go to `found`.

    Links are not followed, as in ripgrep: so no file is read twice and loops end. What is `apart`
    is passed over. With read=False contents are neither read nor judged.
    """
    ignores = place.ignores
    if place.git_dir is not None and not place.inside:
        exclude = exclude_file(place.git_dir)
        if sieve.seen:
            sieve.seen.guard(exclude)
        ignores = ignores.with_git(ignoring.read(exclude, base=place.where))
    at = len(str(place.path / "x")) - 1
    stack = [_entries(str(place.path), place.where, ignores, sieve, found, str(place.path), top=True)]
    while stack:
        if (step := next(stack[-1], None)) is None:
            stack.pop()
            continue
        entry, is_folder, ignores = step
        below = entry.path[at:].replace(os.sep, "/")
        path = place.where + below
        if entry.path in apart:
            continue
        if is_folder:
            if (sieve.enter is None or sieve.enter(entry.path)) and sieve.folder(path + "/", ignores):
                stack.append(_entries(entry.path, path + "/", ignores, sieve, found, str(place.path)))
        elif place.kind == "folder" and path == entry.name and archive_suffix(path) and not entry.is_symlink():
            if (sieve.enter is None or sieve.enter(entry.path)) and sieve.archive(path, ignores):
                found(Place("archive", Path(entry.path), path + "/", ignores.without_git()))
        elif sieve.file(path, ignores):
            yield from _file(entry, below, path, ignores, sieve, read)


def _entries(
    folder: str, where: str, ignores: Ignores, sieve: Sieve, found: Found, place: str, *, top: bool = False
) -> Iterator[tuple[Entry, bool, Ignores]]:
    """(entry, is it a folder, the rules that hold here) in the order of full paths; nothing where others take over."""
    stamp = folder_stamp(folder) if sieve.seen else NOWHERE
    if sieve.seen:
        sieve.seen.folders[folder] = (stamp, "")
    try:
        with os.scandir(folder) as scan:
            names = {entry.name: (entry, entry.is_dir(follow_symlinks=False)) for entry in scan}
    except OSError:
        sieve.unreadable(where or folder)
        return
    if not top:
        if repository := repository_at(Path(folder), names, where, ignores):
            found(repository)
            return
        if reason := _left_to_others(names, where, ignores):
            sieve.skipped.add(reason)
            return
    if sieve.seen:
        sieve.seen.folders[folder] = (stamp, place)
        for name in (GITIGNORE, NCSIGNORE):
            if name in names:
                sieve.seen.guard(Path(folder, name))
    if GITIGNORE in names:
        ignores = ignores.with_git(ignoring.read(Path(folder, GITIGNORE), base=where))
    if NCSIGNORE in names:
        ignores = ignores.with_ncs(ignoring.read(Path(folder, NCSIGNORE), base=where))
    for entry, is_folder in sorted(names.values(), key=_in_path_order):
        yield entry, is_folder, ignores


def _left_to_others(names: dict[str, tuple[Entry, bool]], where: str, ignores: Ignores) -> str | None:
    if "pyvenv.cfg" in names and ignores.chosen(where) is None:
        return "vendored folders"
    if "manifest.json" in names and any(name.startswith("data-") for name in names):
        return "index folders"
    return None


def _in_path_order(named: tuple[Entry, bool]) -> bytes:
    # a folder sorts as the files in it do: "a-b/x" before "a/x", because "-" < "/"
    return os.fsencode(named[0].name) + b"/" * named[1]


def _file(entry: Entry, below: str, path: str, ignores: Ignores, sieve: Sieve, read: bool) -> Iterator[Read]:
    try:
        if not entry.is_file(follow_symlinks=False):
            sieve.skipped.add("links" if entry.is_symlink() else "special files")
        elif not read:
            size = entry.stat(follow_symlinks=False).st_size
            if sieve.size(size, path):
                yield Read(below, size, b"")
        else:
            with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123  (a Path a file is slow)
                status = os.fstat(file.fileno())
                if not sieve.size(status.st_size, path):
                    _left(entry, sieve)
                    return
                origin = origin_of(entry.path, status)
                if sieve.unchanged(origin):
                    yield Read(below, status.st_size, b"", origin, unchanged=True)
                    return
                content = file.readall()
            if (data := sieve.content(path, content, ignores)) is not None:
                yield Read(below, len(data), data, origin)
            else:
                _left(entry, sieve)
    except OSError:
        _left(entry, sieve)
        sieve.unreadable(path)


def _left(entry: Entry, sieve: Sieve) -> None:
    if sieve.seen:
        sieve.seen.left[entry.path] = stamp_of(entry.path)
