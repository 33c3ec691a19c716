"""The repositories of a folder: git ones (bare too), archives, plain trees, and the packages that Python has installed.

A name is owner/name where git's origin or a folder's name (`owner+name`) says so, else the path below the folder. A
folder with `*.dist-info` in it is Python's: every distribution is a repository, its version is the commit.
Repositories inside a repository (submodules) are skipped, like vendored folders.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PathDistribution
from pathlib import Path

from corpora.codesearchnet.licenses import FILE, license_expression
from ncs.errors import SourceError
from ncs.extract import language_of
from ncs.sources import Skipped, SourceFile, walk
from ncs.sources.files import printable
from ncs.sources.filters import CACHES, NEVER, VENDORED, Filter, FolderFilter
from ncs.sources.git import ObjectReader, open_git
from ncs.sources.ignore import NO_IGNORES
from ncs.sources.repositories import Repository as Tree
from ncs.sources.repositories import archive_suffix, repository_at, settings

DIST_INFO = ".dist-info"
_ZIP_END_BYTES, _ZIP_END = 62, re.compile(rb"PK\x05\x06.{16}\x28\x00([0-9a-f]{40})", re.DOTALL)
"""How a .zip ends that `git archive` wrote: its last record with the commit as a comment of 40 bytes."""
_FLAT = re.compile(r"([A-Za-z0-9][\w.-]*)\+([\w.-]+)")
_URL = re.compile(r"""^\[remote "origin"\][^\[]*?^[ \t]*url\s*=\s*([^\s"]+)""", re.MULTILINE)
_ORIGIN = re.compile(r"(?:[a-z+]+://(?:[^@/]*@)?|[^@/:]+@)([^/:]+)(?::\d+)?[:/]([^/:]+)/([^/]+?)(?:\.git)?/?")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on this machine. path: a folder, a git directory, an archive or a `.dist-info`.

    address: the page on the web that `blob/<commit>/<file>` continues, "" where it has none. apart: folders of Python
    packages below a plain tree, which are repositories of their own.
    """

    name: str
    path: Path
    address: str = ""
    apart: tuple[str, ...] = ()


def find_repositories(sources: Sequence[Path]) -> list[Repository]:
    """All repositories below the sources, by the bytes of their names; repeated names are numbered.

    Raises SourceError for a source that is missing.
    """
    by_path: dict[Path, Repository] = {}
    for source in sources:
        if not source.exists():
            raise SourceError(f"there is no {source}; name a folder of repositories, a repository or an archive")
        for repository in _below(source.resolve()):
            by_path.setdefault(repository.path, repository)
    counts: Counter[str] = Counter()
    numbered = []
    for repository in sorted(by_path.values(), key=lambda each: (os.fsencode(each.name), str(each.path))):
        counts[repository.name] += 1
        times = counts[repository.name]
        numbered.append(repository if times == 1 else replace(repository, name=f"{repository.name}~{times}"))
    return numbered


def _below(root: Path) -> Iterator[Repository]:
    if root.is_file():
        yield _named_repository(root, _stem(root.name), root)
        return
    outside = False
    package_folders = []
    for folder, folders, files in os.walk(root):
        path = Path(folder)
        if distributions := [name for name in folders if name.endswith(DIST_INFO)]:
            for name in distributions:
                package = PathDistribution(path / name).metadata["Name"]
                yield Repository(package or name.removesuffix(DIST_INFO), path / name)
            package_folders.append(path.relative_to(root).as_posix() + "/")
            folders.clear()
            continue
        below = path.relative_to(root).as_posix()
        if repository_at(path, [*folders, *files], "", NO_IGNORES):
            yield _named_repository(path, root.name if below == "." else below, root)
            folders.clear()
            continue
        outside = outside or any(language_of(name) is not None for name in files)
        if path == root:
            yield from (_named_repository(path / name, _stem(name), root) for name in files if archive_suffix(name))
        folders[:] = [name for name in folders if name not in VENDORED | CACHES | NEVER]
    if outside:
        yield replace(_named_repository(root, root.name, root), apart=tuple(package_folders))


def _named_repository(path: Path, below: str, root: Path) -> Repository:
    """The repository with the name that git's origin, or `owner+name` in its path from the root on, gives it."""
    tree = git_repository(path)
    url = _URL.search(settings(tree.git.common)) if tree is not None and tree.git is not None else None
    if url is not None and (origin := _ORIGIN.fullmatch(url[1])) is not None:
        host, owner, name = origin.groups()
        return Repository(f"{owner}/{name}", path, f"https://{host}/{owner}/{name}")
    for part in (root.name, *below.split("/")):
        if (flat := _FLAT.fullmatch(_stem(part).removesuffix(".git"))) is not None:
            name = f"{flat[1]}/{flat[2]}"
            return Repository(name, path, f"https://github.com/{name}")
    return Repository(printable(below.removesuffix(".git")), path)


def _stem(name: str) -> str:
    return name[: -len(archive_suffix(name)) or None]


def commit_of(repository: Repository) -> str:
    """The commit, or the version of a distribution; "" if unknown. `git archive` writes it as the comment of a .zip."""
    if repository.path.name.endswith(DIST_INFO):
        return PathDistribution(repository.path).version
    if repository.path.suffix == ".zip":
        end = _end_of_file(repository.path, _ZIP_END_BYTES)
        return match[1].decode() if (match := _ZIP_END.fullmatch(end)) else ""
    tree = git_repository(repository.path)
    try:
        if tree is not None:
            with open_git(tree) as git, closing(ObjectReader(git)) as objects:
                head = objects.read("HEAD", 0)
                return head.name if head is not None else ""
    except SourceError:
        pass
    return ""


def url_of(repository: Repository, commit: str, path: str, first: int, last: int) -> str:
    """The URL of a function in the published form; without a web address a unique name.

    >>> url_of(Repository("o/n", Path("."), "https://github.com/o/n"), "c0ffee", "a/B.java", 3, 9)
    'https://github.com/o/n/blob/c0ffee/a/B.java#L3-L9'
    >>> url_of(Repository("requests", Path(".")), "2.32", "requests/api.py", 3, 9)
    'requests@2.32/requests/api.py#L3-L9'
    """
    if repository.address:
        return f"{repository.address}/blob/{commit or 'HEAD'}/{path}#L{first}-L{last}"
    return f"{repository.name}{'@' + commit if commit else ''}/{path}#L{first}-L{last}"


def _end_of_file(path: Path, n_bytes: int) -> bytes:
    """The last bytes of a file; fewer where it is shorter, none where it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - n_bytes))
        return file.read(n_bytes)
    return b""


def find_license(repository: Repository) -> str:
    """SPDX ids, UNKNOWN or "" (`license_expression`); a distribution's own SPDX expression comes first."""
    if not repository.path.name.endswith(DIST_INFO):
        files = read_files(repository, accepts=lambda path: "/" not in path and FILE.fullmatch(path) is not None)
        return license_expression(file.data.decode("utf-8", "replace") for file in files)
    if expression := PathDistribution(repository.path).metadata.get_all("License-Expression"):
        return str(expression[0])
    paths = sorted(path for path in repository.path.rglob("*") if FILE.fullmatch(path.name) and path.is_file())
    return license_expression(path.read_bytes().decode("utf-8", "replace") for path in paths)


def read_files(
    repository: Repository, *, accepts: Callable[[str], bool], skipped: Skipped | None = None
) -> Iterator[SourceFile]:
    """The files of one repository whose paths `accepts` takes, in path order; what is left out is counted."""
    skipped = skipped or Skipped()
    if repository.path.name.endswith(DIST_INFO):
        yield from _distribution_files(repository, Filter(accepts, skipped))
        return
    path = repository.path
    tree = Tree("archive" if path.is_file() else "folder", path)
    for file in walk([path], readable=accepts, skipped=skipped, force=True):
        if file.repository != printable(tree.name):  # a repository inside of this one, or beside its files
            break
        if not file.path.startswith(repository.apart):
            yield file


def _distribution_files(repository: Repository, filter: Filter) -> Iterator[SourceFile]:
    """The files that a distribution has installed, links and what lies outside of its folder left out."""
    root = repository.path.parent
    folders = FolderFilter("", NO_IGNORES, filter)
    listed = PathDistribution(repository.path).files or ()
    for path in sorted({file.as_posix() for file in listed}, key=os.fsencode):
        at = root / path
        if ".." in path.split("/") or DIST_INFO in path or at.is_symlink() or not at.is_file():
            continue
        if folders.enter(path) and filter.file(path, NO_IGNORES) and filter.size(at.stat().st_size, path):
            try:
                data = filter.content(path, at.read_bytes(), NO_IGNORES)
            except OSError:
                filter.skipped.add_unreadable(path)
                continue
            if data is not None:
                yield SourceFile(repository.name, printable(path), data)


def git_repository(path: Path) -> Tree | None:
    """The git repository at a place, bare or not; None where there is none."""
    names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    return repository_at(path, names, "", NO_IGNORES)
