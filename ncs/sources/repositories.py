"""Finds repositories: git directories of every form, archives, the plain folders between them, and addresses.

What looks like a git directory may have come as files of a clone or an archive, made to lead elsewhere. So:

- Nothing of a git directory that lies in the root may lead out of the root: not `.git` itself, `commondir`, `objects`,
  `refs` nor alternates. (Where the root is a folder of a work tree, that work tree counts as the root.)
- A `.git` file may name a git directory outside only if that one names this folder as its own, in `gitdir` (worktrees)
  or core.worktree (submodules): what came as files of the root cannot have written there. Then nothing of it may lead
  out of the git directory that the worktrees share.
- Else `.git` still marks a repository, whose files are read, but no git directory of it is.
- A bare repository is one if it is the root itself, or lies below the root and in no work tree: a folder of clones is
  no work tree. One in a work tree is a plain folder, as git tracks its files like any others; git itself tracks nothing
  called `.git`.

What git may do with what is read: ncs.sources.git.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ncs.files import read_regular
from ncs.sources import ignore
from ncs.sources.ignore import GITIGNORE, NCSIGNORE, NO_IGNORES, Ignores

Kind = Literal["folder", "work tree", "blobs", "archive"]
_ZIPS = (".zip", ".whl", "-sources.jar")
_TARS = (".tar", ".tar.gz", ".tgz", ".crate", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_SETTINGS_BYTES = 1 << 20
_WORK_TREE = re.compile(r"^[ \t]*worktree[ \t]*=[ \t]*(.*)", re.MULTILINE | re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")


@dataclass(frozen=True, slots=True)
class GitDirectory:
    """A git directory.

    path: holds HEAD. common: holds objects, refs and settings; another one in worktrees. border: the folder that
    nothing of it may lead out of. All are real paths.
    """

    path: Path
    common: Path
    border: Path

    @property
    def exclude_file(self) -> Path:
        """The repository's own ignore file, which is not versioned."""
        return self.common / "info" / "exclude"


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, an archive, or the files of a folder that belong to no repository.

    path: on disk. prefix: its path below the root, "" or "a/b/". git: of the repository, or of the one around a plain
    folder, None where there is none that may be read; subfolder: the part of that repository's tree that is read, ""
    for all of it.
    """

    kind: Kind
    path: Path
    prefix: str = ""
    ignores: Ignores = NO_IGNORES
    git: GitDirectory | None = None
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


def repository_at(
    path: Path, names: Iterable[str], prefix: str, ignores: Ignores, *, bare: bool = True
) -> Repository | None:
    """The git repository that a folder with these entries is, or None.

    `.git` may be a folder, or a file that names one (worktrees, submodules). Blobs are read where no file lies beside
    it (`git clone --no-checkout`), and of bare repositories. bare: whether it may be one.
    """
    names = set(names)
    root = path.parents[prefix.count("/") - 1] if prefix else path
    if ".git" in names and ((path / ".git").is_file() or (path / ".git" / "HEAD").exists()):
        kind: Kind = "work tree" if len(names) > 1 else "blobs"
        return Repository(kind, path, prefix, ignores.without_git(), _git_directory(path, path / ".git", root))
    if bare and looks_bare(path, names):
        return Repository("blobs", path, prefix, ignores.without_git(), _git_directory(path, path, root))
    return None


def looks_bare(path: Path, names: Collection[str]) -> bool:
    """Whether a folder with these entries has the form of a git directory."""
    return {"HEAD", "objects", "refs"} <= set(names) and (path / "objects").is_dir()


def _git_directory(folder: Path, git_dir: Path, root: Path) -> GitDirectory | None:
    """The git directory of a folder, by the rules above; None where there is none that may be read."""
    try:
        if git_dir.is_file():
            git_dir = folder / _line(git_dir).removeprefix("gitdir:").strip()
        git_dir = common = git_dir.resolve(strict=True)
        if (git_dir / "commondir").exists():
            common = (git_dir / _line(git_dir / "commondir")).resolve(strict=True)
        inside = git_dir.is_relative_to(root)
        if not inside and not _names(git_dir, common, folder):
            return None
        border = root if inside else common
        own = (git_dir, common, (common / "info").resolve())
    except (OSError, ValueError, RuntimeError):  # git itself would fail here; a work tree can still be read
        return None
    return GitDirectory(git_dir, common, border) if all(each.is_relative_to(border) for each in own) else None


def _names(git_dir: Path, common: Path, folder: Path) -> bool:
    """Whether a git directory names this folder as its work tree."""
    if git_dir != common:
        names = (git_dir / _line(git_dir / "gitdir")).resolve()
        return git_dir.parent == common / "worktrees" and names == folder / ".git"
    work_tree = _WORK_TREE.search(settings(common))
    return work_tree is not None and (git_dir / work_tree[1].strip().strip('"')).resolve() == folder


def is_inner_work_tree(folder: Path) -> bool:
    """Whether a folder is a linked work tree that lies in another work tree of its repository."""
    around = map(common_directory, folder.parents if _linked(folder) else ())
    return any(common is not None and is_linked_to(folder, common) for common in around)


def is_linked_to(folder: Path, common: Path) -> bool:
    """Whether a folder is a linked work tree of a work tree with this `.git`, also where both were moved or copied.

    A work tree of a bare repository is none: nothing else holds its files.
    """
    linked = _linked(folder)
    if linked is None or common.name != ".git":
        return False
    try:
        named = (linked / _line(linked / "gitdir")).resolve() == folder / ".git"
    except (OSError, ValueError, RuntimeError):
        named = False
    of = linked.resolve().parents[1] if named else common
    return of == common and (common / "worktrees" / linked.name).is_dir()


def main_work_tree(folder: Path) -> Path | None:
    """The work tree that a linked one belongs to; None for any other folder."""
    git = _git_directory(folder, folder / ".git", folder) if _linked(folder) else None
    return git.common.parent if git is not None and is_linked_to(folder, git.common) else None


def _linked(folder: Path) -> Path | None:
    """The folder that a linked work tree names in `.git`, `worktrees/NAME` of its repository; None for others."""
    try:
        path = folder / _line(folder / ".git").removeprefix("gitdir:").strip()
    except (OSError, ValueError):  # for one, a folder
        return None
    return path if path.parent.name == "worktrees" else None


def common_directory(folder: Path) -> Path | None:
    """The `.git` of a work tree, or of the one that a linked work tree belongs to, by its name; None for others."""
    git_dir, linked = folder / ".git", _linked(folder)
    return git_dir.resolve() if git_dir.is_dir() else linked.resolve().parents[1] if linked is not None else None


def settings(common: Path) -> str:
    """The text of a repository's own settings; "" where it has none."""
    try:
        return read_regular(common / "config", _SETTINGS_BYTES, follow=False).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def plain_folder(folder: Path) -> Repository:
    """A plain folder as root, with the git directory and the ignore files of the repository around it, if any."""
    top = next((parent for parent in folder.parents if (parent / ".git").exists()), None)
    around = repository_at(top, [".git"], "", NO_IGNORES) if top is not None else None
    if top is None or around is None:
        return Repository("folder", folder)
    subfolder = folder.relative_to(top).as_posix() + "/"
    ignores = NO_IGNORES
    if around.git is not None:
        ignores = ignores.with_git(ignore.load(around.git.exclude_file, above=subfolder))
    for parent in reversed([parent for parent in folder.parents if parent.is_relative_to(top)]):
        above = folder.relative_to(parent).as_posix() + "/"
        ignores = ignores.with_git(ignore.load(parent / GITIGNORE, above=above))
        ignores = ignores.with_ncs(ignore.load(parent / NCSIGNORE, above=above))
    return Repository("folder", folder, "", ignores, around.git, subfolder)


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
    return os.fsdecode(read_regular(path, _SETTINGS_BYTES, follow=False)).strip()
