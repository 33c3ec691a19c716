"""The options of a build or update, and which files changed since an index was written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from ncs.build.file_cache import FileCache
from ncs.build.ingest import CollectedDocuments
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.extract.readers import readable, readable_code, skip_reason
from ncs.progress import Track, silent
from ncs.sources import Origin, Readable, Scope, Skipped, SourceFile, repository_names, walk
from ncs.sources.repositories import address_of, is_address
from ncs.storage.files import FileEntry
from ncs.storage.snapshot import Description, Snapshot
from ncs.storage.trust import check_trust, roots_of

BeforeCommit = Callable[[Sequence[tuple[Path, int]]], None]
"""Called with the folder and the number of documents of each segment just before they are committed."""
Ingest = Callable[["Request", Skipped, Path], CollectedDocuments]
"""Reads the sources of a request into the documents of a segment."""


@dataclass(frozen=True, slots=True)
class Request:
    """The options of a build."""

    roots: tuple[Path, ...]
    config: BuildConfig
    workers: int | None = None
    force: bool = False
    track: Track = silent
    ingest: Ingest | None = None
    """Reads the sources elsewhere, on a cluster (ncs.scale.dask); None: on this machine."""
    memory: int | None = None
    """Bytes that the build may use, all processes together (ncs.build.memory)."""
    before_commit: BeforeCommit | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Names that repositories have already, by their folder or archive."""

    def readable(self) -> Callable[[str], Readable]:
        """Whether a file is read, by its path."""
        return readable if self.config.texts else readable_code

    def files(
        self, skipped: Skipped, is_unchanged: Callable[[Origin], bool] | None = None, scope: Scope | None = None
    ) -> Iterator[SourceFile]:
        """Its source files in order; those that are unchanged come without their contents.

        scope: the files to check, None for all."""
        return walk(
            self.roots,
            readable=self.readable(),
            revision=self.config.revision,
            force=self.force,
            skipped=skipped,
            is_unchanged=is_unchanged or (lambda origin: False),
            scope=scope,
            names=self.names,
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """The files that differ from those of an index, as repository/path, and the number of those that do not."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int

    def __bool__(self) -> bool:
        """Whether any file differs."""
        return bool(self.added or self.changed or self.removed)

    def __str__(self) -> str:
        """The numbers of new, changed and removed files."""
        return ", ".join(f"{len(paths):,} {kind}" for kind, paths in self.kinds.items()) or "nothing changed"

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """Files by what happened to them: new, changed, removed."""
        kinds = {"new": self.added, "changed": self.changed, "removed": self.removed}
        return {kind: paths for kind, paths in kinds.items() if paths}


def request_of(description: Description, folder: Path) -> Request:
    """The request that built an index; raises IndexVersion, BadInput where it does not name its sources, and NcsError
    where it is not trusted.
    """
    check_trust(folder, description)
    roots = roots_of(folder, description)
    if not roots:
        raise BadInput(f"{folder} does not name its source files; build it again with: ncs build SOURCES")
    if remote := next(filter(is_address, roots), None):
        raise BadInput(f"{folder} was read by a cluster from {address_of(remote)}; build it again with --scheduler")
    return Request(roots, BuildConfig.of(description))


def with_names(request: Request, cache: FileCache, *, all_names: bool = False) -> Request:
    """The request with the names that its roots have in an index, also where their folder was renamed since.

    all_names: those of the repositories below them, too: an update of a few files does not see them all.
    """
    entries = (cache.entries[number] for number in cache.numbers.values())
    names = repository_names((each.repository, each.path, each.place) for each in entries if each.place)
    tops = {str(folder) for root in request.roots for folder in (root, root.parent)}  # the root may be a file
    return replace(request, names={at: name for at, name in names.items() if all_names or at in tops})


@dataclass(frozen=True, slots=True)
class Difference:
    """The result of `find_changes`.

    files: new and changed ones, with their contents. replaced: (repository, path) of changed and removed files.
    complete: whether all files were checked. began: start of the check in nanoseconds since 1970. skipped: what the
    walk left out. snapshot: the number of the snapshot that the files were compared with.
    """

    changes: Changes
    files: Sequence[SourceFile]
    replaced: Sequence[tuple[str, str]]
    complete: bool
    began: int
    skipped: Skipped
    snapshot: int


def changes_since(snapshot: Snapshot, seconds: float, *, force: bool = False) -> Difference:
    """Find the files that differ from those of an index, within a time limit. Raises what `request_of` and `walk`
    raise; force: as of `walk`."""
    request = replace(request_of(snapshot.description, snapshot.folder), force=force)
    with closing(FileCache(snapshot)) as cache:
        return find_changes(cache, request, seconds=seconds)


def find_changes(
    cache: FileCache, request: Request, *, paths: Sequence[Path] | None = None, seconds: float | None = None
) -> Difference:
    """Find the files that differ from those of an index.

    paths: files that may have changed, as `ncs watch` names them; None: all are checked.
    seconds: time limit; where it is exceeded, removed files are not reported.
    """
    began, skipped = time.time_ns(), Skipped(reason_of=skip_reason)
    missing = {name: cache.entries[number] for name, number in cache.numbers.items()}
    scope = None if paths is None else Scope.of(map(str, paths))
    request = with_names(request, cache, all_names=scope is not None)
    added, changed = list[tuple[str, str]](), list[tuple[str, str]]()
    files, unchanged, complete = list[SourceFile](), 0, True
    ends = None if seconds is None else time.monotonic() + seconds
    for file in request.files(skipped, cache.is_unchanged, scope):
        name = file.repository, file.path
        entry = missing.pop(name, None)
        if file.unchanged or (entry is not None and entry.digest == FileEntry.of(file).digest):
            unchanged += 1
        else:
            (added if entry is None else changed).append(name)
            files.append(file)
        if ends is not None and time.monotonic() > ends:
            complete = False
            break
    removed = [name for name, entry in missing.items() if complete and (scope is None or scope.covers(entry.place))]
    unchanged += 0 if scope is None else len(missing) - len(removed)
    new_names, changed_names, removed_names = (tuple(map("/".join, some)) for some in (added, changed, removed))
    changes = Changes(new_names, changed_names, removed_names, unchanged)
    number = cache.snapshot.description.number
    return Difference(changes, files, [*changed, *removed], complete, began, skipped, number)
