"""Source files of a folder: what lies in it, down to the borders of the repositories below."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ncs.sources.ignores import GITIGNORE, NCSIGNORE, Ignores, IgnoreFile, parse
from ncs.sources.skips import Sieve, shown

Kind = Literal["tree", "bare", "unchecked", "archive"]
Read: TypeAlias = tuple[str, int, bytes]
"""path relative to the repository, size in bytes, content (empty when only listing)."""
ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one repository lies: `path` on disk, `where` relative to the root ("" or "a/b/")."""

    kind: Kind
    path: str
    where: str
    ignores: Ignores = Ignores()
    is_repository: bool = True


def kind_of(names: set[str], path: str) -> Kind | None:
    """What kind of git directory a folder with these entries is; None where it is none."""
    if ".git" in names:
        dot_git = Path(path, ".git")
        if dot_git.is_file() or (dot_git / "HEAD").exists():
            return "unchecked" if len(names) == 1 else "tree"
    if {"HEAD", "objects", "refs"} <= names and Path(path, "objects").is_dir() and Path(path, "HEAD").is_file():
        return "bare"
    return None


def is_archive(name: str) -> bool:
    """Has this file a suffix of an archive?"""
    return name.lower().endswith(ARCHIVES)


def files(place: Place, sieve: Sieve, found: Callable[[Place], None], *, read: bool) -> Iterator[Read]:
    """Source files of a tree in bytewise path order; repositories and archives in it go to `found`.

    Links are not followed (as in ripgrep), so no file is read twice and loops end.
    """
    stack: list[Iterator[tuple[os.DirEntry[str], Ignores]]] = []
    ignores = place.ignores
    if place.is_repository:
        ignores = ignores.with_git(_ignore_file(_info_exclude(place.path), place.where))
    entries = _entries(place.path, place.where, ignores, sieve, place, found)
    stack.append(entries)
    prefix = len(place.path.rstrip(os.sep)) + 1
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        entry, ignores = step
        below = entry.path[prefix:].replace(os.sep, "/")
        path = place.where + below
        if entry.is_dir(follow_symlinks=False):
            if sieve.folder(path + "/", ignores):
                stack.append(_entries(entry.path, path + "/", ignores, sieve, place, found))
        elif is_archive(entry.name) and not path.count("/") and not place.is_repository:
            found(Place("archive", entry.path, path, ignores))
        elif sieve.file(path, ignores):
            yield from _file(entry, below, path, ignores, sieve, read)


def _entries(
    folder: str, where: str, ignores: Ignores, sieve: Sieve, place: Place, found: Callable[[Place], None]
) -> Iterator[tuple[os.DirEntry[str], Ignores]]:
    """The entries of a folder in the order of full paths, or nothing where it is a repository of its own."""
    try:
        with os.scandir(folder) as scan:
            entries = {entry.name: entry for entry in scan}
    except OSError:
        sieve.skipped.add_unreadable(shown(where or folder))
        return
    if folder != place.path:
        kind = kind_of(set(entries), folder)
        if kind is not None:
            found(Place(kind, folder, where, ignores.without_git()))
            return
        if "pyvenv.cfg" in entries and ignores.chosen(where) is None:
            sieve.skipped.add("vendored folders")
            return
        if "manifest.json" in entries and any(name.startswith("data-") for name in entries):
            return
    if GITIGNORE in entries:
        ignores = ignores.with_git(_ignore_file(Path(folder, GITIGNORE), where))
    if NCSIGNORE in entries:
        ignores = ignores.with_ncs(_ignore_file(Path(folder, NCSIGNORE), where))
    for entry in sorted(entries.values(), key=_in_path_order):
        yield entry, ignores


def _in_path_order(entry: os.DirEntry[str]) -> bytes:
    # a folder sorts as its files do: "a-b/x" before "a/x", since "-" < "/"
    return os.fsencode(entry.name) + (b"/" if entry.is_dir(follow_symlinks=False) else b"")


def _file(
    entry: os.DirEntry[str], below: str, path: str, ignores: Ignores, sieve: Sieve, read: bool
) -> Iterator[Read]:
    if not entry.is_file(follow_symlinks=False):
        sieve.skipped.add("links" if entry.is_symlink() else "special files")
        return
    try:
        if not read:
            size = entry.stat(follow_symlinks=False).st_size
            if sieve.size(size):
                yield below, size, b""
            return
        with open(entry.path, "rb", buffering=0) as file:
            data = file.read(sieve.max_file_bytes + 1)
    except OSError:
        sieve.skipped.add_unreadable(shown(path))
        return
    if sieve.content(path, data, ignores):
        yield below, len(data), data


def _ignore_file(path: Path, base: str) -> IgnoreFile | None:
    try:
        return parse(path.read_bytes(), base) if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None


def _info_exclude(work_tree: str) -> Path:
    """.git/info/exclude, also where .git is a file that names the real place (worktrees, submodules)."""
    git = Path(work_tree, ".git")
    try:
        if git.is_file():
            git = Path(work_tree, git.read_text(errors="surrogateescape").removeprefix("gitdir:").strip())
        common = git / "commondir"
        if common.is_file():
            git = git / common.read_text(errors="surrogateescape").strip()
    except OSError:
        pass
    return git / "info" / "exclude"
