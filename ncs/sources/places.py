"""Where repositories lie: git directories of every form, archives, and the plain folders between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ncs.sources import ignores as ignoring
from ncs.sources.ignores import GITIGNORE, NCSIGNORE, NO_IGNORES, Ignores

Kind = Literal["folder", "work tree", "blobs", "archive"]
_ZIPS = (".zip", ".whl", "-sources.jar")
_TARS = (".tar", ".tar.gz", ".tgz", ".crate", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")


@dataclass(frozen=True, slots=True)
class Place:
    """One repository, or the files outside of any.

    path: on disk. where: relative to the root, "" or "a/b/". git_dir: of a git repository or of the
    one around a plain folder, and inside: the folder of its tree that is read, "" for all.
    """

    kind: Kind
    path: Path
    where: str = ""
    ignores: Ignores = NO_IGNORES
    git_dir: Path | None = None
    inside: str = ""

    @property
    def name(self) -> str:
        """The repository's name: its path below the root, or the root's own name, without suffixes."""
        name = self.where.rstrip("/") or called(self.path).name or "root"  # a drive has no name
        if self.kind == "archive":
            return name[: -len(archive_suffix(name))]
        return name.removesuffix(".git") or name


def called(path: Path) -> Path:
    """The folder that people call a repository: the one around it where it is named `.git`."""
    return path.parent if path.name == ".git" else path


def archive_suffix(name: str) -> str:
    """The suffix that makes this name an archive's, or ""."""
    lower = name.lower()
    return next((suffix for suffix in _ZIPS + _TARS if lower.endswith(suffix) and lower != suffix), "")


def repository_at(path: Path, names: Iterable[str], where: str, ignores: Ignores) -> Place | None:
    """The git repository that a folder with these entries is, or None.

    `.git` may be a folder, or a file that names one (worktrees, submodules). Where nothing lies
    beside it (`git clone --no-checkout`) and where there is none (bare), blobs are read.
    """
    names = set(names)
    git_dir = path / ".git"
    if ".git" in names and (git_dir.is_file() or (git_dir / "HEAD").exists()):
        return Place("work tree" if len(names) > 1 else "blobs", path, where, ignores.without_git(), git_dir)
    if {"HEAD", "objects", "refs"} <= names and (path / "objects").is_dir():
        return Place("blobs", path, where, ignores.without_git(), path)
    return None


def common_dir(git_dir: Path) -> Path:
    """Where objects and settings lie, also where `.git` is a file or shares another's (submodules, worktrees)."""
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


def folder_in_repository(folder: Path) -> Place:
    """A plain folder as root: with the git directory and the ignore files of the repository around it, if any."""
    top = next((above for above in folder.parents if (above / ".git").exists()), None)
    if top is None or not repository_at(top, [".git"], "", NO_IGNORES):
        return Place("folder", folder)
    inside = folder.relative_to(top).as_posix() + "/"
    git_dir = top / ".git"
    ignores = NO_IGNORES.with_git(ignoring.read(exclude_file(git_dir), above=inside))
    for above in reversed([parent for parent in folder.parents if parent.is_relative_to(top)]):
        between = folder.relative_to(above).as_posix() + "/"
        ignores = ignores.with_git(ignoring.read(above / GITIGNORE, above=between))
        ignores = ignores.with_ncs(ignoring.read(above / NCSIGNORE, above=between))
    return Place("folder", folder, "", ignores, git_dir, inside)


def _line(path: Path) -> str:
    return path.read_text("utf-8", "surrogateescape").strip()
