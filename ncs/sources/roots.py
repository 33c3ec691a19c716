"""The walk over the roots that a person names: every repository below them, with a name of its own, and its files."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ncs.errors import SourceError
from ncs.sources import archives, folders, git
from ncs.sources.files import Origin, RawFile, SourceFile, file_origin, printable
from ncs.sources.filters import Filter, Limits, Scope, Skipped, Wanted, as_utf8
from ncs.sources.ignore import NO_IGNORES
from ncs.sources.repositories import Repository, archive_suffix, display_folder, plain_folder, repository_at


def walk(
    roots: Sequence[Path],
    *,
    wanted: Callable[[str], Wanted],
    revision: str | None = None,
    force: bool = False,
    skipped: Skipped | None = None,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    unchanged: Callable[[Origin], bool] = lambda origin: False,
    scope: Scope | None = None,
    names: Mapping[str, str] | None = None,
) -> Iterator[SourceFile]:
    """All source files below the roots: roots as given, in them repositories by name, in them files by path.

    A root is a folder, a git repository (bare ones too), an archive or a file. Every git directory
    below a folder is one repository, named by its path; so is every archive directly in a folder that
    is no repository; files outside of them belong to one named after the folder. Names and paths are
    ordered by their bytes. With a revision, git repositories are read as of that revision, and nothing else is.

    wanted: chooses by path, or by content. skipped: counts all files that are left out.
    unchanged: asked in the order of the files; the contents of unchanged files are not read.
    scope: what to look at; None: everything. names: names that repositories have already, by their folder or archive:
    an update of a few files must not name them anew.

    Raises SourceError for a root that is missing, unreadable, unsupported, or (without force) a home
    folder or a whole drive.
    """
    filter = Filter(wanted, Skipped() if skipped is None else skipped, limits, unchanged, scope)
    files = walk_raw(check_roots(roots, force), filter, revision, Names(names), read=True)
    return (SourceFile.of(name, file) for name, file in files)


def count(
    roots: Sequence[Path],
    *,
    wanted: Callable[[str], Wanted],
    revision: str | None = None,
    force: bool = False,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> tuple[int, int]:
    """(files, bytes) that `walk` reads at most: paths and sizes are judged, contents are not read."""
    n_files = n_bytes = 0
    filter = Filter(wanted, Skipped(), limits)
    for _, file in walk_raw(check_roots(roots, force), filter, revision, Names(), read=False):
        n_files += 1
        n_bytes += file.size
    return n_files, n_bytes


def check_roots(roots: Sequence[Path | str], force: bool) -> list[Path]:
    """The roots as real paths, each once; SourceError where one is missing or too much."""
    home = _home()
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


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):  # nobody's process: there is no home to protect
        return None


def walk_raw(
    roots: list[Path], filter: Filter, revision: str | None, names: Names, *, read: bool
) -> Iterator[tuple[str, RawFile]]:
    """(repository name, file) of all roots; a root that lies in another one is read once, by itself."""
    other_roots = frozenset(str(root) for root in roots)
    for root in roots:
        if not filter.reaches(str(root)):
            continue
        first = repository_of_root(root)
        if first is None:
            yield from single_file(root, filter, names, read=read)
            continue
        queue = [(b"", False, "", first)]

        def discovered(repository: Repository, queue: list[tuple[bytes, bool, str, Repository]] = queue) -> None:
            name = os.fsencode(repository.name)
            heapq.heappush(queue, (name, repository.kind == "archive", repository.prefix, repository))

        while queue:
            # Names grow on the way down, so what a repository holds comes after everything that came before it.
            _, _, _, repository = heapq.heappop(queue)
            name = None
            for file in files_of(repository, filter, revision, discovered, other_roots, read=read):
                name = name or names.of(repository.path, repository.name, root)
                yield name, file


def files_of(
    repository: Repository,
    filter: Filter,
    revision: str | None,
    discovered: Callable[[Repository], None],
    other_roots: frozenset[str],
    *,
    read: bool,
) -> Iterator[RawFile]:
    """The files of one repository; repositories and archives below it go to `discovered`."""
    try:
        if repository.kind == "blobs" or (revision is not None and repository.git_dir is not None):
            yield from git.files(repository, filter, revision, read=read)
        elif repository.kind == "archive" and revision is None:
            yield from archives.files(repository, filter, read=read)
        elif repository.kind == "archive":
            filter.skipped.add("outside git")
        elif revision is None:
            yield from folders.files(repository, filter, discovered, other_roots, read=read)
        else:  # only git knows revisions; but repositories may lie in this folder
            for _ in folders.files(repository, filter, discovered, other_roots, read=False):
                filter.skipped.add("outside git")
    except SourceError as error:
        if not repository.prefix:
            raise
        filter.unreadable(repository.prefix.rstrip("/"))
        filter.skipped.note(str(error))


def repository_of_root(root: Path) -> Repository | None:
    """What lies at a root; None for a single file."""
    if root.is_file():
        return Repository("archive", root) if archive_suffix(root.name) else None
    try:
        entries = [entry.name for entry in root.iterdir()]
    except OSError as error:
        raise SourceError(f"cannot read {root}: {error.strerror}; name a folder that you may read") from error
    return repository_at(root, entries, "", NO_IGNORES) or plain_folder(root)


def single_file(root: Path, filter: Filter, names: Names, *, read: bool) -> Iterator[tuple[str, RawFile]]:
    """A file that was named itself: taken whatever it looks like, if it is source code of reasonable size."""
    if not filter.wanted(root.name):
        raise SourceError(f"{root} is no source file of a known language; name a folder, archive or source file")
    try:
        status = root.stat()
        size, origin = status.st_size, file_origin(str(root), status)
        unchanged = read and filter.unchanged(origin)
        data = root.read_bytes() if read and not unchanged and size <= filter.limits.of(root.name) else b""
    except OSError as error:
        raise SourceError(f"cannot read {root}: {error.strerror}; name a file that you may read") from error
    if filter.size(size, root.name):
        file = RawFile(root.name, size, as_utf8(data), origin, unchanged)
        yield names.of(root.parent, root.parent.name, root.parent.parent), file


class Names:
    """Gives every repository one name, the same each time, and no name twice."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        """known: names by the folder or archive of the repository."""
        self._names = {Path(path): name for path, name in (known or {}).items()}
        self._taken = set(self._names.values())

    def of(self, path: Path, name: str, root: Path) -> str:
        """The name of the repository at `path`, whose path below `root` is `name`.

        A later repository of the same name has as many folders before it as make it unique, so that another root
        renames none of the earlier ones.
        """
        if (known := self._names.get(path)) is not None:
            return known
        plain = printable(name)
        above = display_folder(path).parent if path == root else root  # the first folder that is not in the name
        folders = [part for part in above.parts if part != above.anchor]
        longer = (printable("/".join((*folders[-n:], name))) for n in range(1, len(folders) + 1))
        numbered = (f"{plain}~{n}" for n in range(2, len(self._taken) + 3))
        candidates = (plain, *longer, *numbered)
        self._names[path] = next(candidate for candidate in candidates if candidate not in self._taken)
        self._taken.add(self._names[path])
        return self._names[path]


def repository_names(files: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """What `walk` takes as names, from (repository, path, place of the origin) of the files of an index.

    >>> repository_names([("app", "src/A.java", "/code/app/src/A.java"), ("app", "B.java", "/code/app/B.java")])
    {'/code/app': 'app'}
    """
    return {place.removesuffix(f"/{path}"): repository for repository, path, place in files}
