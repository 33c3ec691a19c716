"""Finds repositories: git directories of every form, archives, the plain folders between them, and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ncs.sources import ignore
from ncs.sources.ignore import GITIGNORE, NCSIGNORE, NO_IGNORES, Ignores

Kind = Literal["folder", "work tree", "blobs", "archive"]
_ZIPS = (".zip", ".whl", "-sources.jar")
_TARS = (".tar", ".tar.gz", ".tgz", ".crate", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, an archive, or the files of a folder that belong to no repository.

    path: on disk. prefix: its path below the root, "" or "a/b/". git_dir: of the repository, or of the one around a
    plain folder; subfolder: the part of that repository's tree that is read, "" for all of it.
    """

    kind: Kind
    path: Path
    prefix: str = ""
    ignores: Ignores = NO_IGNORES
    git_dir: Path | None = None
    subfolder: str = ""

    @property
    def name(self) -> str:
        """Its path below the root, or the root's own name, without suffixes."""
        name = self.prefix.rstrip("/") or display_folder(self.path).name or "root"  # a drive has no name
        if self.kind == "archive":
            return name[: -len(archive_suffix(name))]
        return name.removesuffix(".git") or name


def display_folder(path: Path) -> Path:
    """The folder that people name a repository after: the one around it where it is called `.git`."""
    return path.parent if path.name == ".git" else path


def archive_suffix(name: str) -> str:
    """The suffix that makes this name an archive's, or ""."""
    lower = name.lower()
    return next((suffix for suffix in _ZIPS + _TARS if lower.endswith(suffix) and lower != suffix), "")


def repository_at(path: Path, names: Iterable[str], prefix: str, ignores: Ignores) -> Repository | None:
    """The git repository that a folder with these entries is, or None.

    `.git` may be a folder, or a file that names one (worktrees, submodules). Blobs are read where no file lies beside
    it (`git clone --no-checkout`), and of bare repositories.
    """
    names = set(names)
    git_dir = path / ".git"
    if ".git" in names and (git_dir.is_file() or (git_dir / "HEAD").exists()):
        return Repository("work tree" if len(names) > 1 else "blobs", path, prefix, ignores.without_git(), git_dir)
    if {"HEAD", "objects", "refs"} <= names and (path / "objects").is_dir():
        return Repository("blobs", path, prefix, ignores.without_git(), path)
    return None


def common_dir(git_dir: Path) -> Path:
    """The folder of objects and settings, also where `.git` is a file or shares another's (submodules, worktrees)."""
    try:
        if git_dir.is_file():
            git_dir = git_dir.parent / _line(git_dir).removeprefix("gitdir:").strip()
        if (git_dir / "commondir").is_file():
            git_dir = git_dir / _line(git_dir / "commondir")
    except OSError:  # git itself would fail here; a work tree can still be read
        pass
    return git_dir


def exclude_file(git_dir: Path) -> Path:
    """The repository's own ignore file, which is not versioned."""
    return common_dir(git_dir) / "info" / "exclude"


def plain_folder(folder: Path) -> Repository:
    """A plain folder as root, with the git directory and the ignore files of the repository around it, if any."""
    top = next((parent for parent in folder.parents if (parent / ".git").exists()), None)
    if top is None or not repository_at(top, [".git"], "", NO_IGNORES):
        return Repository("folder", folder)
    subfolder = folder.relative_to(top).as_posix() + "/"
    git_dir = top / ".git"
    ignores = NO_IGNORES.with_git(ignore.load(exclude_file(git_dir), above=subfolder))
    for parent in reversed([parent for parent in folder.parents if parent.is_relative_to(top)]):
        above = folder.relative_to(parent).as_posix() + "/"
        ignores = ignores.with_git(ignore.load(parent / GITIGNORE, above=above))
        ignores = ignores.with_ncs(ignore.load(parent / NCSIGNORE, above=above))
    return Repository("folder", folder, "", ignores, git_dir, subfolder)


def is_address(root: str | Path) -> bool:
    """Whether a root lies behind a protocol (s3://bucket/repos); as a Path it has lost one of its two slashes.

    >>> is_address(Path("s3://bucket/repos")), is_address("/data/repos"), is_address(Path("a:/b"))
    (True, False, False)
    """
    return _ADDRESS.match(str(root)) is not None


def address_of(root: str | Path) -> str:
    """The address that a path was made of.

    >>> address_of(Path("s3://bucket/repos"))
    's3://bucket/repos'
    >>> address_of(Path("file:///data/repos"))
    'file:///data/repos'
    """
    protocol, _, rest = str(root).partition(":")
    return f"{protocol}:///{rest.lstrip('/')}" if protocol in ("file", "local") else f"{protocol}://{rest.lstrip('/')}"


def _line(path: Path) -> str:
    return path.read_text("utf-8", "surrogateescape").strip()
