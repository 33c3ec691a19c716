"""What a build or an update is asked to read, what an index knows of it, and which files changed since."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.progress import Track, silent

if TYPE_CHECKING:
    from ncs.storage.manifest import Manifest
    from ncs.build.ingest import Changes
    from ncs.build.file_cache import Known
    from ncs.sources import Origin, Skipped, SourceFile, Wanted
    from ncs.sources.seen import Seen
    from ncs.storage.documents import Store


Ready = Callable[[Path], None]
"""Told of the folder of all new files just before they become the index; it may add to them."""


class Knows(Protocol):
    """Who can tell that a content has not changed since it was seen."""

    def unchanged(self, origin: Origin) -> bool: ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a build is asked to do."""

    roots: tuple[Path, ...]
    config: BuildConfig
    workers: int | None = None
    force: bool = False
    track: Track = silent
    scheduler: str | None = None
    """Of the cluster whose workers read (ncs.scale.dask); None: processes of this machine."""
    give_up: float = 1800
    """Seconds after which a repository is tried on another worker of the cluster, and then left out."""
    memory: int | None = None
    """Bytes that the build may hold, all processes together (ncs.build.memory)."""
    ready: Ready | None = None

    def wanted(self) -> Callable[[str], Wanted]:
        """Whether a file is read, by its path."""
        from ncs.extract.readers import readable, without_texts

        return readable if self.config.texts else without_texts

    def files(
        self,
        skipped: Skipped,
        known: Knows | None,
        seen: Seen | None = None,
        enter: Callable[[str], bool] | None = None,
    ) -> Iterator[SourceFile]:
        """Its source files in order; those that are known to be unchanged without their contents."""
        from ncs.sources import walk

        return walk(
            self.roots,
            wanted=self.wanted(),
            revision=self.config.revision,
            force=self.force,
            skipped=skipped,
            unchanged=known.unchanged if known else lambda origin: False,
            seen=seen,
            enter=enter,
        )


def roots_of(manifest: Manifest) -> tuple[Path, ...]:
    """What an index was made of; () where it does not say: documents at hand, an older ncs."""
    sources = cast("dict[str, Any] | None", manifest.counts.get("sources"))
    return tuple(map(Path, sources["roots"])) if isinstance(sources, dict) else ()


def recipe_of(manifest: Manifest, folder: Path) -> Recipe:
    """What made an index; raises BadInput where it does not say which files, and IndexVersion."""
    from ncs.sources.repositories import address_of, is_address

    roots = roots_of(manifest)
    if not roots:
        raise BadInput(f"{folder} does not say which files it was made of; build it again with: ncs build <sources>")
    if away := next(filter(is_address, roots), None):
        raise BadInput(f"{folder} was read by a cluster from {address_of(away)}; build it again with --scheduler")
    return Recipe(roots, BuildConfig.of(manifest))


def known_files(data: Path, manifest: Manifest, store: Store, config: BuildConfig) -> Known | None:
    """What an index can spare a build; None where it was made otherwise, or keeps too little.

    Without its code an index does not keep what tells a copy from its original either.
    """
    from ncs.storage.files import FileTable
    from ncs.build.file_cache import Known, made_by

    sources, table = manifest.counts.get("sources"), FileTable.load(data)
    if not isinstance(sources, dict) or table is None or not config.store_code or sources["made_by"] != made_by():
        return None
    if not config.same_documents(BuildConfig.of(manifest)):
        return None
    return Known(data, store, table, int(sources["began"]))


def changes_since(
    recipe: Recipe, data: Path, known: Known | None, seconds: float | None = None
) -> tuple[Changes, bool]:
    """Which files differ from those of the index in `data`, and whether all were looked at in so many seconds.

    Where they were not, what is removed is not told.
    """
    from ncs.storage.files import FileTable
    from ncs.build.ingest import Changes, changes
    from ncs.sources import Skipped

    table = known.table if known else FileTable.load(data)
    ends = None if seconds is None else time.monotonic() + seconds
    whole = True

    def looked_at() -> Iterator[SourceFile]:
        nonlocal whole
        for file in recipe.files(Skipped(), known):
            yield file
            if ends is not None and time.monotonic() > ends:
                whole = False
                return

    found = changes(looked_at(), table.entries if table else ())
    return (found if whole else Changes(found.added, found.changed, (), found.unchanged)), whole
