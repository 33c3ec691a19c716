"""One repository at a time: what several machines share out among themselves, by roots and names alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ncs.errors import SourceError
from ncs.sources import git, ignore
from ncs.sources.files import RawFile, file_origin
from ncs.sources.filters import Filter
from ncs.sources.ignore import NCSIGNORE
from ncs.sources.repositories import Repository, archive_suffix, repository_at
from ncs.sources.roots import Names, files_of, repository_of_root, single_file

Key = tuple[tuple[int, ...], bytes, bool, str]


@dataclass(frozen=True, slots=True)
class Part:
    """A place below a root: `number` is the root's among the roots, `where` as in Place, "" for the root itself."""

    root: str
    number: tuple[int, ...]
    where: str = ""
    archive: bool = False

    @property
    def path(self) -> Path:
        """On disk; for people too."""
        return Path(self.root, self.where.rstrip("/"))

    @property
    def key(self) -> Key:
        """The order in which `walk` reads: roots as given, in them places by name, archives after folders."""
        name = Repository("archive" if self.archive else "folder", self.path, self.where).name if self.where else ""
        return self.number, os.fsencode(name), self.archive, self.where


def read_part(
    part: Part, filter: Filter, revision: str | None, apart: frozenset[str]
) -> tuple[Iterator[RawFile], list[Part]]:
    """Its files, and the other places below it, complete when the files are read.

    apart: the other roots. Raises SourceError as `walk` does.
    """
    below: list[Part] = []
    place = _place(part)
    if place is None:
        return (file for _, file in single_file(Path(part.root), filter, Names(), read=True)), below
    return files_of(place, filter, revision, lambda found: below.append(_part(part, found)), apart, read=True), below


def state_of(part: Part, filter: Filter, revision: str | None) -> str:
    """What is another one when the content of a part is: of git's commits and of archives; "" where only reading tells.

    Raises SourceError as `read_part` does.
    """
    place = _place(part)
    if place is None:
        return ""
    if place.kind == "blobs" or (revision is not None and place.git_dir is not None):
        state = git.commit_of(place, filter, revision)
    elif place.kind == "archive":
        state = file_origin(str(place.path), place.path.stat()).stamp
    else:
        return ""
    return f"{state} {_rules_above(part)}"


def _rules_above(part: Part) -> str:
    """A digest of the .ncsignore files of the folders above."""
    digest, folder = blake2b(digest_size=16), Path(part.root)
    for name in part.where.split("/")[:-1] if part.where else []:
        with suppress(OSError):
            digest.update(f"{folder}\0".encode("utf-8", "surrogateescape") + (folder / NCSIGNORE).read_bytes() + b"\0")
        folder /= name
    return digest.hexdigest()


def scout(part: Part, filter: Filter, apart: frozenset[str]) -> list[Part]:
    """The places below a plain folder, without reading a file; [] for any other root."""
    below: list[Part] = []
    place = _place(part)
    if place is not None and place.kind == "folder":
        for _ in files_of(place, filter, None, lambda found: below.append(_part(part, found)), apart, read=False):
            pass
    return below


def name_of(part: Part, names: Names) -> str:
    """What the repository is called, given those that were named before."""
    root = Path(part.root)
    if not part.where and root.is_file() and not archive_suffix(root.name):
        return names.of(root.parent, root.parent.name, root.parent.parent)
    archive = part.archive or (not part.where and root.is_file())
    return names.of(part.path, Repository("archive" if archive else "folder", part.path, part.where).name, root)


def _part(above: Part, found: Repository) -> Part:
    return Part(above.root, above.number, found.where, found.kind == "archive")


def _place(part: Part) -> Repository | None:
    """As `walk` would come to it: with the .ncsignore files of the folders above; None for a single file."""
    root = Path(part.root)
    first = repository_of_root(root)
    if not part.where or first is None:
        return first
    ignores, folders = first.ignores, part.where.rstrip("/").split("/")
    for depth in range(len(folders)):
        above = "/".join(folders[:depth]) + "/" * bool(depth)
        ignores = ignores.with_ncs(ignore.load(root / above / NCSIGNORE, base=above))
    if part.archive:
        return Repository("archive", part.path, part.where, ignores.without_git())
    try:
        place = repository_at(part.path, os.listdir(part.path), part.where, ignores)  # noqa: PTH208  (names only)
    except OSError as error:
        raise SourceError(f"cannot read {part.path}: {error.strerror}; does every machine see it?") from error
    if place is None:
        raise SourceError(f"{part.path} is no repository any more; build again")
    return place
