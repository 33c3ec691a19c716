"""From the roots a person names to the repositories in them, each with a name of its own."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ncs.errors import SourceError
from ncs.sources import archives, folders, git
from ncs.sources.content import as_utf8
from ncs.sources.ignores import NO_IGNORES
from ncs.sources.origins import Read, origin_of
from ncs.sources.places import Place, archive_suffix, called, folder_in_repository, repository_at
from ncs.sources.skips import Sieve, shown


def check(roots: Sequence[Path | str], force: bool) -> list[Path]:
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


def read_all(roots: list[Path], sieve: Sieve, revision: str | None, *, read: bool) -> Iterator[tuple[str, Read]]:
    """(repository name, file) of all roots; a root that lies in another one is read once, by itself."""
    names = Names()
    apart = frozenset(str(root) for root in roots)
    for root in roots:
        first = place_at(root)
        if first is None:
            if sieve.seen:
                sieve.seen.odd = True
            yield from single_file(root, sieve, names, read=read)
            continue
        waiting = [(b"", False, "", first)]

        def found(place: Place, waiting: list[tuple[bytes, bool, str, Place]] = waiting) -> None:
            heapq.heappush(waiting, (os.fsencode(place.name), place.kind == "archive", place.where, place))

        while waiting:
            # Names grow below a place, so what it finds comes after everything that came before it.
            _, _, _, place = heapq.heappop(waiting)
            if sieve.seen:
                sieve.seen.place(place)
            for file in files_of(place, sieve, revision, found, apart, read=read):
                yield names.of(place.path, place.name, root), file


def files_of(
    place: Place,
    sieve: Sieve,
    revision: str | None,
    found: Callable[[Place], None],
    apart: frozenset[str],
    *,
    read: bool,
) -> Iterator[Read]:
    """The files of one place; what lies below it and is read by itself goes to `found`."""
    try:
        if place.kind == "blobs" or (revision is not None and place.git_dir is not None):
            yield from git.files(place, sieve, revision, read=read)
        elif place.kind == "archive" and revision is None:
            yield from archives.files(place, sieve, read=read)
        elif place.kind == "archive":
            sieve.skipped.add("outside git")
        elif revision is None:
            yield from folders.files(place, sieve, found, apart, read=read)
        else:  # only git knows revisions; but repositories may lie in this folder
            for _ in folders.files(place, sieve, found, apart, read=False):
                sieve.skipped.add("outside git")
    except SourceError as error:
        if not place.where:
            raise
        sieve.unreadable(place.where.rstrip("/"))
        sieve.skipped.note(str(error))


def place_at(root: Path) -> Place | None:
    """What lies at a root; None for a single file."""
    if root.is_file():
        return Place("archive", root) if archive_suffix(root.name) else None
    try:
        names = [entry.name for entry in root.iterdir()]
    except OSError as error:
        raise SourceError(f"cannot read {root}: {error.strerror}; name a folder that you may read") from error
    return repository_at(root, names, "", NO_IGNORES) or folder_in_repository(root)


def single_file(root: Path, sieve: Sieve, names: Names, *, read: bool) -> Iterator[tuple[str, Read]]:
    """A file that was named itself: taken whatever it looks like, if it is source code of reasonable size."""
    if not sieve.wanted(root.name):
        raise SourceError(f"{root} is no source file of a known language; name a folder, archive or source file")
    try:
        status = root.stat()
        size, origin = status.st_size, origin_of(str(root), status)
        unchanged = read and sieve.unchanged(origin)
        data = root.read_bytes() if read and not unchanged and size <= sieve.limits.of(root.name) else b""
    except OSError as error:
        raise SourceError(f"cannot read {root}: {error.strerror}; name a file that you may read") from error
    if sieve.size(size, root.name):
        file = Read(root.name, size, as_utf8(data), origin, unchanged)
        yield names.of(root.parent, root.parent.name, root.parent.parent), file


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):  # nobody's process: there is no home to protect
        return None


class Names:
    """Gives every place on disk one name, the same each time, and no name twice."""

    def __init__(self) -> None:
        self._of: dict[Path, str] = {}
        self._taken: set[str] = set()

    def of(self, path: Path, name: str, root: Path) -> str:
        """The repository at `path`, called `name` below `root`; who comes later has as many folders before its name
        as tell it from those that came before, so that another root renames none of them.
        """
        if (known := self._of.get(path)) is not None:
            return known
        plain = shown(name)
        above = called(path).parent if path == root else root  # the first folder that is not in the name
        folders = [part for part in above.parts if part != above.anchor]
        longer = (shown("/".join((*folders[-n:], name))) for n in range(1, len(folders) + 1))
        numbered = (f"{plain}~{n}" for n in range(2, len(self._taken) + 3))
        candidates = (plain, *longer, *numbered)
        self._of[path] = next(candidate for candidate in candidates if candidate not in self._taken)
        self._taken.add(self._of[path])
        return self._of[path]
