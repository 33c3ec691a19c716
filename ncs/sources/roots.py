"""The walk over the roots that a person names: every repository below them, with a name of its own, and its files."""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ncs.errors import SourceError
from ncs.files import open_regular
from ncs.sources import archives, git, ignore
from ncs.sources.files import Origin, RawFile, SourceFile, file_origin, printable
from ncs.sources.filters import Filter, Limits, Readable, Scope, Skipped, as_utf8
from ncs.sources.ignore import GITIGNORE, NCSIGNORE, NO_IGNORES, Ignores
from ncs.sources.repositories import (
    Repository,
    archive_suffix,
    display_folder,
    is_linked_to,
    looks_bare,
    plain_folder,
    repository_at,
)

Discovered = Callable[[Repository], None]


def walk(
    roots: Sequence[Path],
    *,
    readable: Callable[[str], Readable],
    revision: str | None = None,
    force: bool = False,
    skipped: Skipped | None = None,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    is_unchanged: Callable[[Origin], bool] = lambda origin: False,
    scope: Scope | None = None,
    names: Mapping[str, str] | None = None,
) -> Iterator[SourceFile]:
    """All source files below the roots: roots as given, in them repositories by name, in them files by path.

    A root is a folder, a git repository (bare ones too), an archive or a file. Every git directory
    below a folder is one repository, named by its path; so is every archive directly in a folder that
    is no repository; files outside of them belong to one named after the folder. Names and paths are
    ordered by their bytes. With a revision, git repositories are read as of that revision, and nothing else is.

    readable: chooses by path, or by content. skipped: counts all files that are left out.
    is_unchanged: called in the order of the files; the contents of unchanged files are not read.
    scope: what to look at; None: everything. names: names that repositories have already, by their folder or archive:
    an update of a few files must not name them anew.

    Raises SourceError for a root that is missing, unreadable, unsupported, or (without force) a home
    folder or a whole drive.
    """
    filter = Filter(readable, Skipped() if skipped is None else skipped, limits, is_unchanged, scope)
    files = _walk(check_roots(roots, force), filter, revision, Names(names))
    return (SourceFile.of(name, file) for name, file in files)


def count(
    roots: Sequence[Path],
    *,
    readable: Callable[[str], Readable],
    revision: str | None = None,
    force: bool = False,
) -> tuple[int, Counter[str]]:
    """Files, and bytes by repository, that `walk` reads at most: paths and sizes are judged, contents are not read."""
    filter = Filter(readable, Skipped(), is_unchanged=lambda origin: True)
    files, sizes = 0, Counter[str]()
    for repository, file in _walk(check_roots(roots, force), filter, revision, Names()):
        files += 1
        sizes[repository] += file.size
    return files, sizes


def check_roots(roots: Sequence[Path | str], force: bool) -> list[Path]:
    """The roots as real paths, each once; SourceError where one is missing or too much."""
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # nobody's process: there is no home to protect
        home = None
    checked: dict[Path, None] = {}
    for root in roots:
        try:
            path = Path(root).resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise SourceError(f"there is no {root}; name a folder, git repository, archive or source file") from error
        too_much = path == Path(path.anchor) or (home is not None and home.is_relative_to(path))
        if too_much and path.is_dir() and not force:
            raise SourceError(f"{path} is or holds your home folder, or is a whole drive; name less, or use --force")
        checked[path] = None
    return list(checked)


def _walk(roots: list[Path], filter: Filter, revision: str | None, names: Names) -> Iterator[tuple[str, RawFile]]:
    """(repository name, file) of all roots; a root that lies in another one is read once, by itself."""
    other_roots = frozenset(str(root) for root in roots)
    queue: list[tuple[bytes, bool, str, Repository]] = []

    def discovered(repository: Repository) -> None:
        name = os.fsencode(repository.name)
        heapq.heappush(queue, (name, repository.kind == "archive", repository.prefix, repository))

    for root in roots:
        if not filter.reaches(str(root)):
            continue
        first = repository_of_root(root)
        if first is None:
            yield from single_file(root, filter, names)
            continue
        discovered(first)
        while queue:
            # A repository found in another one has a longer name, so it sorts behind all that were read before.
            _, _, _, repository = heapq.heappop(queue)
            name = None
            for file in files_of(repository, filter, revision, discovered, other_roots):
                name = name or names.of(repository.path, repository.name, root)
                yield name, file


def repository_of_root(root: Path) -> Repository | None:
    """The repository at a root; None for a single file."""
    if root.is_file():
        return Repository("archive", root) if archive_suffix(root.name) else None
    try:
        entries = [entry.name for entry in root.iterdir()]
    except OSError as error:
        raise SourceError(f"cannot read {root}: {error.strerror}; name a folder that you may read") from error
    return repository_at(root, entries, "", NO_IGNORES) or plain_folder(root)


def single_file(root: Path, filter: Filter, names: Names) -> Iterator[tuple[str, RawFile]]:
    """A file that was named itself: taken whatever it looks like, if it is source code of reasonable size."""
    if not filter.readable(root.name):
        raise SourceError(f"{root} is no source file of a known language; name a folder, archive or source file")
    try:
        with open_regular(root, follow=False) as opened:
            status = os.fstat(opened.fileno())
            origin = file_origin(str(root), status)
            unchanged = filter.is_unchanged(origin)
            data = b"" if unchanged else opened.read(filter.limits.of(root.name) + 1)
            size = max(status.st_size, len(data))
    except OSError as error:
        raise SourceError(f"cannot read {root}: {error.strerror}; name a file that you may read") from error
    if filter.size(size, root.name):
        file = RawFile(root.name, size, as_utf8(data), origin, unchanged)
        yield names.of(root.parent, root.parent.name, root.parent.parent), file


def files_of(
    repository: Repository,
    filter: Filter,
    revision: str | None,
    discovered: Discovered,
    other_roots: Collection[str],
) -> Iterator[RawFile]:
    """The files of one repository; repositories and archives below it go to `discovered`."""
    try:
        in_git = repository.kind == "work tree" or bool(repository.subfolder)
        if repository.kind == "blobs" or (revision is not None and in_git):
            yield from git.files(repository, filter, revision)
        elif repository.kind == "archive" and revision is None:
            yield from archives.files(repository, filter)
        elif repository.kind == "archive":
            filter.skipped.add("outside git")
        elif revision is None:
            yield from _files_of_folder(repository, filter, discovered, other_roots)
        else:  # only git knows revisions; but repositories may lie in this folder
            listing = replace(filter, is_unchanged=lambda origin: True)
            for _ in _files_of_folder(repository, listing, discovered, other_roots):
                filter.skipped.add("outside git")
    except SourceError as error:
        if not repository.prefix:
            raise
        filter.skipped.add_unreadable(repository.prefix.rstrip("/"))
        filter.skipped.note(str(error))


Entry = os.DirEntry[str]


def _files_of_folder(
    repository: Repository, filter: Filter, discovered: Discovered, other_roots: Collection[str]
) -> Iterator[RawFile]:
    """Source files in bytewise path order, down to the borders of the repositories below.

    Links are not followed, as in ripgrep: so no file is read twice and loops end. Other roots are skipped here.
    """
    ignores = repository.ignores
    if repository.git is not None and not repository.subfolder:
        ignores = ignores.with_git(filter.rules(ignore.load, repository.git.exclude_file, repository.prefix))
    bare = repository.kind == "folder" and not repository.subfolder
    common = repository.git.common if repository.git is not None else None
    at = len(str(repository.path / "x")) - 1
    stack = [_entries(str(repository.path), repository.prefix, ignores, filter, None)]
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
                stack.append(_entries(entry.path, path + "/", ignores, filter, discovered, bare, common))
        elif (
            repository.kind == "folder"
            and path == entry.name
            and archive_suffix(path)
            and entry.is_file(follow_symlinks=False)
        ):
            if filter.reaches(entry.path) and filter.archive(path, ignores):
                discovered(Repository("archive", Path(entry.path), path + "/", ignores.without_git()))
        elif filter.covers(entry.path) and filter.file(path, ignores):
            yield from _file(entry, below, path, ignores, filter)


def _is_folder(entry: Entry) -> bool:
    """Whether it is a folder and no link to one, as junctions of Windows are, which Python tells apart since 3.12."""
    return entry.is_dir(follow_symlinks=False) and not getattr(entry, "is_junction", bool)()


def _entries(
    folder: str,
    prefix: str,
    ignores: Ignores,
    filter: Filter,
    discovered: Discovered | None,
    bare: bool = True,
    common: Path | None = None,
) -> Iterator[tuple[Entry, bool, Ignores]]:
    """(entry, whether it is a folder, the rules that hold here) in the order of full paths.

    Nothing of a folder that is a repository, a virtual environment or an index, but for the top (discovered: None).
    bare: whether bare repositories are repositories here. common: of the repository around, whose linked work trees are
    skipped.
    """
    try:
        with os.scandir(folder) as scan:
            entries = {entry.name: (entry, _is_folder(entry)) for entry in scan}
    except OSError:
        filter.skipped.add_unreadable(prefix or folder)
        return
    if discovered is not None:
        may_be = ".git" in entries or "objects" in entries  # a Path for every folder is slow
        if may_be and (repository := repository_at(Path(folder), entries, prefix, ignores, bare=bare)):
            if common is not None and is_linked_to(Path(folder), common):
                filter.skipped.add("linked work trees")
            else:
                discovered(repository)
            return
        if may_be and not bare and looks_bare(Path(folder), entries):
            filter.skipped.note(
                f"{printable(prefix)[:-1]}: read as a plain folder, since it lies in a work tree; to read it as a"
                f" bare repository, name it"
            )
        if "pyvenv.cfg" in entries and ignores.by_ncsignore(prefix) is None:
            filter.skipped.add("vendored folders")
            return
        if "snapshot.json" in entries and "segments" in entries:
            filter.skipped.add("index folders")
            return
    if GITIGNORE in entries:
        ignores = ignores.with_git(filter.rules(ignore.load, Path(folder, GITIGNORE), prefix))
    if NCSIGNORE in entries:
        ignores = ignores.with_ncs(filter.rules(ignore.load, Path(folder, NCSIGNORE), prefix))
    # a folder sorts as the files in it do: "a-b/x" before "a/x", because "-" < "/"
    for entry, is_folder in sorted(entries.values(), key=lambda each: os.fsencode(each[0].name) + b"/" * each[1]):
        yield entry, is_folder, ignores


def _file(entry: Entry, below: str, path: str, ignores: Ignores, filter: Filter) -> Iterator[RawFile]:
    try:
        if not entry.is_file(follow_symlinks=False):
            filter.skipped.add("links" if entry.is_symlink() else "special files")
            return
        status = entry.stat(follow_symlinks=False)
        origin = file_origin(entry.path, status)
        if not filter.size(status.st_size, path):
            return
        if filter.is_unchanged(origin):
            yield RawFile(below, status.st_size, b"", origin, unchanged=True)
            return
        with open_regular(entry.path, follow=False) as file:
            origin = file_origin(entry.path, os.fstat(file.fileno()))  # of what is read, not of what stood there before
            content = file.read(filter.limits.of(path) + 1)
        if (data := filter.content(path, content, ignores)) is not None:
            yield RawFile(below, len(data), data, origin)
    except OSError:
        filter.skipped.add_unreadable(path)


class Names:
    """Gives every repository one name, the same each time, and no name twice."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        """names: those given before, by the folder or archive of the repository."""
        self._names = {Path(path): name for path, name in (names or {}).items()}
        self._used = set(self._names.values())

    def of(self, path: Path, name: str, root: Path) -> str:
        """The name of the repository at `path`, whose path below `root` is `name`.

        A later repository of the same name has as many folders before it as make it unique, so that another root
        renames none of the earlier ones.
        """
        if path not in self._names:
            plain = printable(name)
            above = display_folder(path).parent if path == root else root  # the first folder that is not in the name
            folders = [part for part in above.parts if part != above.anchor]
            longer = (printable("/".join((*folders[-n:], name))) for n in range(1, len(folders) + 1))
            numbered = (f"{plain}~{n}" for n in range(2, len(self._used) + 3))
            candidates = (plain, *longer, *numbered)
            self._names[path] = next(candidate for candidate in candidates if candidate not in self._used)
            self._used.add(self._names[path])
        return self._names[path]


def repository_names(files: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """The names that `walk` takes, from (repository, path, place of the origin) of the files of an index.

    >>> repository_names([("app", "src/A.java", "/code/app/src/A.java"), ("app", "B.java", "/code/app/B.java")])
    {'/code/app': 'app'}
    """
    return {
        place[: -len(path) - 1] if place.replace(os.sep, "/").endswith(f"/{path}") else place: repository
        for repository, path, place in files
    }
