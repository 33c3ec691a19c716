"""An update of few files: the documents of all that changed since the base was built are made, nothing else is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.build.delta import ROOM, WHOLE, room_of
from ncs.build.delta.counting import counts
from ncs.build.delta.deciding import Decided, Held, decide
from ncs.build.delta.files import Filed, Looking, Walked
from ncs.build.delta.parts import save_parts
from ncs.build.delta.quick import quick_look
from ncs.build.delta.remembered import Remembered
from ncs.build.delta.rows import Stack
from ncs.build.delta.seen_files import save_late
from ncs.extract.readers import why_unread
from ncs.storage.files import FileTable
from ncs.storage.generations import new_generation
from ncs.storage.manifest import current_generation
from ncs.storage.map_files import ROOM as MAP
from ncs.storage.map_files import keep_map
from ncs.build.ingest import Changes, read
from ncs.build.file_cache import Known, made_by
from ncs.sources import Origin, Skipped, SourceFile
from ncs.sources.seen import Seen
from ncs.storage.documents import DIGESTS, NAME, Store, open_store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.build.batches import Collected
    from ncs.build.request import Recipe
    from ncs.storage.generations import Generation
    from ncs.index import Index

    Numbers = NDArray[np.int64]

SHARE, LEAST = 0.02, 2_000
"""Of the documents, or as many of them, made since the base was built or gone, past which all is made anew."""
BYTES = 32 << 20
"""Of files that are read, past which all is made anew."""
ROUNDS = 8
BASE = frozenset(
    {
        *("documents.sqlite", "vocabulary.txt", "vocabulary.npy", "words.ids.npy", "words.offsets.npy"),
        *("words.counts.npy", "embeddings.npy", "embeddings.json", "structure.json", "digests.npy"),
        *("near_duplicates.npy", "near_duplicates.members.npy", "near_duplicates.names.npy"),
        *("references", "symbols", "places", "files", "bm25", "ncs", "ncs_centred"),
        *("calibration.json", "tuned.json", "keys", MAP, ROOM),
    }
)
"""What a base may consist of; what else there is only a whole build can make."""
NEEDED = ("words.counts.npy", "near_duplicates.names.npy", "bm25/spellings.npy", "ncs_centred/mean.npy")
"""What a base must have; older ones have not."""


@dataclass(frozen=True, slots=True)
class Made:
    """The documents of a delta, and how they stand beside those of the base.

    filed: the files as they are now. before: of each of its documents, the number it had in the delta that stood, -1
    for those that are new.
    """

    collected: Collected
    filed: Filed
    base: Held
    delta: Held
    decided: Decided
    stack: Stack
    before: Numbers
    deduplicate: bool


def update(folder: Path, standing: Index, recipe: Recipe) -> Changes | None:
    """Bring an index up to date by a delta, and say what changed; None where all is to be made anew.

    Raises what a build raises.
    """
    filed = _able(standing, recipe)
    if filed is None:
        return None
    began, skipped = time.time_ns(), Skipped(unwanted=why_unread)
    walked = _look(standing, filed, recipe, skipped)
    if walked is None or not (walked.differs or _to_remember(standing, walked)):
        return None if walked is None else _changes(walked, filed)
    with new_generation(folder) as generation, ExitStack() as opened:
        if current_generation(folder) != standing.data.name:
            return None
        also: set[int] = set()
        made = _made(standing, generation, recipe, filed, walked, opened)
        while made is not None and len(made.decided.missing):
            also.update(made.decided.missing.tolist())
            skipped = Skipped(unwanted=why_unread)
            walked = _look(standing, filed, recipe, skipped, frozenset(also))
            made = None if walked is None else _made(standing, generation, recipe, filed, walked, opened)
        if made is None or walked is None or not _small(made):
            return None
        save_parts(standing.data, generation.path, made)
        save_late(standing.data, generation.path / ROOM, walked.seen)
        _commit(standing, generation, recipe, made, filed, walked, skipped, began)
        standing.close()  # else what it holds would not be removed now
    return _changes(walked, filed)


def _able(standing: Index, recipe: Recipe) -> Filed | None:
    """The files of an index that a delta can be made of."""
    data, manifest = standing.data, standing.manifest
    sources = manifest.counts.get("sources")
    if len(standing) < WHOLE or "pending" in manifest.counts:
        return None
    if not isinstance(sources, dict) or "base_began" not in sources:
        return None
    if sources["made_by"] != made_by() or not recipe.config.store_code or recipe.config.rankers:
        return None
    if not {entry.name for entry in data.iterdir()} <= BASE or not all((data / name).exists() for name in NEEDED):
        return None
    return Filed.load(data)


def _look(
    standing: Index, filed: Filed, recipe: Recipe, skipped: Skipped, also: frozenset[int] = frozenset()
) -> Walked | None:
    """What differs; None where that is too much. also: numbers of files to be read anyway."""
    began = _began(standing)
    if quick := quick_look(standing.data, filed, recipe, began, BYTES, also):
        return quick
    seen, looking = Seen(), Looking(filed, began, (filed.entry(number).place for number in also))
    walked = looking.over(recipe.files(skipped, looking, seen), BYTES)
    return walked and replace(walked, seen=seen)


def _to_remember(standing: Index, walked: Walked) -> bool:
    """Whether what decides which files there are says something else now, though they are the same: unless what was
    seen is kept, each update would walk over everything."""
    if walked.seen is None:
        return False
    kept = Remembered.load(standing.data, _began(standing))
    return kept is not None and not kept.guarded_by(walked.seen.guards)


def _began(standing: Index) -> int:
    """When what an index holds was looked at, in nanoseconds since 1970."""
    return int(cast("Mapping[str, Any]", standing.manifest.counts["sources"])["began"])


def _made(
    standing: Index, generation: Generation, recipe: Recipe, filed: Filed, walked: Walked, opened: ExitStack
) -> Made | None:
    """The delta's documents in a folder of their own; None where the base's files changed their order."""
    shutil.rmtree(generation.path, ignore_errors=True)
    generation.path.mkdir()
    generation.begin_with(standing.data, without=(ROOM, MAP))
    room = generation.path / ROOM
    room.mkdir()
    late = [file for file in walked.found if not isinstance(file, int) or file < 0]
    files = [_again(filed, file) if isinstance(file, int) else file for file in late]
    config = replace(recipe.config, deduplicate=False)
    collected = read(files, room, config, recipe.workers, _known(standing, filed, opened))
    numbers = np.array([-1 if not isinstance(file, int) or file < 0 else file for file in walked.found], np.int32)
    numbers[numbers < 0] = ~np.arange(len(files), dtype=np.int32)
    now = Filed(filed.base, collected.sources, numbers, walked.again)
    base, delta = _held_by_base(standing.data, filed.base, recipe), _held_by_delta(room, collected.sources, recipe)
    decided = decide(base, delta, *_places(now))
    if decided is None:
        return None
    stack = Stack.of(decided.held.astype(np.int32), len(base.file), len(delta.file))
    return Made(
        collected, now, base, delta, decided, stack, _before(filed.delta, collected.sources), recipe.config.deduplicate
    )


def _again(filed: Filed, number: int) -> SourceFile:
    entry = filed.entry(number)
    return SourceFile(entry.repository, entry.path, b"", Origin(entry.place, entry.stamp), unchanged=True)


def _known(standing: Index, filed: Filed, opened: ExitStack) -> Known | None:
    """The files of the delta that stands."""
    room = room_of(standing.data)
    if room is None or filed.delta is None:
        return None
    return Known(room, opened.enter_context(Store(room / NAME)), filed.delta, 0)


def _held_by_base(data: Path, files: FileTable, recipe: Recipe) -> Held:
    owners, copied = (np.repeat(np.arange(len(files)), np.diff(each)) for each in (files.rows, files.copies))
    with Store(data / NAME) as store:
        rows = store.column("copy_row").astype(np.int64)
    digests = np.load(data / DIGESTS, mmap_mode="r", allow_pickle=False) if recipe.config.deduplicate else None
    return Held(owners, np.zeros(len(owners), np.uint64) if digests is None else digests, copied, rows)


def _held_by_delta(room: Path, files: FileTable, recipe: Recipe) -> Held:
    owners = np.repeat(np.arange(len(files)), np.diff(files.rows))
    with Store(room / NAME) as store:
        digests = store.digests() if recipe.config.deduplicate else np.zeros(len(owners), np.uint64)
    return Held(owners, digests, np.zeros(0, np.int64), np.zeros(0, np.int64))


def _places(filed: Filed) -> tuple[Numbers, Numbers]:
    """Where each file of the base and of the delta stands in the order of all."""
    base = np.full(len(filed.base), -1, np.int64)
    early = filed.order >= 0
    base[filed.order[early]] = np.flatnonzero(early)
    return base, np.flatnonzero(~early)


def _before(old: FileTable | None, new: FileTable) -> Numbers:
    """Of each document of a delta the number it had in the old one; -1 for those that are new."""
    found = np.full(int(new.rows[-1]), -1, np.int64)
    known = {(e.repository, e.path, e.digest): i for i, e in enumerate(old.entries)} if old else {}
    for number, entry in enumerate(new.entries):
        at = known.get((entry.repository, entry.path, entry.digest))
        if at is not None and old is not None:
            found[new.rows[number] : new.rows[number + 1]] = np.arange(old.rows[at], old.rows[at + 1])
    return found


def _small(made: Made) -> bool:
    base, delta = made.stack.living()
    return int(np.count_nonzero(~base)) + len(delta) <= max(LEAST, SHARE * len(made.stack))


def _commit(
    standing: Index,
    generation: Generation,
    recipe: Recipe,
    made: Made,
    filed: Filed,
    walked: Walked,
    skipped: Skipped,
    began: int,
) -> None:
    manifest = standing.manifest
    sources = {**cast("Mapping[str, Any]", manifest.counts["sources"]), "began": began}
    told = {**counts(standing, generation.path, made, filed, walked, skipped), "sources": sources}
    notes = manifest.notes
    if (standing.data / MAP).is_dir():
        with open_store(generation.path) as store:
            points, said = keep_map(generation.folder, generation.path, store)
        told, notes = {**told, "map": points}, tuple(dict.fromkeys((*notes, *said)))
    if recipe.ready:
        recipe.ready(generation.path)
    linked = {n: e for n, e in manifest.files.items() if not n.startswith((f"{ROOM}/", f"{MAP}/"))}
    generation.commit(config=manifest.config, counts=told, notes=notes, versions=manifest.versions, linked=linked)


def _changes(walked: Walked, filed: Filed) -> Changes:
    gone = [filed.entry(number) for number in walked.removed]
    removed = tuple(f"{entry.repository}/{entry.path}" for entry in gone)
    same = len(walked.found) - len(walked.added) - len(walked.changed)
    return Changes(walked.added, walked.changed, removed, same)
